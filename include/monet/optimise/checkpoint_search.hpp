// Search for the activations to recompute: for one budget, for a front of budgets, and with the
// genetic algorithm of the original study for comparison.
// Example:
//   std::vector<OpId> runs_within(std::int64_t bytes, const TrainingGraph& step,
//                                 const Timeline& timeline) {
//     const CheckpointSpace space = checkpoint_space(step, operator_costs(timeline, step).cycles);
//     const RecomputeResult result = checkpoint_front(space, {&bytes, 1}, {}, {}).front();
//     return result.plan ? runs_of(*result.plan) : std::vector<OpId>{}; // {}: no plan
//   }
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"
#include "monet/schedule/timeline.hpp"
#include "monet/training_graph/training.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// Cost of one run of each operator when operators run one after another.
struct OperatorCosts {
  /// Cycles per operator, during which a core runs it or its data move.
  std::vector<std::int64_t> cycles;
  /// Energy per operator, of compute, memories and links, in units of 1/64 pJ.
  std::vector<std::int64_t> energy;
};

/// Computes the costs from a layer-by-layer schedule of the step. Leakage, which belongs to the
/// whole step, is excluded.
OperatorCosts operator_costs(const Timeline& timeline, const TrainingGraph& step);

/// The recomputation problem of a step, in the order of its graph. Live bytes are those of
/// find_liveness(). A buffer is a piece of memory with all its views and all tensors that overwrite
/// it in place. Parameters, states and constants are always live. Operator 0 provides the inputs;
/// the others are the graph's.
struct CheckpointSpace {
  RecomputeProblem problem;     ///< with the costs passed to checkpoint_space()
  std::vector<TensorId> tensor; ///< per buffer: the first tensor in it
  /// Per operator: 1 in the backward part, 2 for an update, else 0.
  std::vector<std::uint8_t> backward;
  std::vector<std::uint32_t> micro; ///< per operator: its micro-batch, from 0
  /// Per buffer: whether it is produced before the backward part and read in it.
  std::vector<std::uint8_t> needed;
};

/// Makes the recomputation problem of a step; `costs` is indexed by the graph's operators.
/// Operators of the forward part may run again unless they cannot (recompute_obstacle) or produce
/// one of the `pinned` tensors. A tensor that is stored although no gradient reads it (by PyTorch
/// or the user) has one more read, at the operator where find_liveness() frees it.
CheckpointSpace checkpoint_space(const TrainingGraph& step, std::span<const std::int64_t> costs,
                                 std::span<const TensorId> pinned = {});

/// Runs of the graph's operators in a plan, for with_recomputation().
std::vector<OpId> runs_of(const RecomputePlan& plan);
/// Removes runs whose results are not read; neither the peak nor the cost increases.
RecomputePlan without_idle_runs(const RecomputeProblem& problem, const RecomputePlan& plan);

/// Per buffer: whether the plan carries its content from the forward part into the backward part.
std::vector<std::uint8_t> carried(const CheckpointSpace& space, const RecomputePlan& plan);
/// Bytes of the carried buffers, in the micro-batch with the maximum. They equal
/// TrainingGraph::stored_bytes of the rewritten step under StorePolicy::minimal.
std::int64_t stored_bytes(const CheckpointSpace& space, const RecomputePlan& plan);

/// Makes the plan that carries only the buffers with `stored` set into the backward part. Every
/// other buffer is recomputed once, before its first reader there, after its operands. Returns
/// nullopt if another buffer is needed and cannot be recomputed.
std::optional<RecomputePlan> plan_storing(const CheckpointSpace& space,
                                          std::span<const std::uint8_t> stored);

/// Upper limit on a second cost of the runs.
struct CostLimit {
  std::span<const std::int64_t> costs; ///< per operator of the problem
  std::int64_t limit = 0;              ///< on the sum over all runs
};

/// Options of solve_stored().
struct StoredOptions {
  std::optional<CostLimit> limit;
  const RecomputePlan* start = nullptr; ///< initial plan; may be null
  std::int64_t nodes = 1000;            ///< maximum nodes of branch and bound
  double gap = 1e-6;                    ///< relative gap at which the search ends
};

/// Finds the cheapest plan with stored_bytes() <= `bytes` by 0/1 programming. A buffer that the
/// backward part needs is stored or recomputed, and so are the buffers that its recomputation
/// needs. The bound is valid for all plans, since each must run at least those operators again.
RecomputeResult solve_stored(const CheckpointSpace& space, std::int64_t bytes,
                             const SearchControl& control, const StoredOptions& options = {});

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
