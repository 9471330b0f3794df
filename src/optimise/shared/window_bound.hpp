// Lower bounds on the cost of recomputation, derived from the memory that is available at one
// moment (moment_bound()) or at a few (window_bound()).
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <vector>

namespace monet {

/// Result of window_bound().
struct WindowBound {
  std::int64_t cost = 0;   ///< no plan within the budget costs less
  bool infeasible = false; ///< true: no plan is within the budget (proven)
  bool interrupted = false;
  /// Per operator: minimum total cost of the repeated runs after its first run. One more entry at
  /// the end is 0.
  std::vector<std::int64_t> later;
};

/// Computes the bound. At the first run of an operator, a buffer that was produced before and is
/// read before the end of a window is either live or recomputed within the window. For a price per
/// byte, the cheapest combination is a minimum cut. Disjoint windows add up; the bound is the best
/// sum over windows that begin and end at `moments` operators. They are spread over the part where
/// storing everything exceeds the budget (0: the number that takes a second or less). The bound
/// holds for every plan.
WindowBound window_bound(const RecomputeProblem& problem, std::int64_t budget,
                         const SearchControl& control, std::size_t moments = 0);

/// Bound for all plans within a budget, derived from the first run of operator `at`. A buffer that
/// was produced before and is read later is either live at that moment or recomputed after it.
struct MomentBound {
  double cost = 0;         ///< no plan within the budget costs less
  bool infeasible = false; ///< true: no plan is within the budget (proven)
};
/// Computes the bound for the first run of operator `at`.
MomentBound moment_bound(const RecomputeProblem& problem, std::uint32_t at, std::int64_t budget,
                         const SearchControl& control);

} // namespace monet
