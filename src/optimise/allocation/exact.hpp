// Small spaces of allocations, searched to the end.
#pragma once

#include "monet/optimise/allocation.hpp"

namespace monet {

/// Branch and bound: operators in topological order, choices by their bound, plans cut off whose
/// bound is no better than the best so far. `best` holds a plan to begin with and the best
/// afterwards. False when the control or `most` evaluations ended it; `bound` is then what no plan
/// is below, else the value of the best.
bool search_all(AllocationEvaluator& evaluator, const AllocationBounds& bounds, Objective objective,
                std::size_t most, const SearchControl& control, AllocationPoint& best,
                double& bound);

} // namespace monet
