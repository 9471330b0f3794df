// Nests of several products: products whose operands all belong to the operator (both gradients of
// a layer), and products over equal loops (attention and its gradient).
#pragma once

#include "core_cost/input_gradient/input_gradient.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace monet::core_cost_detail {

/// One product of a problem, as a separate problem.
struct ProductPart {
  CoreProblem problem;
  std::vector<std::size_t> operands; ///< operand of the whole problem, by operand of `problem`
};
/// Every product of the problem; all three operands of each belong to the problem.
std::vector<ProductPart> products_of(const CoreProblem& problem, const Core& core);

/// Cost of running one product after another on the core: times, energies and streamed bits add up.
/// Data kept on the chip stay for all products, so a shared operand is read once. Throws
/// InfeasibleError if a product does not fit next to the data kept for the others.
CoreCost cost_apart(const CoreProblem& problem, const Core& core, const CoreCostOptions& options,
                    const Solver& solve);

/// The best of cost_apart() and, for streamed operands, cost_in_parts() over every shared loop.
CoreCost cost_together(const CoreProblem& problem, const Core& core, const CoreCostOptions& options,
                       const Solver& solve);

/// Cost of all products for one part of loop `dim` after another, in the minimum number of equal
/// parts that fit. An operand with the loop passes in slices, and each slice is double-buffered;
/// all products use the slice, so a shared operand crosses once. An operand without the loop stays
/// for all parts, partial sums at full width, and crosses once. Streamed operands therefore move
/// each element once, except halos. Returns nullopt if the loop does not qualify: a result's
/// windows overlap along it, an access is data-dependent or opaque, the kept data do not fit, or
/// nothing is streamed.
std::optional<CoreCost> cost_in_parts(const CoreProblem& problem, std::uint32_t dim,
                                      const Core& core, const CoreCostOptions& options,
                                      const Solver& solve);

/// Products that share values inside the operator (the scores of attention) as one product, with a
/// loop P over the products after the others. Operands with equal accesses (keys and values;
/// queries, results and their gradients) are merged along an additional axis for loop P, if there
/// are enough of them. The merged operand has their total size, and each part is moved for the
/// product that needs it.
struct Compound {
  CoreProblem problem;
  /// Operand of `problem` that contains an operand of the compound problem; none for small operands
  /// (a logarithm per row) without a place, which are moved once.
  std::vector<std::optional<std::size_t>> part_of;
};

/// Finds the compound product. nullopt if the problem is one product, or all operands of all
/// products belong to the problem.
std::optional<Compound> find_compound(const CoreProblem& problem);

/// Distributes the traffic and room of the cost of `compound.problem` over the operands of
/// `problem`.
CoreCost share_out(const CoreProblem& problem, const Compound& compound, CoreCost cost);

} // namespace monet::core_cost_detail
