// A hardware space: parameters with their values, constraints between them, and a chip written with
// expressions over them. docs/reference/space-file.md describes the file.
// Example:
//   std::vector<double> chip_areas_mm2() {
//     const Space space = read_space("examples/spaces/small_edge.yaml");
//     std::vector<double> areas;
//     for (DesignId id = 0; id < space.size(); ++id)
//       if (space.broken_constraint(id).empty())
//         areas.push_back(space.chip(id).area_mm2());
//     return areas;
//   }
#pragma once

#include "monet/base/objective.hpp"
#include "monet/base/stage.hpp"
#include "monet/base/yaml.hpp"
#include "monet/cluster/cluster_step.hpp"
#include "monet/explore/step_settings.hpp"
#include "monet/fit/study.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/model/model_step.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monet {

/// Number of a design in its space: the indices of its parameters' values as digits of a
/// mixed-radix number, the first parameter most significant.
using DesignId = std::uint64_t;

/// A named figure of a design that belongs to no single run.
struct Metric {
  std::string name;
  double value = 0;
  friend bool operator==(const Metric&, const Metric&) = default;
};

/// Metrics of a short training: test error (share of misclassified images), and share of gradient
/// values rounded to 0 (0 without rounding). Both are between 0 and 1, and means over the seeds.
inline constexpr std::string_view kTrainedMetrics[] = {"error", "gradients_flushed"};

/// Result of one short training of a design's arithmetic, as stored and sent between processes.
/// Equal recipes and seeds yield equal numbers in any process.
struct TrainingRecord {
  std::string key; ///< identifies the recipe and its network, without the chip
  std::uint64_t seed = 0;
  double error = 0;             ///< test error: share of misclassified images, 0 to 1
  double gradients_flushed = 0; ///< share of gradient values rounded to 0, 0 to 1
  friend bool operator==(const TrainingRecord&, const TrainingRecord&) = default;
};

/// Metrics of a step on a cluster. 0 if samples are not sequences, or if the device has no peak
/// rate.
inline constexpr std::string_view kClusterMetrics[] = {"samples_per_second", "tokens_per_second",
                                                       "mfu"};

/// Result of an evaluation. A design that cannot run or exceeds a budget is infeasible, with a
/// reason; area and power are still set if the chip could be built.
struct DesignResult {
  DesignId id = 0;
  bool feasible = false;
  std::string reason;      ///< reason for infeasibility; empty if feasible
  double area_mm2 = 0;     ///< area of the chip, or of all chips of a cluster; 0: unknown
  double peak_power_w = 0; ///< peak power of the same chips; 0 without a frequency
  /// Clock frequency in Hz; 0: unknown. 1 GHz for a cluster, whose times are whole nanoseconds.
  double frequency_hz = 0;
  /// Latency, energy and peak memory of each run of the space, which a store keeps. Empty if
  /// infeasible.
  std::vector<StepFigures> runs;
  /// Metrics of the space's workload, in its order. Empty if infeasible.
  std::vector<Metric> metrics{};

  /// Whether a race ended before feasibility was known.
  bool given_up() const { return !feasible && reason.empty(); }
  friend bool operator==(const DesignResult&, const DesignResult&) = default;
};

/// Lower bounds on any schedule of a design's runs; each number is a valid bound separately.
struct DesignBound {
  bool feasible = true; ///< false: infeasible for the given `reason`, without evaluation
  std::string reason;
  double area_mm2 = 0; ///< exact
  double peak_power_w = 0;
  double frequency_hz = 0;
  std::vector<StepFigures> runs; ///< lower bounds, one per run of the space
  std::vector<Metric> metrics{}; ///< lower bounds of the space's workload's metrics
};

/// A requested Pareto front: one run and its objectives.
struct FrontRequest {
  std::size_t run = 0;
  std::vector<Objective> objectives; ///< 1 to 4 distinct objectives of kDesignObjectives
  friend bool operator==(const FrontRequest&, const FrontRequest&) = default;
};

/// Values of a feasible result in the front's objectives, in their order. Latency is in seconds if
/// the design has a frequency, otherwise in cycles.
std::vector<double> objective_values(const DesignResult& result, const FrontRequest& front);
/// Lower bounds in the front's objectives, in their order; units as for results.
std::vector<double> objective_values(const DesignBound& bound, const FrontRequest& front);

/// Non-dominated designs, including equal ones, sorted lexicographically by objectives, then by id.
std::vector<DesignId> front_of(std::span<const DesignResult> results, const FrontRequest& front);

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

/// Test whether a design's lower bounds suffice to abandon its evaluation.
using BoundTest = std::function<bool(const DesignBound&)>;

/// Evaluator of the designs of one space. Functions are thread-safe, and results depend only on the
/// design, not on earlier calls.
class DesignEvaluator {
public:
  virtual ~DesignEvaluator() = default;
  /// Evaluates a design. Infeasible designs are results, not exceptions.
  virtual DesignResult evaluate(DesignId id) = 0;
  /// Lower bounds of evaluate(), at a much lower cost.
  virtual DesignBound bound(DesignId id) = 0;
  /// Evaluates a design as evaluate(), but returns nullopt once its bounds, which increase during
  /// evaluation, satisfy `enough`.
  virtual std::optional<DesignResult> evaluate_unless(DesignId id, const BoundTest& enough) {
    static_cast<void>(enough);
    return evaluate(id);
  }
  /// Short trainings not yet returned by this function; other processes receive them through
  /// learn().
  virtual std::vector<TrainingRecord> new_trainings() { return {}; }
  virtual void learn(std::span<const TrainingRecord> trainings) { static_cast<void>(trainings); }
};

class DesignStore;

/// Creates the evaluator of a space: reads its network and builds the graphs of its runs. Designs
/// share graphs, costs of equal tiles on equal cores, and short trainings of equal arithmetic.
/// Short trainings are looked up in and added to the store, if any. Keeps references to the space
/// and the store. Throws InputError for invalid files.
std::unique_ptr<DesignEvaluator> make_evaluator(const Space& space, DesignStore* store = nullptr);

} // namespace monet
