// Finds the fastest parallel strategy for a network on a cluster: all strategies are enumerated and
// bounded, and those that the bounds do not exclude are modelled.
// Example:
//   std::optional<PlannedStrategy> plan(const Cluster& cluster, const ClusterWorkload& workload) {
//     const ClusterDevice device = read_cluster_device(cluster.device);
//     StrategySpace space;
//     space.global_batch = 1536; // everything else is free
//     return plan_parallelism(cluster, device, workload, space, {}, {}).best;
//   }
#pragma once

#include "monet/base/objective.hpp"
#include "monet/cluster/cluster_step.hpp"
#include "monet/cluster/strategy.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// Enumerates the strategies of a space in a fixed order, without duplicates: the product of the
/// degrees is `devices`, and all sizes divide. Without a host link no strategy offloads. Throws
/// InfeasibleError without any strategy, or with more than kMaxStrategies.
inline constexpr std::size_t kMaxStrategies = 10'000'000;
std::vector<ParallelStrategy> strategies_of(const StrategySpace& space, std::int64_t devices,
                                            const ClusterWorkload& workload, bool has_host_link);

/// A modelled strategy with its figures.
struct PlannedStrategy {
  ParallelStrategy strategy;
  Nanoseconds time = 0;
  std::int64_t memory = 0; ///< peak of the fullest device, bytes
  double energy_pj = 0;    ///< energy of all devices, if a chip is modelled
  friend bool operator==(const PlannedStrategy&, const PlannedStrategy&) = default;
};

struct PlannerOptions {
  /// Objective: latency, memory, or the energy of a chip.
  Objective objective = Objective::latency;
  /// Whether to find the Pareto front of time and memory as well; with a chip, of energy too.
  bool front = false;
};

struct PlannerResult {
  /// Number of strategies by outcome; the sum is the number of all strategies.
  struct Counts {
    std::int64_t evaluated = 0;  ///< modelled
    std::int64_t beaten = 0;     ///< not modelled: their bounds do not improve on the incumbent
    std::int64_t too_large = 0;  ///< not modelled: by their bounds they do not fit into memory
    std::int64_t impossible = 0; ///< cannot be partitioned so, or cannot run on the chip
    std::int64_t left = 0;       ///< not examined: the search was interrupted
    std::int64_t all() const { return evaluated + beaten + too_large + impossible + left; }
  } counts;
  std::int64_t overflowing = 0; ///< modelled strategies that do not fit into memory
  std::int64_t profiles = 0;    ///< number of partitions of the network that were evaluated
  std::string why_impossible;   ///< reason for the first impossible one
  Certificate certificate;      ///< bounds of the objective: ns, pJ or bytes
  std::optional<PlannedStrategy> best;
  std::vector<PlannedStrategy> front; ///< front by increasing time; only with the option `front`
  std::vector<PlannedStrategy> runners_up; ///< next best of those modelled that fit, at most 20
  std::optional<PlannedStrategy> smallest; ///< least memory of those that do not fit
  std::int64_t memory_limit = 0;           ///< memory of the largest device; 0: unknown
};

/// Finds the best strategy: bounds all strategies, then models them by increasing bound until no
/// bound is below the incumbent. The result equals that of modelling all. `best` is empty if no
/// strategy fits. The result does not depend on the number of jobs. Throws InfeasibleError for the
/// energy objective without a chip; Stopped if a limit ends the search before any strategy is
/// modelled.
PlannerResult plan_parallelism(const Cluster& cluster, const ClusterDevice& device,
                               const ClusterWorkload& workload, const StrategySpace& space,
                               const PlannerOptions& options, const SearchControl& control);

} // namespace monet
