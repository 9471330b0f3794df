// experiment.yaml: everything `monet run` needs to know. `monet schedule` fills the same from its
// options.
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/tiling/tiling.hpp"
#include "monet/training/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

struct Experiment {
  std::string name;
  std::string network;
  OnnxReadOptions network_options;
  std::optional<TrainingOptions> training; ///< none: inference only
  std::string hardware;
  std::string mapping; ///< empty: automatic
  TilingMode mode = TilingMode::layer_by_layer;
  std::string stacks; ///< file of them; empty: automatic. Only when fused.
  Halo halo = Halo::cached;
  Priority priority = Priority::latency;
  TransferRules rules;
  CoreCostOptions core_cost;
  std::vector<std::string> files; ///< read for it, besides the network, hardware and mapping
};

/// Throws one InputError with every problem of the file and of the training file it names.
Experiment read_experiment(const std::string& path);

} // namespace monet::cli
