// What a technique takes and moves on a problem, as users see it.
#pragma once

#include "core_cost/joint_mapping/problem.hpp"

namespace monet::joint_mapping {

/// backward_cost() of a problem that make_problem() made of the pair, which may have been changed.
BackwardCost pair_cost(const PairProblem& problem, const GemmPair& pair, Technique technique,
                       const BackwardOptions& options);

/// Cycles, rounded up, of times and of bits.
std::int64_t cycles_of(Wide time, std::int64_t units);
std::int64_t transfer_cycles(Wide bits, const NpuMachine& machine);

} // namespace monet::joint_mapping
