// Rematerialisation solved with a proof: the cheapest plan within a budget, or the best found and
// a bound that no plan beats.
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <vector>

namespace monet {

struct RecomputeExactOptions {
  std::vector<RecomputePlan> starts; ///< known plans: those within the budget cut the search
  std::int64_t nodes = 20'000;       ///< of branch and bound, in all
  std::size_t states = 200'000;      ///< that are searched one by one before any program; 0: none
};

/// Small problems and small budgets are searched state by state, what is there before each first
/// run. Otherwise alternates a relaxation of growing detail (integer programs over stages, ranges
/// of operators) with the plan that its solution describes, until both cost the same. The bound
/// holds for every plan: any operator again anywhere, any number of times.
///
/// `infeasible` is set only where it is proven. The same answer for any number of jobs; a deadline
/// or stop leaves the best plan and bound so far.
RecomputeResult solve_recompute(const RecomputeProblem& problem, std::int64_t budget,
                                const SearchControl& control = {},
                                const RecomputeExactOptions& options = {});

} // namespace monet
