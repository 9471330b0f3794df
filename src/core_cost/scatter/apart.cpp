#include "core_cost/scatter/apart.hpp"

#include "core_cost/model/nest_model.hpp"
#include "core_cost/scatter/combine.hpp"

#include <algorithm>

namespace monet::core_cost_detail {

namespace {

/// As the operator of the product alone would lie: the first factor as input, the second as weight.
/// Where those have memories of their own, an operand lies in one of them for all products.
void assign_memories(const Core& core, CoreProblem& product) {
  if (core.top(MemoryOperand::I1) == core.top(MemoryOperand::I2)) {
    product.operands[1].memory = MemoryOperand::I1;
    product.operands[2].memory = MemoryOperand::I2;
  }
}

/// Beside what stays of operands that the product lacks.
Core beside_the_others(const CoreProblem& problem, const ProductPart& part, const Core& core) {
  return with_less_memory(
      core, problem.operands,
      [&](std::size_t i) {
        const bool own = std::ranges::find(part.operands, i) != part.operands.end();
        return own || problem.operands[i].offchip ? 0 : region_bits(problem.operands[i]);
      },
      "operands of other products");
}

} // namespace

std::vector<ProductPart> products_of(const CoreProblem& problem, const Core& core) {
  std::vector<ProductPart> parts;
  for (const NestProduct& product : problem.products) {
    ProductPart& part = parts.emplace_back();
    part.problem.compute = problem.compute;
    part.problem.dims = problem.dims;
    part.problem.work = problem.work;
    for (const auto& operand : {product.result, product.first, product.second}) {
      part.operands.push_back(operand.value());
      part.problem.operands.push_back(problem.operands.at(*operand));
    }
    assign_memories(core, part.problem);
  }
  return parts;
}

CoreCost cost_apart(const CoreProblem& problem, const Core& core, const CoreCostOptions& options,
                    const Solver& solve) {
  CoreCost sum;
  sum.offchip.resize(problem.operands.size());
  sum.resident.resize(problem.operands.size());
  for (const ProductPart& part : products_of(problem, core)) {
    const CoreCost one = solve(part.problem, beside_the_others(problem, part, core), options);
    add_cost(one, 1, part.operands, sum);
  }
  sum.latency = sum.parts.whole();
  sum.variant = "apart";
  return sum;
}

} // namespace monet::core_cost_detail
