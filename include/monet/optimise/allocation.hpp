// search_allocation(): optimises the cores that run each operator and the number of parts per
// operator, by scheduling every candidate.
// Example:
//   CoreAllocation best_allocation(const TrainingGraph& step, const Chip& chip) {
//     AllocationEvaluator evaluator(step, chip, {}, {});
//     AllocationSearchOptions options;
//     options.evaluations = 500;
//     return evaluator.allocation(search_allocation(evaluator, options, {}).best.plan);
//   }
#pragma once

#include "monet/base/options.hpp"
#include "monet/model/model_step.hpp"
#include "monet/optimise/search.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace monet {

/// Objectives of a step: latency in cycles, energy in pJ, peak memory in bytes.
std::vector<double> objectives_of(const StepFigures& cost);

/// An allocation: per operator, the index of one of its choices.
using AllocationPlan = std::vector<std::uint32_t>;

/// An allocation and its figures.
struct AllocationPoint {
  AllocationPlan plan;
  StepFigures figures;
};

/// Costs of allocations of one step, each computed once. In this space, every operator has one of
/// choices(), where choice 0 is the allocation that make_tiles() selects. Stacks and slices are the
/// same for all plans. Thread-safe.
class AllocationEvaluator {
public:
  /// Keeps references to `step`, `chip` and the mapping of `tiling`. The allocation in
  /// tiling.allocation (or in the mapping's entries with allocation_only) is also in the space.
  /// Cores in tiling.idle are idle only under the first choices; groups and slices are those of
  /// make_tiles() with these cores idle.
  AllocationEvaluator(const TrainingGraph& step, const Chip& chip, const TilingOptions& tiling,
                      const ScheduleOptions& schedule, const AllocationLimits& limits = {});

  /// Choices of each operator.
  const std::vector<std::vector<OperatorAllocation>>& choices() const { return choices_; }
  /// Tiling options that all choices share, without an allocation and without idle cores.
  const TilingOptions& tiling() const { return options_.tiling; }
  /// Plan that corresponds to the allocation in the tiling options; all zeros if they have none.
  const AllocationPlan& given() const { return given_; }
  /// Plan that make_tiles() selects: choice 0 for every operator.
  AllocationPlan automatic() const { return AllocationPlan(choices_.size(), 0); }
  /// Number of plans; infinite beyond the range of doubles.
  double plans() const;

  /// Allocation that corresponds to a plan.
  CoreAllocation allocation(const AllocationPlan& plan) const;
  /// Tiles of the step under a plan.
  TileGraph tiles(const AllocationPlan& plan) const { return planner_.tiles(allocation(plan)); }
  /// Result of model_step() with the plan's allocation.
  ModelledStep model(const AllocationPlan& plan);

  /// Figures of model() for a plan.
  StepFigures evaluate(const AllocationPlan& plan);
  /// Figures of several plans, in the given order, computed on several threads. nullopt for plans
  /// that were not evaluated before the control requested a stop.
  std::vector<std::optional<StepFigures>> evaluate(std::span<const AllocationPlan> plans,
                                                   const SearchControl& control);
  /// Number of different plans evaluated so far.
  std::size_t evaluations() const;
  /// Whether the plan has been evaluated.
  bool known(const AllocationPlan& plan) const;
  /// Evaluated plans that no other dominates in latency, energy and peak memory, by ascending
  /// latency. Of plans with equal figures, only the first is included.
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

/// Lower bounds for every plan of an evaluator's space, given its stacks, slices and core mappings.
/// They cover work on cores, traffic through off-chip ports, chains of operators, energy of tiles
/// and of compulsory traffic, and live bytes. They also include the latency of step_bounds().
class AllocationBounds {
public:
  /// Solves the core costs of every choice. If stopped early, the bounds omit work, chains and the
  /// energy of tiles, but remain valid.
  AllocationBounds(AllocationEvaluator& evaluator, const SearchControl& control);
  ~AllocationBounds();

