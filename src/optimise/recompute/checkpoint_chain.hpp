// Plans of steps whose forward part is a chain of blocks.
#pragma once

#include "monet/optimise/checkpointing.hpp"

#include <cstddef>
#include <vector>

namespace monet {

/// Cuts the forward part where one buffer alone crosses that gradients read, too, and solves the
/// chain of blocks between (solve_chain()) for `budgets` amounts of memory: what a block's
/// gradients read of it is its tape. Plans for less and less memory by that model, without limits
/// of the real step; none where there are fewer than three blocks or several micro-batches.
std::vector<RecomputePlan> chain_plans(const CheckpointSpace& space, std::size_t budgets,
                                       const SearchControl& control);

} // namespace monet
