// Layers that `monet core` models, from a YAML workload or an ONNX network, with the entries of a
// mapping file.
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
  bool memories = false; ///< only costs of the hardware
  std::string workload;
  std::string format; ///< for operands of layers without formats
  std::string mapping;
  NetworkArguments network;
  CoreCostOptions cost;
  ModelArguments model;
  std::string json;
};

struct CoreInputs {
  Chip chip; ///< only the core, with all its memories
  std::string network;
  std::vector<Layer> layers;
  std::vector<std::vector<TensorFormat>> formats; ///< per layer, if the core has modes
  std::vector<SkippedOperator> skipped;           ///< unsupported by the core, or free in ZigZag
  std::optional<MappingFile> mapping;
  std::vector<Core> cores; ///< core of each layer under --data-locality; else empty

  const Core& core() const { return chip.cores[0]; }
};

/// Whether a workload is a YAML list, judged by its extension, or else by its first byte.
bool is_yaml_workload(const std::string& path);

/// Reads all files. Throws one InputError with the problems of all of them.
CoreInputs read_core_inputs(const CoreArguments& arguments);

/// Problem to solve for one layer.
struct CoreTask {
  CoreProblem problem;
  Core core; ///< in the layer's mode, with the dataflow of the mapping file if it has one
  CoreCostOptions options;
};

/// Task of layer `index`, with the entry of the mapping file that applies to it.
CoreTask core_task(std::size_t index, const CoreInputs& inputs, const CoreCostOptions& options,
                   ProblemList& problems);

} // namespace monet::cli
