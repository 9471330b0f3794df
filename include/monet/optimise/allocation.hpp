// Which cores run each operator, and in how many parts: the search that schedules what it tries.
#pragma once

#include "monet/model/model_step.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// Latency in cycles, energy in pJ, peak memory in bytes.
std::vector<double> objectives_of(const StepFigures& cost);

/// Per operator, which of its choices.
using AllocationPlan = std::vector<std::uint32_t>;

struct AllocationPoint {
  AllocationPlan plan;
  StepFigures figures;
};

/// Costs of allocations of one step, each found once. The space: every operator has one of
/// choices(), of which 0 is what make_tiles() does by itself; stacks and slices are the same for
/// all. Any number of threads may ask.
class AllocationEvaluator {
public:
  /// Keeps references to `step`, `chip` and the mapping of `tiling`. The choice that
  /// tiling.allocation (or the mapping's entries with allocation_only) has is in the space, too.
  /// Cores that tiling.idle names are idle in the first choices alone; groups and slices are those
  /// that make_tiles() chooses with them.
  AllocationEvaluator(const TrainingGraph& step, const Chip& chip, const TilingOptions& tiling,
                      const ScheduleOptions& schedule, const AllocationLimits& limits = {});

  const std::vector<std::vector<OperatorAllocation>>& choices() const { return choices_; }
  /// What the choices have in common, without an allocation and with no core idle.
  const TilingOptions& tiling() const { return options_.tiling; }
  /// The plan that the tiling options had, where they had one; else all zeros.
  const AllocationPlan& given() const { return given_; }
  AllocationPlan automatic() const { return AllocationPlan(choices_.size(), 0); }
  /// Number of plans; infinite beyond the range of doubles.
  double plans() const;

  CoreAllocation allocation(const AllocationPlan& plan) const;
  TileGraph tiles(const AllocationPlan& plan) const { return planner_.tiles(allocation(plan)); }
  /// model_step() with the plan's allocation.
  ModelledStep model(const AllocationPlan& plan);

  /// What model() comes to.
  StepFigures evaluate(const AllocationPlan& plan);
  /// The same of many, on several threads, in the order given. None for those that were not reached
  /// before the control said stop.
  std::vector<std::optional<StepFigures>> evaluate(std::span<const AllocationPlan> plans,
                                                   const SearchControl& control);
  /// Different plans evaluated so far.
  std::size_t evaluations() const;
  bool known(const AllocationPlan& plan) const;
  /// Of everything evaluated so far, what nothing dominates in latency, energy and peak memory; by
  /// latency, of equal points the first plan.
  std::vector<AllocationPoint> front() const;

  const TrainingGraph& step() const { return step_; }
  const Chip& chip() const { return chip_; }
  const TilePlanner& planner() const { return planner_; }
  TileCostCache& tile_costs() { return tile_costs_; }

private:
  const TrainingGraph& step_;
  const Chip& chip_;
  StepOptions options_;
  TilePlanner planner_;
  CoreCostCache costs_;
  TileCostCache tile_costs_;
  std::vector<std::vector<OperatorAllocation>> choices_;
  AllocationPlan given_;
  mutable std::mutex mutex_;
  std::map<AllocationPlan, StepFigures> known_;
};

/// Lower bounds that hold for every plan of an evaluator's space, with its stacks, slices and the
/// mappings that its core costs chose: work on cores, bits through the off-chip memory's ports,
/// chains of operators, energy of tiles and of what must pass the ports, bytes live together; and
/// the latency of step_bounds().
class AllocationBounds {
public:
  /// Solves the core costs of every choice. Stopped before the end, work, chains and the energy of
  /// tiles are left out; the bounds hold nonetheless.
  AllocationBounds(AllocationEvaluator& evaluator, const SearchControl& control);
  ~AllocationBounds();

  double bound(Objective objective) const;
  /// The same for all plans whose first operators have these choices.
  double bound(Objective objective, std::span<const std::uint32_t> begin) const;
  /// A plan that shares out the work evenly, without regard to anything else.
  AllocationPlan balanced() const;
  /// Per operator, the choice that alone takes least time.
  AllocationPlan fastest() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct AllocationSearchOptions {
  Objective objective = Objective::latency;
  bool front = false; ///< latency, energy and peak memory at once; `objective` picks the best
  std::size_t evaluations = 2000; ///< different plans that are scheduled at most
  std::size_t population = 40;    ///< of NSGA-II
  std::size_t generations = 0;    ///< 0: as many as take a third of the evaluations (all: front)
  double exact_plans = 50000;     ///< spaces up to this size are searched to the end
  std::vector<AllocationPlan> starts; ///< tried first
  /// Plans with more bytes alive at once, every tensor counted once, are none.
  std::int64_t max_live_bytes = std::numeric_limits<std::int64_t>::max();
};

/// One line per step of the search.
struct AllocationTrace {
  std::size_t evaluations = 0;
  double best = 0;
  double hypervolume = 0; ///< of the front so far, towards NSGA-II's reference; 0 without a front
};

struct AllocationResult {
  Certificate certificate;
  AllocationPoint best;
  AllocationPoint automatic;
  /// Of everything evaluated: what nothing dominates in latency, energy and peak memory, by
  /// latency.
  std::vector<AllocationPoint> front;
  std::vector<AllocationTrace> trace;
  std::size_t evaluations = 0; ///< of this search
  bool exact = false;          ///< the whole space was searched: `best` is optimal
};

/// Small spaces: branch and bound over operators. Others: NSGA-II from automatic, balanced and
/// single-core starts, then local search from its best. Never worse than the automatic choice and
/// the one given, which no limit ends, or than a start. The same seed gives the same result for any
/// number of jobs. InfeasibleError when no plan tried is feasible and within the limit of memory,
/// with which no space is searched to the end.
AllocationResult search_allocation(AllocationEvaluator& evaluator,
                                   const AllocationSearchOptions& options,
                                   const SearchControl& control);

/// The best of `count` plans with every choice equally likely, to compare with.
AllocationPoint best_random_allocation(AllocationEvaluator& evaluator, Objective objective,
                                       std::size_t count, const SearchControl& control);

} // namespace monet
