// Layers as ZigZag describes them: a loop nest, an equation over operands, precisions. They come
// from its YAML workloads, or from an ONNX network in the conventions of its reader.
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

/// One layer, ready for core_cost(). The problem's operands are the output and then the inputs in
/// the order of the equation, which decides ties of double buffering and the order of sums.
struct Layer {
  std::string name;
  std::string op_type;
  CoreProblem problem;
  std::vector<std::string> roles; ///< names of the operands in the equation: "O", "W", "I"
  SourceLoc where;
  std::int64_t id = 0;
  /// Per operand the layer that makes it: of YAML workloads; none for what is given.
  std::vector<std::optional<std::int64_t>> sources;
  /// Layers whose outputs it takes, as they are or through operators without cost, by their place
  /// in the list; of a network, where these may be all before it, the first two.
  std::vector<std::size_t> makers;
  std::vector<std::size_t> takers; ///< of its output, likewise
  bool constant_weights = true;    ///< no other layer makes its second operand
};

/// A YAML workload of ZigZag, in the order in which it takes the layers: generation by generation
/// after the layers that make their operands. The output is `O`; operand `I` uses memory operand I1
/// and `W` uses I2, any other input the one that is left. Throws one InputError with every problem
/// found.
std::vector<Layer> read_layers(const std::string& path);
/// The same from text; `origin` names it in messages.
std::vector<Layer> parse_layers(std::string_view text, const std::string& origin);

/// An operator that costs nothing in ZigZag.
struct SkippedOperator {
  std::string name;
  std::string op_type;
};

struct NetworkLayers {
  std::vector<Layer> layers;
  std::vector<SkippedOperator> skipped;
};

/// Convolutions (Conv, QLinearConv) and products (Gemm, MatMul) of a network as ZigZag 3.8.5 reads
/// them: 8 bits and twice as many for partial sums unless the node's attributes `weight_size`,
/// `act_size` and `output_size` say otherwise; inputs without their padding; no bias.
/// InputError for a shape that its reader does not take.
NetworkLayers zigzag_layers(const Graph& graph);

/// The core as each layer sees it where data stay in lower memories between layers, as in ZigZag's
/// data-locality mode: an output that goes to one layer alone ends in the lowest memory that holds
/// inputs and outputs and has room for both of its layer's, from which the next layer takes it; the
/// weights of all layers lie in the lowest memory that holds them all and serves the whole array.
/// Memories above are left out.
std::vector<Core> with_data_locality(const std::vector<Layer>& layers, const Core& core);

} // namespace monet
