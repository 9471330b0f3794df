// A point of a hardware space, what its evaluation came to, and which of several are best.
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

/// The number of a design in its space: the indices of its parameters' values as the digits of a
/// mixed-radix number, the first parameter most significant.
using DesignId = std::uint64_t;

/// A figure with a name, of a design and of none of its runs: a number.
struct Metric {
  std::string name;
  double value = 0;
  friend bool operator==(const Metric&, const Metric&) = default;
};

/// What a short training comes to: the share of the images for tests that it takes for another
/// class, and the share of the gradients' numbers that became 0 when they were rounded (0 where
/// none was), both 0 to 1 and means over its seeds.
inline constexpr std::string_view kTrainedMetrics[] = {"error", "gradients_flushed"};

/// What a short training of a design's arithmetic came to in one run, as it is kept and sent. Equal
/// recipes from equal seeds come to equal numbers, whoever trains.
struct TrainingRecord {
  std::string key; ///< of what decides the numbers: the recipe and its network; no chip
  std::uint64_t seed = 0;
  double error = 0;             ///< share of the test's images taken for another class, 0 to 1
  double gradients_flushed = 0; ///< share of gradients' numbers rounded to 0, 0 to 1
  friend bool operator==(const TrainingRecord&, const TrainingRecord&) = default;
};

/// What a step on a cluster comes to besides its figures: 0 where samples are no sequences, and
/// where the device has no peak.
inline constexpr std::string_view kClusterMetrics[] = {"samples_per_second", "tokens_per_second",
                                                       "mfu"};

/// What an evaluation came to. A design that cannot run, or breaks a budget, is infeasible with a
/// reason; area and power are given as far as a chip could be made.
struct DesignResult {
  DesignId id = 0;
  bool feasible = false;
  std::string reason;      ///< why not; empty when feasible
  double area_mm2 = 0;     ///< of the chip, or of all chips of a cluster; 0: not given
  double peak_power_w = 0; ///< likewise; 0 where no frequency is given
  /// 0: not given. Of a cluster 1 GHz: its times are whole nanoseconds.
  double frequency_hz = 0;
  /// One per run of the space: latency, energy and peak, which a store keeps. Empty when
  /// infeasible.
  std::vector<StepFigures> runs;
  /// Those of the space's workload, in its order. Empty when infeasible.
  std::vector<Metric> metrics{};

  /// Neither feasible nor infeasible: a race ended before anybody knew.
  bool given_up() const { return !feasible && reason.empty(); }
  friend bool operator==(const DesignResult&, const DesignResult&) = default;
};

/// What no schedule of the design's runs can beat; admissible in each number by itself.
struct DesignBound {
  bool feasible = true; ///< false: shown to be infeasible without evaluation, `reason` says why
  std::string reason;
  double area_mm2 = 0; ///< exact
  double peak_power_w = 0;
  double frequency_hz = 0;
  std::vector<StepFigures> runs; ///< lower bounds; one per run of the space
  std::vector<Metric> metrics{}; ///< lower bounds; those of the space's workload
};

/// One front that is asked for: of one run, in these objectives.
struct FrontRequest {
  std::size_t run = 0;
  std::vector<Objective> objectives; ///< of kDesignObjectives: 1 to 4, different
  friend bool operator==(const FrontRequest&, const FrontRequest&) = default;
};

/// The objectives' values, in their order. Latency is in seconds where the design has a frequency,
/// else in cycles. Both take results (feasible ones) and bounds apart.
std::vector<double> objective_values(const DesignResult& result, const FrontRequest& front);
std::vector<double> objective_values(const DesignBound& bound, const FrontRequest& front);

/// Designs that no other dominates, equal ones included, in lexicographic order of the objectives,
/// then of ids.
std::vector<DesignId> front_of(std::span<const DesignResult> results, const FrontRequest& front);

} // namespace monet
