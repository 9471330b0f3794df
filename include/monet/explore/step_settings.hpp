// How a step is made and modelled: the sections that an experiment file and a space file share.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/cluster/cluster_step.hpp"
#include "monet/core_cost/core_cost.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/tiling/tiling.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/transformer.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

struct StepSettings {
  std::string network; ///< path
  OnnxReadOptions network_options;
  std::optional<TrainingOptions> training; ///< none: inference only
  SourceLoc training_where;                ///< its file, or the section
  std::optional<Precision> precision;      ///< of inference; none: as training's, or the file's
  std::string mapping;                     ///< path; empty: automatic
  StepMode mode = StepMode::automatic;
  std::string stacks; ///< path of a file of them; empty: automatic. Not layer by layer.
  bool quick = false; ///< of the ways to fuse, those alone that a space tries
  Halo halo = Halo::cached;
  Priority priority = Priority::latency;
  TransferRules rules;
  CoreCostOptions core_cost;
  std::vector<std::string> files; ///< read for it, besides the network, the mapping and the stacks
};

Precision inference_precision(const StepSettings& settings);

/// The highest lpf_limit: no product of loops has more prime factors than that.
inline constexpr int kHighestLpfLimit = 64;
/// "latency", "memory" or "order".
std::string_view name_of(Priority priority);
/// Names that transfer_rule_named() takes.
inline const std::vector<std::string> kTransferRules{"links",  "multicast", "overlap",
                                                     "pieces", "spills",    "routing"};

/// Which of some names a key has: the first when the key is missing, or another name is given,
/// which is reported.
std::size_t read_choice(YamlMap& map, std::string_view key, const std::vector<std::string>& names,
                        ProblemList& problems);

// Each reads one section into the settings and collects what is wrong; `path` is the file's own,
// which paths in it are seen from.

/// `workload:` network, batch, dimensions.
void read_network_section(const YamlNode& node, const std::string& path, StepSettings& settings,
                          ProblemList& problems);
/// `training:` inline, or the name of a file.
void read_training_section(const YamlNode& node, const std::string& path, StepSettings& settings,
                           ProblemList& problems);
/// `mapping:` a file, or auto.
void read_mapping_key(YamlMap& map, const std::string& path, StepSettings& settings);
/// `schedule:` mode, halo, stacks, stream_like, model, priority, objective, lpf_limit.
void read_schedule_section(const YamlNode& node, const std::string& path, StepSettings& settings,
                           ProblemList& problems);

/// What is trained on a cluster: the sections that an experiment of `monet cluster` and a space of
/// clusters share.
struct ClusterSettings : StepSettings {
  std::optional<TransformerShape> transformer; ///< none: `network`
  bool in_place_loss = true;                   ///< of the transformer, see ClusterWorkload
};

/// `workload:` of a cluster: a transformer by its sizes, or a network. Batches are refused: they
/// are what `parallel:` says.
void read_cluster_workload(const YamlNode& node, const std::string& path, ClusterSettings& settings,
                           ProblemList& problems);
/// `training:` of a cluster, inline or the name of a file. Micro-batches are refused likewise.
/// `settings.training` is there in any case.
void read_cluster_training(const YamlNode& node, const std::string& path, ClusterSettings& settings,
                           ProblemList& problems);

/// What a model of a cluster takes.
ClusterWorkload workload_of(const ClusterSettings& settings);

} // namespace monet
