// Cost of a tile's run, as timelines store it.
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/schedule/timeline.hpp"

namespace monet {

RunCost run_cost(const CoreProblem& problem, const CoreCost& cost);

} // namespace monet