  /// Lower bound on the objective, for all plans.
  double bound(Objective objective) const;
  /// Lower bound on the objective, for all plans whose first operators have the choices `begin`.
  double bound(Objective objective, std::span<const std::uint32_t> begin) const;
  /// Plan that balances the work across cores and ignores everything else.
  AllocationPlan balanced() const;
  /// Plan with the fastest choice of each operator in isolation.
  AllocationPlan fastest() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Options of search_allocation().
struct AllocationSearchOptions {
  Objective objective = Objective::latency;
  /// Whether to optimise latency, energy and peak memory at once; `objective` then selects the
  /// best.
  bool front = false;
  std::size_t evaluations = 2000; ///< maximum number of different plans to schedule
  std::size_t population = 40;    ///< of NSGA-II
  /// Generations of NSGA-II; 0: a number that uses a third of the evaluations (with `front`: all of
  /// them).
  std::size_t generations = 0;
  double exact_plans = 50000;         ///< spaces of up to this size are searched exhaustively
  std::vector<AllocationPlan> starts; ///< plans to evaluate first
  /// Limit on live bytes, each tensor counted once; plans above it are infeasible.
  std::int64_t max_live_bytes = std::numeric_limits<std::int64_t>::max();

  /// Name of the objective; "front" for all objectives at once.
  std::string_view objective_name() const { return front ? "front" : name_of(objective); }
};
/// Objectives that the search for allocations supports.
inline constexpr std::array kAllocationObjectives{Objective::latency, Objective::energy,
                                                  Objective::edp, Objective::memory};
/// Accessor of the objective for the command line, where "front" is one, too.
NamedValue allocation_objective(AllocationSearchOptions& options);
/// Options of `monet optimise allocation`.
inline constexpr OptionRow<AllocationSearchOptions> kAllocationOptions[] = {
    {"objective",
     [](AllocationSearchOptions& options) -> OptionValue { return allocation_objective(options); },
     "Objective to minimise",
     {.place = OptionPlace::command}},
    {"objective",
     option_choice<kAllocationObjectives, &AllocationSearchOptions::objective>,
     "Objective to minimise",
     {.place = OptionPlace::file}},
    {"evaluations",
     option_field<&AllocationSearchOptions::evaluations>,
     "Maximum number of scheduled allocations, unless the space is searched exhaustively",
     {.range = NumberRange{1, 100000000}}},
    {"population",
     option_field<&AllocationSearchOptions::population>,
     "Population size of NSGA-II",
     {.place = OptionPlace::command, .range = NumberRange{2, 100000}}},
    {"generations",
     option_field<&AllocationSearchOptions::generations>,
     "Number of generations of NSGA-II; 0: as its share of the evaluations allows",
     {.place = OptionPlace::command, .range = NumberRange{0, 1000000}}},
};

/// State of the search after one step.
struct AllocationTrace {
  std::size_t evaluations = 0;
  double best = 0;
  /// Hypervolume of the front so far, relative to NSGA-II's reference point; 0 without a front.
  double hypervolume = 0;
};

/// Result of search_allocation().
struct AllocationResult {
  Certificate certificate;
  AllocationPoint best;
  /// Plan that make_tiles() selects.
  AllocationPoint automatic;
  /// Evaluated plans that no other dominates in latency, energy and peak memory, by ascending
  /// latency.
  std::vector<AllocationPoint> front;
  std::vector<AllocationTrace> trace;
  std::size_t evaluations = 0; ///< by this search
  bool exact = false;          ///< true: exhaustive search; `best` is optimal
};

/// Searches for the best allocation. Small spaces use branch and bound over operators. Larger
/// spaces use NSGA-II from automatic, balanced and single-core starts, then local search from its
/// best plan. The result is no worse than the automatic plan, the given plan and the starts; limits
/// never interrupt the first two. The same seed yields the same result for any number of jobs. With
/// a limit on memory, no space is searched exhaustively. Throws InfeasibleError if no evaluated
/// plan is feasible within that limit.
AllocationResult search_allocation(AllocationEvaluator& evaluator,
                                   const AllocationSearchOptions& options,
                                   const SearchControl& control);

/// Best of `count` uniformly random plans, for comparison.
AllocationPoint best_random_allocation(AllocationEvaluator& evaluator, Objective objective,
                                       std::size_t count, const SearchControl& control);

} // namespace monet
