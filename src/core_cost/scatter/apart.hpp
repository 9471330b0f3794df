// Nests of several products whose operands all are the operator's: both gradients of a layer.
#pragma once

#include "core_cost/scatter/input_gradient.hpp"

#include <cstdint>
#include <optional>
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

/// The best of that and, of what is streamed, of the parts of every shared loop.
CoreCost cost_together(const CoreProblem& problem, const Core& core, const CoreCostOptions& options,
                       const Solver& solve);

/// The products of the problem for one part of loop `dim` after the other: in as few equal parts as
/// fit. An operand with the loop passes slice by slice, twice the room of a slice being taken, so
/// that the next is brought while one is worked on, and all products meet the slice: what both read
/// crosses once. An operand without the loop stays from the first part to the last, partial sums in
/// their width, and crosses once. So streamed operands move no more than each has elements, halos
/// aside. nullopt where the loop is no such: a result's windows overlap along it, an access is data
/// dependent or opaque, what stays does not fit, or nothing is streamed.
std::optional<CoreCost> cost_in_parts(const CoreProblem& problem, std::uint32_t dim,
                                      const Core& core, const CoreCostOptions& options,
                                      const Solver& solve);

} // namespace monet::core_cost_detail
