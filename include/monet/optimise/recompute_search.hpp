// Plans of recomputation for problems of any size, by search. Finds plans, proves nothing: bounds
// are window_bound's and solve_recompute's.
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <vector>

namespace monet {

struct RecomputeSearchOptions {
  /// Each chain ends after so much work, in slots that its changes touch (about 1e9 in three
  /// seconds), or after so many rounds.
  std::int64_t effort = 1'500'000'000;
  std::int64_t rounds = 10'000;
  /// Plans to start from and never to be worse than, whatever they need: of other budgets, of other
  /// methods.
  std::vector<RecomputePlan> starts;
  double bound = 0; ///< no plan costs less: the search ends when it gets there
};

/// The cheapest plan within `budget` bytes that it finds, with base_cost() or options.bound as
/// bound. Starts also from Chen's and DTR's plans.
///
/// First runs of operators part the plan into slots; in each, an operator runs again at most once,
/// in the problem's order (the space of Checkmate's stages; starts outside it are kept as they
/// are). A start is made to fit by dropping, at the fullest slot, the buffer that costs least per
/// byte of overflow; then rounds remove some of the further runs, make it fit again and keep what
/// is cheaper. Same options and seed: same plan, with any number of threads.
RecomputeResult search_recompute(const RecomputeProblem& problem, std::int64_t budget,
                                 const RecomputeSearchOptions& options,
                                 const SearchControl& control);

/// From a plan down: halves what is between a budget that is too small and what `plan` needs, with
/// little effort for each; the plan that needs least of those found.
RecomputePlan least_memory_plan(const RecomputeProblem& problem, RecomputePlan plan,
                                std::int64_t too_small, const SearchControl& control);

} // namespace monet
