// Cost of a scattering problem in each of its forms, and the best of them.
#pragma once

#include "core_cost/input_gradient/transposed.hpp"

#include <functional>

namespace monet::core_cost_detail {

/// Solves one problem without rewriting it (InputGradient::scatter): core_cost(), or a cache.
using Solver = std::function<CoreCost(const CoreProblem&, const Core&, const CoreCostOptions&)>;

/// core_cost() with other problems solved by `solve`.
CoreCost core_cost_with(const CoreProblem& problem, const Core& core,
                        const CoreCostOptions& options, const Solver& solve);

/// Latency and energy including off-chip traffic: the longer of computing and transferring, and the
/// sum of both energies.
struct Priced {
  double latency = 0; ///< cycles
  double energy = 0;  ///< pJ
};
Priced priced(const CoreCost& cost, const OffchipRate& rate);

} // namespace monet::core_cost_detail
