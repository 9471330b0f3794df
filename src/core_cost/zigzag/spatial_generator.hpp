// Unrollings as ZigZag 3.8.5 chooses them: the user's, reduced to what the layer and the core
// allow, and where array dimensions are left open, every divisor of every layer dimension, ranked
// by how much of the array they use and how many layer dimensions share it.
#pragma once

#include "core_cost/model/spatial_mapping.hpp"

#include <vector>

namespace monet::core_cost_detail {

/// `named` per array dim; an empty or missing entry is open. One unrolling when none is open, else
/// the options' `generated_unrollings` best, best first, from the loops that `spatial_hints` allow.
/// InfeasibleError when no combination is valid, or when there are too many to rank.
std::vector<ArrayUnrolling> zigzag_unrollings(const NestModel& model, const Hierarchy& hierarchy,
                                              const std::vector<std::vector<Unrolling>>& named,
                                              const CoreCostOptions& options);

} // namespace monet::core_cost_detail
