// solve_recompute(): exact rematerialisation. Finds the cheapest plan within a budget with a proof,
// or the best plan and a lower bound on the cost.
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <vector>

namespace monet {

/// Options of solve_recompute().
struct RecomputeExactOptions {
  std::vector<RecomputePlan> starts; ///< known plans; those within the budget prune the search
  std::int64_t nodes = 20'000;       ///< maximum nodes of branch and bound, in total
  /// Maximum number of states in the search by states, which precedes the integer programs; 0: no
  /// such search.
  std::size_t states = 200'000;
};

/// Finds the cheapest plan within a budget. Small problems and small budgets are searched by
/// states, where a state is the set of live buffers before each first run. Otherwise the solver
/// alternates between a relaxation and the plan that its solution describes, until both have the
/// same cost. The relaxation is an integer program over stages, which are ranges of operators, with
/// increasing detail. The bound covers every plan: any operator may run again anywhere, any number
/// of times.
///
/// `infeasible` is set only if it is proven. The result does not depend on the number of jobs. A
/// deadline or stop leaves the best plan and bound so far.
RecomputeResult solve_recompute(const RecomputeProblem& problem, std::int64_t budget,
                                const SearchControl& control = {},
                                const RecomputeExactOptions& options = {});

} // namespace monet
