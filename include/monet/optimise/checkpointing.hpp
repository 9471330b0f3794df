// Activation checkpointing of real steps: a training graph as a RecomputeProblem, plans as training
// graphs.
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

/// What one run of each operator costs, when operators run one after another.
struct OperatorCosts {
  std::vector<std::int64_t> cycles; ///< per operator: while a core runs it or its data move
  std::vector<std::int64_t> energy; ///< per operator: compute, memories, links; 1/64 pJ
};

/// Of a layer-by-layer schedule of the step. Leakage, which belongs to the whole, is left out.
OperatorCosts operator_costs(const Timeline& timeline, const TrainingGraph& step);

/// A step in the order of its graph. Live bytes are those of find_liveness(): a buffer is a piece
/// of memory with all its views and what overwrites it in place; parameters, states and constants
/// are there all the time. Operator 0 brings the inputs; the others are the graph's.
struct CheckpointSpace {
  RecomputeProblem problem;           ///< costs: those given
  std::vector<TensorId> tensor;       ///< per buffer: the first tensor that lies in it
  std::vector<std::uint8_t> backward; ///< per operator: 1 of the backward part, 2 an update
  std::vector<std::uint32_t> micro;   ///< per operator: its micro-batch, from 0
  std::vector<std::uint8_t> needed;   ///< per buffer: made before the backward part, read in it
};

/// `costs` per operator of the graph. Operators of the forward part may run again unless they
/// cannot (recompute_obstacle) or make one of the `pinned` tensors. What is stored although no
/// gradient reads it (PyTorch stores it, or the user keeps it) is read once more at the operator
/// where find_liveness() lets it go.
CheckpointSpace checkpoint_space(const TrainingGraph& step, std::span<const std::int64_t> costs,
                                 std::span<const TensorId> pinned = {});

/// The runs of the graph's operators, for with_recomputation().
std::vector<OpId> runs_of(const RecomputePlan& plan);
/// The plan without runs whose results nobody reads: no higher peak, no higher cost.
RecomputePlan without_idle_runs(const RecomputeProblem& problem, const RecomputePlan& plan);

/// Per buffer: whether the plan carries what the forward part made of it into the backward part.
std::vector<std::uint8_t> carried(const CheckpointSpace& space, const RecomputePlan& plan);
/// Their bytes, of the micro-batch with the most: TrainingGraph::stored_bytes of the rewritten step
/// under StorePolicy::minimal.
std::int64_t stored_bytes(const CheckpointSpace& space, const RecomputePlan& plan);

/// The plan that carries only the buffers with `stored` set into the backward part: everything else
/// is made again, once, before its first reader there, and its operands before it.
/// nullopt when something else is needed and cannot be made again.
std::optional<RecomputePlan> plan_storing(const CheckpointSpace& space,
                                          std::span<const std::uint8_t> stored);

/// A limit on a second cost of the runs.
struct CostLimit {
  std::span<const std::int64_t> costs; ///< per operator of the problem
  std::int64_t limit = 0;              ///< on their sum over all runs
};

struct StoredOptions {
  std::optional<CostLimit> limit;
  const RecomputePlan* start = nullptr; ///< to begin with
  std::int64_t nodes = 1000;            ///< of branch and bound
  double gap = 1e-6;                    ///< good enough
};

/// The cheapest plan with stored_bytes() <= `bytes`, as a 0/1 program: a buffer that the backward
/// part needs is stored or made again, so is what making it again needs. The bound holds for all
/// plans whatever, since each must run at least those operators again.
RecomputeResult solve_stored(const CheckpointSpace& space, std::int64_t bytes,
                             const SearchControl& control, const StoredOptions& options = {});

/// What holds for all plans within a budget because of one moment, when operator `at` runs for the
/// first time: what was made before and is read later is there or made again after it.
struct MomentBound {
  double cost = 0;         ///< no plan within the budget costs less
  bool infeasible = false; ///< proven: there is none
};
MomentBound moment_bound(const RecomputeProblem& problem, std::uint32_t at, std::int64_t budget,
                         const SearchControl& control);

} // namespace monet
