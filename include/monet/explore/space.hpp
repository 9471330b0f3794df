// A hardware space: parameters with their values, constraints between them, and a chip written with
// expressions over them. docs/reference/space-file.md describes the file.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/cluster/cluster_step.hpp"
#include "monet/explore/design.hpp"
#include "monet/explore/step_settings.hpp"
#include "monet/fit/study.hpp"
#include "monet/hardware/chip.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace monet {

/// Value of a parameter: a number or a name.
struct ParameterValue {
  bool is_number = true;
  double number = 0;
  std::string text; ///< printed form; for a number its shortest form
  friend bool operator==(const ParameterValue&, const ParameterValue&) = default;
};

/// A parameter of a space.
struct Parameter {
  std::string name;
  std::vector<ParameterValue> values; ///< values in the file's order
};

/// A search run on every design; see monet/optimise/{fusion,allocation}.hpp.
struct InnerSearch {
  std::string objective = "latency"; ///< "latency", "energy" or "edp"
  std::int64_t evaluations = 0;      ///< maximum number of schedules of the whole step
};

/// Workload evaluated on every design.
struct StudiedWorkload : StepSettings {
  std::vector<std::string> runs;     ///< "inference" and "training", or one of them, in this order
  std::optional<InnerSearch> fusion; ///< nullopt: stacks chosen by the tool
  std::optional<InnerSearch> allocation; ///< after fusion; nullopt: default cores
  std::uint64_t search_seed = 1;
  /// Names of the designs' metrics: kTrainedMetrics if the file has `accuracy:`, kClusterMetrics
  /// for clusters.
  std::vector<std::string> metrics;
};

/// Limits on designs; 0 means no limit. A design beyond a limit is infeasible.
struct DesignBudgets {
  double area_mm2 = 0; ///< 0: none
  double peak_power_w = 0;
  double offchip_bits_per_cycle = 0;
  double peak_memory_bytes = 0;
  double error = 0; ///< test error of the short training
};

/// A space of designs, as read from a space file.
class Space {
public:
  std::string name;
  std::string origin;
  std::vector<Parameter> parameters;
  StudiedWorkload workload; ///< network and training of the first design, if designs differ in them
  DesignBudgets budgets;
  std::vector<FrontRequest> fronts;
  /// Hash of everything that determines results: the space's text and every file it names.
  std::string content_hash;
  std::vector<std::string> files; ///< all input files, for provenance

  /// Number of designs, including excluded ones.
  std::uint64_t size() const;
  /// Index of each parameter's value.
  std::vector<std::uint32_t> choices(DesignId id) const;
  DesignId id_of(const std::vector<std::uint32_t>& choices) const;
  /// Text of the first constraint that the design violates; empty if the design is in the space.
  std::string broken_constraint(DesignId id) const;
  /// First design that satisfies the constraints, among the first few thousand; 0 if no such design
  /// is found.
  DesignId first_design() const;
  /// Names and texts of system.yaml and its core files, with all expressions evaluated.
  std::vector<std::pair<std::string, std::string>> hardware_files(DesignId id) const;
  /// Chip of a design. Throws InputError if the file's expressions do not form a chip.
  Chip chip(DesignId id) const;
  /// The workload's settings with the network and training selected by the design's values. Throws
  /// InputError if they select none.
  StepSettings settings(DesignId id) const;
  /// Key that is equal for designs with equal settings; empty if all designs have the same. Errors
  /// as settings().
  std::string settings_key(DesignId id) const;
  /// Short training requested by `accuracy:`, with one variant and the arithmetic of the design's
  /// `training:`; nullopt without it. Errors as settings().
  std::optional<TrainStudy> short_training(DesignId id) const;

  struct Template;
  std::shared_ptr<const Template> made_of;
};

/// Reads a space file. Throws one InputError with every problem of the file.
Space read_space(const std::string& path);
Space parse_space(std::string_view text, const std::string& origin);

/// A design of a cluster space, without its parallel strategy.
struct DesignedCluster {
  Cluster cluster;
  ClusterDevice device;
  ClusterWorkload workload;
  std::string network; ///< path; empty: a transformer
};

/// Whether the space describes clusters (has `cluster:`).
bool is_of_clusters(const Space& space);

// The functions below are for spaces of clusters. They throw InputError if the design's values do
// not form a cluster.

/// Key that is equal for designs that differ only in `parallel:`.
std::string cluster_key(const Space& space, DesignId id);
/// Cluster and workload of a design. Throws InfeasibleError if the cluster cannot have that number
/// of devices.
DesignedCluster cluster_of(const Space& space, DesignId id);
/// Parallel strategy of a design, including the degree given as `rest`. Throws InfeasibleError if
/// no integer remains for it.
ParallelStrategy strategy_of(const Space& space, DesignId id, std::int64_t devices);
/// Names and texts of experiment.yaml for `monet cluster` and of the files that are specific to the
/// design. They are meant for `folder`; paths to other files are relative to it.
std::vector<std::pair<std::string, std::string>> cluster_files(const Space& space, DesignId id,
                                                               const std::string& folder);

} // namespace monet
