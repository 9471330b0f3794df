// Search for the activations to recompute: for one budget, for a front of budgets, and with the
// genetic algorithm of the original study for comparison.
#pragma once

#include "monet/optimise/checkpointing.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// Measure of memory that a budget limits.
enum class CheckpointMemory {
  peak,   ///< maximum of live bytes, including all tensors
  stored, ///< bytes carried from the forward into the backward part, see stored_bytes()
};

/// Method of the search for checkpoints.
enum class CheckpointMethod {
  automatic,  ///< best of all methods except `genetic`, with a bound
  heuristics, ///< published heuristics: sqrt(n), greedy, DTR; no bound
  chain,      ///< dynamic programming, for steps that are a chain of blocks; no bound
  genetic,    ///< NSGA-II with one bit per stored activation; no bound
};

/// Settings of the original study's search. A genome has one bit for every activation that the step
/// stores and can recompute; a set bit drops it. A dropped activation is recomputed from the
/// activations stored before it.
struct GeneticSettings {
  std::size_t population = 100;
  std::size_t generations = 50;
};

/// Options of the search for checkpoints.
struct CheckpointOptions {
  CheckpointMemory memory = CheckpointMemory::peak;
  CheckpointMethod method = CheckpointMethod::automatic;
  GeneticSettings genetic;
  std::vector<RecomputePlan> starts; ///< plans that the result must not be worse than
  std::int64_t effort = 400'000'000; ///< of search_recompute(), per budget of peak memory
  std::int64_t nodes = 200;          ///< of solve_recompute(), for small steps
};

/// A plan and its figures.
struct CheckpointPoint {
  RecomputePlan plan;
  std::int64_t cost = 0;   ///< cost in the problem: sum over all runs
  std::int64_t second = 0; ///< sum of the second costs, if given
  std::int64_t peak_bytes = 0;
  std::int64_t stored_bytes = 0;

  /// Memory of the plan, by the given measure.
  std::int64_t memory(CheckpointMemory of) const {
    return of == CheckpointMemory::peak ? peak_bytes : stored_bytes;
  }
};
/// Computes the figures of a plan; `second` has a second cost per operator of the problem, or is
/// empty.
CheckpointPoint evaluate(const CheckpointSpace& space, RecomputePlan plan,
                         std::span<const std::int64_t> second = {});

/// Lower bound on the memory of every plan. A buffer that cannot be recomputed is live from its
/// producer to its last reader, and every operator also has its inputs and outputs.
std::int64_t min_memory(const CheckpointSpace& space, CheckpointMemory of);

/// Finds the cheapest plan within each budget; budgets are in descending order. A larger budget
/// never has a costlier plan or a higher bound, since results of other budgets are reused.
std::vector<RecomputeResult> checkpoint_front(const CheckpointSpace& space,
                                              std::span<const std::int64_t> budgets,
                                              const CheckpointOptions& options,
                                              const SearchControl& control);

/// Result for one budget.
struct CheckpointRow {
  std::int64_t budget = 0;
  RecomputeResult result;
  std::optional<CheckpointPoint> point; ///< figures of the plan
};
/// Results of checkpoint_front() as rows. With `to_the_least`, if the last budget has no plan but
/// is not proven infeasible, a bisection towards the previous budget follows. It spends little
/// effort per step and adds the minimum memory for which it finds a plan.
std::vector<CheckpointRow> checkpoint_rows(const CheckpointSpace& space,
                                           std::span<const std::int64_t> second,
                                           std::span<const std::int64_t> budgets,
                                           const CheckpointOptions& options, bool to_the_least,
                                           const SearchControl& control);
/// Checks a row like the verify() for RecomputeResult. Also throws InternalError if the plan
/// exceeds the budget.
void verify(const CheckpointSpace& space, CheckpointMemory memory, const CheckpointRow& row);

/// Finds plans with NSGA-II: the points that it found and that no other dominates in (cost, second
/// cost, memory). `second` has a second cost per operator of the problem.
std::vector<CheckpointPoint> genetic_checkpoints(const CheckpointSpace& space,
                                                 std::span<const std::int64_t> second,
                                                 CheckpointMemory memory,
                                                 const GeneticSettings& settings,
                                                 const SearchControl& control);

/// A plan that is at least as good as a given one.
struct DominatingPoint {
  CheckpointPoint point;
  /// Lower bound on the cost of plans that are no worse in memory and second cost.
  double bound = 0;
};
/// Finds, for every point, a plan that is no worse in cost, second cost and memory. For stored
/// bytes this is the cheapest plan, unless an earlier result is no worse either. For peak memory it
/// is the best plan found.
std::vector<DominatingPoint> dominate(const CheckpointSpace& space,
                                      std::span<const std::int64_t> second,
                                      std::span<const CheckpointPoint> points,
                                      CheckpointMemory memory, const SearchControl& control);

} // namespace monet
