// The best mapping of a multiply-accumulate nest: every spatial candidate, every order of its
// temporal loops.
#pragma once

#include "monet/core_cost/core_cost.hpp"

namespace monet::core_cost_detail {

CoreCost search_mapping(const CoreProblem& problem, const Core& core,
                        const CoreCostOptions& options);
/// Element-wise work, reductions and copies on lanes.
CoreCost vector_cost(const CoreProblem& problem, const Core& core, const ModelChoices& choices);

} // namespace monet::core_cost_detail
