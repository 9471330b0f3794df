// Which strategy trains a network fastest on a cluster: all that there are, bounded before they are
// modelled.
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

/// In a fixed order, each once: degrees whose product is the devices, and sizes that divide.
/// Without a host link none offloads. InfeasibleError with more than kMaxStrategies of them, or
/// none.
inline constexpr std::size_t kMaxStrategies = 10'000'000;
std::vector<ParallelStrategy> strategies_of(const StrategySpace& space, std::int64_t devices,
                                            const ClusterWorkload& workload, bool has_host_link);

struct PlannedStrategy {
  ParallelStrategy strategy;
  Nanoseconds time = 0;
  std::int64_t memory = 0; ///< of the fullest device
  double energy_pj = 0;    ///< of all devices, where a chip is modelled
  friend bool operator==(const PlannedStrategy&, const PlannedStrategy&) = default;
};

struct PlannerOptions {
  /// latency, energy (of chips) or memory.
  Objective objective = Objective::latency;
  /// Also all strategies that no other beats in time and memory together; with a chip, in energy
  /// too.
  bool front = false;
};

struct PlannerResult {
  /// What became of the strategies: their sum is how many there are.
  struct Counts {
    std::int64_t evaluated = 0;  ///< modelled
    std::int64_t beaten = 0;     ///< not modelled: by their bounds no better than what was found
    std::int64_t too_large = 0;  ///< not modelled: by their bounds they do not fit into memory
    std::int64_t impossible = 0; ///< the network cannot be divided so, or no chip can run it
    std::int64_t left = 0;       ///< not looked at: the search was interrupted
    std::int64_t all() const { return evaluated + beaten + too_large + impossible + left; }
  } counts;
  std::int64_t overflowing = 0; ///< of those modelled, do not fit
  std::int64_t profiles = 0;    ///< divisions of the network that were priced
  std::string why_impossible;   ///< of the first one
  Certificate certificate;      ///< of the objective: ns, pJ or bytes
  std::optional<PlannedStrategy> best;
  std::vector<PlannedStrategy> front;      ///< by time, rising; with `front` only
  std::vector<PlannedStrategy> runners_up; ///< next best that were modelled and fit, at most 20
  std::optional<PlannedStrategy> smallest; ///< of those modelled that do not fit
  std::int64_t memory_limit = 0;           ///< of the largest device; 0: not known
};

/// Bounds every strategy, then models them from the least bound on until no bound is below the
/// best. So the best is that of modelling all. Where nothing fits, `best` is empty. The same for
/// any number of jobs. InfeasibleError for energy without a chip; Stopped where limits end it
/// before any strategy is modelled.
PlannerResult plan_parallelism(const Cluster& cluster, const ClusterDevice& device,
                               const ClusterWorkload& workload, const StrategySpace& space,
                               const PlannerOptions& options, const SearchControl& control);

} // namespace monet
