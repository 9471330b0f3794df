// Settings that build and model a step: the sections that experiment files and space files share.
// Example:
//   TrainingGraph make_step(const StepSettings& settings) {
//     const Graph network = read_onnx(settings.network, settings.network_options);
//     if (!settings.training)
//       return fold_views(make_inference_graph(network, inference_precision(settings)));
//     return fold_views(make_training_graph(network, *settings.training));
//   }
#pragma once

#include "monet/base/options.hpp"
#include "monet/base/yaml.hpp"
#include "monet/cluster/cluster_step.hpp"
#include "monet/core_cost/core_cost.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/tiling/tiling.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/transformer.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Maximum value of lpf_limit: no product of loops has more prime factors.
inline constexpr int kHighestLpfLimit = 64;
/// Name of a priority: "latency", "memory" or "order".
std::string_view name_of(Priority priority);
/// Names that transfer_rule_named() accepts.
inline const std::vector<std::string> kTransferRules{"links",  "multicast", "overlap",
                                                     "pieces", "spills",    "routing"};

/// Keys of `schedule:` for fusing operators, ordering tiles and moving data.
struct ScheduleKeys {
  StepMode mode = StepMode::automatic;
  std::string stacks = "auto"; ///< path of a stacks file, or auto
  Halo halo = Halo::cached;
  Priority priority = Priority::latency;
  Effort effort = Effort::normal;
  std::vector<std::string> stream_like; ///< of kTransferRules

  bool has_stacks() const { return !stacks.empty() && stacks != "auto"; }
};
/// Values of `mode`, `halo`, `priority` and `effort`.
inline constexpr std::array kStepModes{StepMode::automatic, StepMode::layer_by_layer,
                                       StepMode::fused};
inline constexpr std::array kHalos{NamedChoice<Halo>{"cached", Halo::cached},
                                   NamedChoice<Halo>{"recomputed", Halo::recomputed}};
inline constexpr std::array kPriorities{Priority::latency, Priority::memory, Priority::order};
inline constexpr std::array kEfforts{Effort::quick, Effort::normal, Effort::thorough};
/// Options of `monet schedule` and keys of `schedule:` with these values.
inline constexpr OptionRow<ScheduleKeys> kScheduleKeys[] = {
    {"mode", option_choice<kStepModes, &ScheduleKeys::mode>,
     "Mode: layer-by-layer, fused (groups of operators slice by slice), or auto (the better one)"},
    {"stacks",
     option_field<&ScheduleKeys::stacks>,
     "Fused: file of the operators of each stack, or auto",
     {.type = "S.yaml"}},
    {"halo", option_choice<kHalos, &ScheduleKeys::halo>,
     "Fused: data that two slices share are kept (cached) or recomputed"},
    {"priority", option_choice<kPriorities, &ScheduleKeys::priority>,
     "Next tile of a core: the first ready one, the deepest in the network, or the next in order"},
    {"stream_like",
     option_field<&ScheduleKeys::stream_like>,
     "Use Stream's rule for this kind of data movement; may be repeated",
     {.repeated = true, .names = &kTransferRules}},
};
/// Key of `schedule:` and option of `monet schedule`; searches have limits of their effort instead.
inline constexpr OptionRow<ScheduleKeys> kEffortKeys[] = {
    {"effort", option_choice<kEfforts, &ScheduleKeys::effort>,
     "Fused and auto: one plan by estimates (quick), several and a brief search, or a longer "
     "search"},
};
/// Keys of `schedule:` for the mappings of layers on cores.
inline constexpr OptionRow<CoreCostOptions> kCoreCostKeys[] = {
    {"objective", option_choice<kCoreObjectives, &CoreCostOptions::objective>,
     "Objective of each layer's mapping on a core"},
    {"lpf_limit",
     option_field<&CoreCostOptions::lpf_limit>,
     "Maximum number of factors of temporal loops; more are merged. none: no limit",
     {.range = NumberRange{1, kHighestLpfLimit}, .zero_is_none = true}},
};

/// Settings that build and model a training or inference step.
struct StepSettings {
  std::string network; ///< path
  OnnxReadOptions network_options;
  std::optional<TrainingOptions> training; ///< nullopt: inference only
  SourceLoc training_where;                ///< its file, or the section
  std::optional<Precision> precision;      ///< for inference; nullopt: as in training or the file
  std::string mapping;                     ///< path; empty: automatic
  StepMode mode = StepMode::automatic;
  std::string stacks; ///< path of a stacks file; empty: automatic. Not for layer-by-layer mode
  Effort effort = Effort::normal; ///< explorations are quick
  Halo halo = Halo::cached;
  Priority priority = Priority::latency;
  TransferRules rules;
  CoreCostOptions core_cost;
  std::vector<std::string> files; ///< input files besides the network, the mapping and the stacks

  void set(const ScheduleKeys& keys);
};

/// Precision of inference: the explicit one, otherwise as in training.
Precision inference_precision(const StepSettings& settings);

/// Index of a key's value among `names`. Returns 0 if the key is missing; any other value is
/// reported and yields 0, too.
std::size_t read_choice(YamlMap& map, std::string_view key, const std::vector<std::string>& names,
                        ProblemList& problems);

// Each of the functions below reads one section into the settings and collects problems. Paths in
// the section are relative to the folder of the file `path`.

/// Reads `workload:` (network, batch, dimensions).
void read_network_section(const YamlNode& node, const std::string& path, StepSettings& settings,
                          ProblemList& problems);
/// Reads `training:`, inline or the name of a file.
void read_training_section(const YamlNode& node, const std::string& path, StepSettings& settings,
                           ProblemList& problems);
/// Reads `mapping:`, a file or auto.
void read_mapping_key(YamlMap& map, const std::string& path, StepSettings& settings,
                      ProblemList& problems);
/// Reads `schedule:` (mode, halo, stacks, stream_like, model, priority, objective, lpf_limit).
void read_schedule_section(const YamlNode& node, const std::string& path, StepSettings& settings,
                           ProblemList& problems);

/// Network and training on a cluster: the sections that `monet cluster` experiments and cluster
/// spaces share.
struct ClusterSettings : StepSettings {
  std::optional<TransformerShape> transformer; ///< nullopt: use `network`
  bool in_place_loss = true;                   ///< loss of the transformer, see ClusterWorkload
};

/// Reads `workload:` of a cluster: a transformer by its sizes, or a network. Batch sizes are
/// rejected because `parallel:` sets them.
void read_cluster_workload(const YamlNode& node, const std::string& path, ClusterSettings& settings,
                           ProblemList& problems);
/// Reads `training:` of a cluster, inline or the name of a file, and always sets
/// `settings.training`. Micro-batches are rejected because `parallel:` sets them.
void read_cluster_training(const YamlNode& node, const std::string& path, ClusterSettings& settings,
                           ProblemList& problems);

/// Workload of a ClusterModel with these settings.
ClusterWorkload workload_of(const ClusterSettings& settings);

} // namespace monet
