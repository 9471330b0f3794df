// The layers that `monet core` costs, from a YAML workload or an ONNX network, and what a mapping
// file says about each.
#pragma once

#include "options/model_options.hpp"
#include "options/network_options.hpp"

#include "monet/core_cost/layers.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/chip.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

struct CoreArguments {
  std::string hardware;
  bool memories = false; ///< only what the hardware costs
  std::string workload;
  std::string format; ///< of the operands of layers from a list
  std::string mapping;
  NetworkArguments network;
  CostArguments cost;
  ModelArguments model;
  std::string json;
};

struct CoreInputs {
  Chip chip; ///< the core alone: its memories, the outermost included, are all there is
  std::string network;
  std::vector<Layer> layers;
  std::vector<std::vector<TensorFormat>> formats; ///< per layer, where the core has modes
  std::vector<SkippedOperator> skipped;           ///< not for this core, or without cost in ZigZag
  std::optional<MappingFile> mapping;
  std::vector<Core> cores; ///< as each layer sees the core, under --data-locality; else empty

  const Core& core() const { return chip.cores[0]; }
};

/// By its name's ending, else by how it begins.
bool is_yaml_workload(const std::string& path);

/// All files, or one InputError with the problems of all of them.
CoreInputs read_core_inputs(const CoreArguments& arguments);

/// What to solve for one layer.
struct CoreTask {
  CoreProblem problem;
  Core core; ///< in the mode of the layer, with the dataflow of the mapping file where it gives one
  CoreCostOptions options;
};

/// Layer `index` with the entry of the mapping file that is for it.
CoreTask core_task(std::size_t index, const CoreInputs& inputs, const CoreCostOptions& options,
                   ProblemList& problems);

} // namespace monet::cli
