// Nests of several products: those whose operands all are the operator's, as both gradients of a
// layer, and those over the same loops, as attention and its gradient.
#pragma once

#include "core_cost/input_gradient/input_gradient.hpp"

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

/// Products that share values which do not leave the operator (the scores of attention) as one
/// product, with a loop P that counts them behind the others. Operands that the loops touch alike
/// (keys and values; queries, results and their gradients) become one with an axis of its own for
/// the loop over the products, unless there are few: as large as they are together, each part moved
/// for the product that needs it.
struct Compound {
  CoreProblem problem;
  /// Operand of `problem` that an operand of the compound problem is part of; none for small ones
  /// (a logarithm per row) that find no place: they are moved once.
  std::vector<std::optional<std::size_t>> part_of;
};

/// nullopt when the problem is one product, or all operands of all products are the problem's.
std::optional<Compound> find_compound(const CoreProblem& problem);

/// The cost of `compound.problem` with traffic and room shared out to the operands of `problem`.
CoreCost share_out(const CoreProblem& problem, const Compound& compound, CoreCost cost);

} // namespace monet::core_cost_detail
