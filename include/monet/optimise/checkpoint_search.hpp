// Which activations to make again: one budget, a front of budgets, and the genetic algorithm of the
// original study to compare with.
#pragma once

#include "monet/optimise/checkpointing.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// What is limited.
enum class CheckpointMemory {
  peak,   ///< the most bytes that live at once, everything counted
  stored, ///< bytes carried from the forward into the backward part, see stored_bytes()
};

enum class CheckpointMethod {
  automatic,  ///< the best of all the others but the genetic one, and a bound
  heuristics, ///< what others use: sqrt(n), greedy, DTR; no bound
  chain,      ///< dynamic programming over a chain of blocks, where the step is one; no bound
  genetic,    ///< NSGA-II over one bit for each stored activation; no bound
};

/// The original's search: a bit for every activation that the step stores and can make again, set
/// where it is dropped; what a dropped one is made from again is what is stored before it.
struct GeneticSettings {
  std::size_t population = 100;
  std::size_t generations = 50;
};

struct CheckpointOptions {
  CheckpointMemory memory = CheckpointMemory::peak;
  CheckpointMethod method = CheckpointMethod::automatic;
  GeneticSettings genetic;
  std::vector<RecomputePlan> starts; ///< plans to be no worse than
  std::int64_t effort = 400'000'000; ///< of search_recompute(), for each peak
  std::int64_t nodes = 200;          ///< of solve_recompute(), where the step is small enough
};

/// One plan with everything that is asked of it.
struct CheckpointPoint {
  RecomputePlan plan;
  std::int64_t cost = 0;   ///< of the problem: sum over all runs
  std::int64_t second = 0; ///< sum of the second costs, where there are some
  std::int64_t peak_bytes = 0;
  std::int64_t stored_bytes = 0;

  std::int64_t memory(CheckpointMemory of) const {
    return of == CheckpointMemory::peak ? peak_bytes : stored_bytes;
  }
};
CheckpointPoint evaluate(const CheckpointSpace& space, RecomputePlan plan,
                         std::span<const std::int64_t> second = {});

/// No plan needs less: what cannot be made again is there from its maker to its last reader, and
/// every operator has what it reads and writes beside that.
std::int64_t min_memory(const CheckpointSpace& space, CheckpointMemory of);

/// The cheapest plans within each budget, in the order of the budgets, which fall. A larger budget
/// is never worse and its bound never higher: plans and bounds of the others are taken over.
std::vector<RecomputeResult> checkpoint_front(const CheckpointSpace& space,
                                              std::span<const std::int64_t> budgets,
                                              const CheckpointOptions& options,
                                              const SearchControl& control);

/// What one budget came to.
struct CheckpointRow {
  std::int64_t budget = 0;
  RecomputeResult result;
  std::optional<CheckpointPoint> point; ///< of the plan
};
/// checkpoint_front() as rows. With `to_the_least`, where the last budget has no plan but none is
/// proven, halves what is between it and the one before, with little effort for each, and adds the
/// least memory for which a plan is found.
std::vector<CheckpointRow> checkpoint_rows(const CheckpointSpace& space,
                                           std::span<const std::int64_t> second,
                                           std::span<const std::int64_t> budgets,
                                           const CheckpointOptions& options, bool to_the_least,
                                           const SearchControl& control);
/// As verify() of a RecomputeResult, and InternalError where the plan is not within its budget.
void verify(const CheckpointSpace& space, CheckpointMemory memory, const CheckpointRow& row);

/// Points that nothing NSGA-II met dominates in (cost, second cost, memory). `second` per operator
/// of the problem.
std::vector<CheckpointPoint> genetic_checkpoints(const CheckpointSpace& space,
                                                 std::span<const std::int64_t> second,
                                                 CheckpointMemory memory,
                                                 const GeneticSettings& settings,
                                                 const SearchControl& control);

struct DominatingPoint {
  CheckpointPoint point;
  double bound = 0; ///< nothing that is no worse in memory and second cost costs less
};
/// For every point one that is no worse in cost, second cost and memory: of stored bytes the
/// cheapest, unless a point found before is no worse either; of the peak the best that is found.
std::vector<DominatingPoint> dominate(const CheckpointSpace& space,
                                      std::span<const std::int64_t> second,
                                      std::span<const CheckpointPoint> points,
                                      CheckpointMemory memory, const SearchControl& control);

} // namespace monet
