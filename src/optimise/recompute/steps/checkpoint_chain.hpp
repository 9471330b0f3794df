// Recomputation plans of steps whose forward part is a chain of blocks.
#pragma once

#include "monet/optimise/checkpoint_search.hpp"

#include <cstddef>
#include <vector>

namespace monet {

/// Cuts the forward part where a single buffer crosses that gradients also read, and solves the
/// chain of blocks (solve_chain()) for `budgets` amounts of memory. The data of a block that its
/// gradients read is its tape. Returns plans with falling memory in this model, which ignores other
/// limits of the step. Empty for fewer than three blocks or several micro-batches.
std::vector<RecomputePlan> chain_plans(const CheckpointSpace& space, std::size_t budgets,
                                       const SearchControl& control);

} // namespace monet
