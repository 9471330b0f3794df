// search_recompute(): heuristic search for recomputation plans of problems of any size. It proves
// no bounds; those are from window_bound() and solve_recompute().
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <vector>

namespace monet {

/// Options of search_recompute().
struct RecomputeSearchOptions {
  /// Maximum effort of each chain, in slots that its changes touch (about 1e9 in three seconds).
  std::int64_t effort = 1'500'000'000;
  /// Maximum number of rounds of each chain.
  std::int64_t rounds = 10'000;
  /// Plans to start from, whatever their memory, such as plans for other budgets or of other
  /// methods. The result is no worse than those within the budget.
  std::vector<RecomputePlan> starts;
  /// Lower bound on the cost of every plan; the search ends when it finds a plan with this cost.
  double bound = 0;
};

/// Finds a cheap plan within `budget` bytes, with base_cost() or options.bound as bound. Plans of
/// Chen's heuristics and DTR are further starts.
///
/// The first runs of operators divide the plan into slots. In each slot, an operator runs again at
/// most once, in the problem's order (the space of Checkmate's stages); starts outside this space
/// are kept unchanged. A start is repaired to fit the budget: at the fullest slot, the buffer with
/// the minimum cost per byte of overflow is dropped. Each round then removes some of the further
/// runs, repairs the plan and keeps it if it is cheaper. The same options and seed yield the same
/// plan with any number of threads.
RecomputeResult search_recompute(const RecomputeProblem& problem, std::int64_t budget,
                                 const RecomputeSearchOptions& options,
                                 const SearchControl& control);

/// Searches for the plan with minimum memory by bisection, from the memory of `plan` down to
/// `too_small`, a budget that is too small. Each step has little effort. Returns the plan found
/// that needs the least memory.
RecomputePlan least_memory_plan(const RecomputeProblem& problem, RecomputePlan plan,
                                std::int64_t too_small, const SearchControl& control);

} // namespace monet
