// A design of a hardware space, its evaluation result, its bounds, and Pareto fronts of designs.
#pragma once

#include "monet/base/objective.hpp"
#include "monet/base/stage.hpp"
#include "monet/model/figures.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

} // namespace monet
