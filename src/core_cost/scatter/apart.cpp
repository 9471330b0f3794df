#include "core_cost/scatter/apart.hpp"

#include "core_cost/model/nest_model.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"

#include <fmt/core.h>

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

/// The core with its outermost memories less what stays in them of operands that the product lacks.
Core beside_the_others(const CoreProblem& problem, const ProductPart& part, const Core& core) {
  Core smaller = core;
  for (Memory& memory : smaller.memories) {
    std::int64_t others = 0;
    for (std::size_t i = 0; i < problem.operands.size(); ++i) {
      const ProblemOperand& operand = problem.operands[i];
      const bool own = std::ranges::find(part.operands, i) != part.operands.end();
      if (!own && !operand.offchip && smaller.top(operand.memory) == &memory)
        others = checked_add(others, region_bits(operand));
    }
    const std::int64_t taken = ceil_div(others, instances(core, memory));
    if (taken > 0 && taken >= memory.size.value) {
      throw InfeasibleError(fmt::format(
          "core '{}': operands of other products take {} bits, but memory '{}' holds {}", core.name,
          taken, memory.name, memory.size.value));
    }
    memory.size.value -= taken;
  }
  return smaller;
}

} // namespace

void add_cost(const CoreCost& one, std::span<const std::size_t> operands, CoreCost& sum) {
  const double before = sum.parts.ideal_temporal;
  sum.parts.ideal_temporal += one.parts.ideal_temporal;
  sum.parts.stall += one.parts.stall;
  sum.parts.onload += one.parts.onload;
  sum.parts.offload += one.parts.offload;
  if (sum.parts.ideal_temporal > 0) {
    sum.spatial_utilisation =
        (sum.spatial_utilisation * before + one.spatial_utilisation * one.parts.ideal_temporal) /
        sum.parts.ideal_temporal;
  }
  sum.ideal += one.ideal;
  sum.macs_executed = checked_add(sum.macs_executed, one.macs_executed);
  sum.compute_energy += one.compute_energy;
  sum.memory_energy += one.memory_energy;
  sum.effort.space += one.effort.space;
  sum.effort.visited += one.effort.visited;
  sum.effort.pruned += one.effort.pruned;
  sum.effort.exact = sum.effort.exact && one.effort.exact;
  sum.latency_bound += one.latency_bound;
  sum.energy_bound += one.energy_bound;
  if (sum.spatial.unrolled.empty()) {
    sum.spatial = one.spatial;
    sum.temporal = one.temporal;
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t whole = operands[i];
    sum.offchip[whole].read += one.offchip[i].read;
    sum.offchip[whole].write += one.offchip[i].write;
    sum.resident[whole] = std::max(sum.resident[whole], one.resident[i]);
  }
  for (const LevelEnergy& level : one.levels) {
    const std::size_t whole = operands[level.operand];
    const auto known = std::ranges::find_if(sum.levels, [&](const LevelEnergy& other) {
      return other.operand == whole && other.memory == level.memory;
    });
    LevelEnergy& all = known != sum.levels.end() ? *known : sum.levels.emplace_back();
    all.memory = level.memory;
    all.operand = whole;
    all.energy += level.energy;
    for (std::size_t d = 0; d < level.accesses.size(); ++d)
      all.accesses[d] += level.accesses[d];
  }
}

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
    add_cost(one, part.operands, sum);
  }
  sum.latency = {static_cast<std::int64_t>(sum.parts.total())};
  sum.variant = "apart";
  return sum;
}

} // namespace monet::core_cost_detail
