// Simulated dynamic tensor rematerialisation.
#pragma once

#include "monet/optimise/recompute_problem.hpp"

namespace monet {

HeuristicPlan simulate_dtr(const RecomputeProblem& problem, std::int64_t budget,
                           RecomputeHeuristic heuristic, const SearchControl& control,
                           std::span<const std::uint32_t> released);

} // namespace monet
