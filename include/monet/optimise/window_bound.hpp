// A bound on the cost of recomputation from what there is room for at a few moments.
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <vector>

namespace monet {

struct WindowBound {
  std::int64_t cost = 0;   ///< no plan within the budget costs less
  bool infeasible = false; ///< proven: there is none
  bool interrupted = false;
  /// Per operator, and 0 for none: what runs again after its first run costs at least.
  std::vector<std::int64_t> later;
};

/// At the first run of an operator, what was made before and is read up to the end of a window is
/// there, or made again within the window: the cheapest of both for a price per byte is a least
/// cut. Windows that do not overlap add up; the best of those that begin and end at `moments`
/// operators, spread over where storing everything passes the budget (0: as many as take a second
/// or less). The bound holds for every plan.
WindowBound window_bound(const RecomputeProblem& problem, std::int64_t budget,
                         const SearchControl& control, std::size_t moments = 0);

} // namespace monet
