// A space of hardware: parameters with their values, constraints between them, and a chip written
// with expressions over them. docs/reference/space-file.md describes the file.
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

/// A number or a name.
struct ParameterValue {
  bool is_number = true;
  double number = 0;
  std::string text; ///< as it is printed; of a number, its shortest form
  friend bool operator==(const ParameterValue&, const ParameterValue&) = default;
};

struct Parameter {
  std::string name;
  std::vector<ParameterValue> values; ///< in the file's order
};

/// A search that is made on every design; see monet/optimise/{fusion,allocation}.hpp.
struct InnerSearch {
  std::string objective = "latency"; ///< latency, energy or edp
  std::int64_t evaluations = 0;      ///< schedules of the whole step at most
};

/// What is evaluated on every design.
struct StudiedWorkload : StepSettings {
  std::vector<std::string> runs;         ///< of "inference" and "training", in this order
  std::optional<InnerSearch> fusion;     ///< none: the stacks that the tool chooses
  std::optional<InnerSearch> allocation; ///< after it; none: cores as the tool or the mapping says
  std::uint64_t search_seed = 1;
  /// What designs come to besides their runs, by name: those of a short training, where the file
  /// has `accuracy:` (kTrainedMetrics); of clusters kClusterMetrics.
  std::vector<std::string> metrics;
};

/// Limits on what a design may be; infinite where the file gives none. A design beyond one is
/// infeasible.
struct DesignBudgets {
  double area_mm2 = 0; ///< 0: none
  double peak_power_w = 0;
  double offchip_bits_per_cycle = 0;
  double peak_memory_bytes = 0;
  double error = 0; ///< of the short training
};

class Space {
public:
  std::string name;
  std::string origin;
  std::vector<Parameter> parameters;
  StudiedWorkload workload; ///< where designs differ in network or training, those of the first
  DesignBudgets budgets;
  std::vector<FrontRequest> fronts;
  /// Names everything that decides results: the space's text, and every file it names.
  std::string content_hash;
  std::vector<std::string> files; ///< read for it: for provenance

  /// Designs, those that constraints exclude included.
  std::uint64_t size() const;
  /// Index of the value of each parameter.
  std::vector<std::uint32_t> choices(DesignId id) const;
  DesignId id_of(const std::vector<std::uint32_t>& choices) const;
  /// Which of the file's constraints the design breaks: its text; empty when it is in the space.
  std::string broken_constraint(DesignId id) const;
  /// The first that constraints keep, of the first few thousand; 0 where they keep none of these.
  DesignId first_design() const;
  /// system.yaml and the core files it names, with all expressions evaluated: name and text.
  std::vector<std::pair<std::string, std::string>> hardware_files(DesignId id) const;
  /// InputError where the file's expressions do not make a chip.
  Chip chip(DesignId id) const;
  /// The workload's settings with the network and training that the design's values choose.
  /// InputError where they choose none.
  StepSettings settings(DesignId id) const;
  /// Equal for designs whose settings are; empty where all are. InputError like settings().
  std::string settings_key(DesignId id) const;
  /// The short training that `accuracy:` asks for, of one variant, in the arithmetic of the
  /// design's `training:`; nullopt without it. InputError like settings().
  std::optional<TrainStudy> short_training(DesignId id) const;

  struct Template;
  std::shared_ptr<const Template> made_of;
};

/// One InputError with every problem of the file.
Space read_space(const std::string& path);
Space parse_space(std::string_view text, const std::string& origin);

/// A design without its strategy.
struct DesignedCluster {
  Cluster cluster;
  ClusterDevice device;
  ClusterWorkload workload;
  std::string network; ///< path; empty: a transformer
};

/// Whether the space has `cluster:`.
bool is_of_clusters(const Space& space);

// Of a space of clusters. InputError where the design's values make none.

/// Equal for designs that differ in `parallel:` alone.
std::string cluster_key(const Space& space, DesignId id);
/// InfeasibleError where the cluster cannot have so many devices.
DesignedCluster cluster_of(const Space& space, DesignId id);
/// `parallel:` with the degree that is `rest`. InfeasibleError where nothing whole is left for it.
ParallelStrategy strategy_of(const Space& space, DesignId id, std::int64_t devices);
/// experiment.yaml for `monet cluster`, and the files it names that are the design's own: name and
/// text. To be written to the folder, which what is named elsewhere is seen from.
std::vector<std::pair<std::string, std::string>> cluster_files(const Space& space, DesignId id,
                                                               const std::string& folder);

} // namespace monet
