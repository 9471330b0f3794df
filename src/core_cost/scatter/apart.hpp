// Nests of several products whose operands all are the operator's: both gradients of a layer.
#pragma once

#include "core_cost/scatter/input_gradient.hpp"

#include <vector>

namespace monet::core_cost_detail {

/// One product of a problem, as a problem of its own.
struct ProductPart {
  CoreProblem problem;
  std::vector<std::size_t> operands; ///< of the whole problem, by operand of `problem`
};
/// Every product of the problem; all three operands of each are the problem's.
std::vector<ProductPart> products_of(const CoreProblem& problem, const Core& core);

/// One product after the other on the core: times, energies and streamed bits add up; what stays on
/// the chip stays for both, so that an operand that both read is brought once. InfeasibleError when
/// a product does not fit beside what stays of the others.
CoreCost cost_apart(const CoreProblem& problem, const Core& core, const CoreCostOptions& options,
                    const Solver& solve);

/// The best of that and, of what is streamed, of the parts of every shared loop (shared_loop.hpp).
CoreCost cost_together(const CoreProblem& problem, const Core& core, const CoreCostOptions& options,
                       const Solver& solve);

} // namespace monet::core_cost_detail
