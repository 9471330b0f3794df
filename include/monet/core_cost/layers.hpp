// Layers in ZigZag's format: a loop nest, an equation over operands, precisions. They are read from
// ZigZag's YAML workloads, or from an ONNX network with the conventions of its reader.
// Example:
//   Cycles layer_cycles(const Core& core) {
//     Cycles sum;
//     for (const Layer& layer : read_layers("examples/core/four_matmuls.yaml"))
//       sum += core_cost(layer.problem, core).latency;
//     return sum;
//   }
#pragma once

#include "monet/base/errors.hpp"
#include "monet/core_cost/core_cost.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// One layer for core_cost(). The problem's operands are the output and then the inputs in the
/// order of the equation, which breaks ties of double buffering and determines the order of sums.
struct Layer {
  std::string name;
  std::string op_type;
  CoreProblem problem;
  std::vector<std::string> roles; ///< names of the operands in the equation: "O", "W", "I"
  SourceLoc where;
  std::int64_t id = 0;
  /// In YAML workloads, the producing layer of each operand; nullopt for given operands.
  std::vector<std::optional<std::int64_t>> sources;
  /// Indices of the layers whose outputs this layer reads, directly or through operators without
  /// cost. In a network, where all previous layers may qualify, only the first two.
  std::vector<std::size_t> makers;
  std::vector<std::size_t> takers; ///< indices of the layers that read its output
  bool constant_weights = true;    ///< no other layer produces its second operand
};

/// Reads a YAML workload of ZigZag, in ZigZag's order of layers: generation by generation after the
/// producers of their operands. The output is `O`; operand `I` uses memory operand I1 and `W` uses
/// I2, any other input the remaining one. Throws one InputError with every problem found.
std::vector<Layer> read_layers(const std::string& path);
/// Parses the text of a YAML workload; `origin` names it in messages. Errors as read_layers().
std::vector<Layer> parse_layers(std::string_view text, const std::string& origin);

/// An operator without cost in ZigZag.
struct SkippedOperator {
  std::string name;
  std::string op_type;
};

/// Layers of a network, and its operators without cost.
struct NetworkLayers {
  std::vector<Layer> layers;
  std::vector<SkippedOperator> skipped;
};

/// Convolutions (Conv, QLinearConv) and products (Gemm, MatMul) of a network with the conventions
/// of ZigZag 3.8.5. Precision is 8 bits, and 16 for partial sums, unless the node's attributes
/// `weight_size`, `act_size` and `output_size` override it. Inputs have no padding; bias is
/// ignored. Throws InputError for a shape that ZigZag's reader does not support.
NetworkLayers zigzag_layers(const Graph& graph);

/// Copies of the core as each layer sees it if data stay in lower memories between layers, as in
/// ZigZag's data-locality mode. An output with a single reader is written to the lowest memory that
/// holds inputs and outputs and has room for both of its layer's; its reader reads it there. The
/// weights of all layers are in the lowest memory that serves the whole array and holds them all.
/// Memories above are omitted.
std::vector<Core> with_data_locality(const std::vector<Layer>& layers, const Core& core);

} // namespace monet
