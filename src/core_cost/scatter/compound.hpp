// Nests of several products over the same loops: attention and its gradient.
#pragma once

#include "monet/core_cost/core_cost.hpp"

#include <optional>
#include <vector>

namespace monet::core_cost_detail {

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
