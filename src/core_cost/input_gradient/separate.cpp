// Costs nests of several products as separate products, together or as one compound product;
// input_gradient.cpp chooses between these.
#include "core_cost/input_gradient/separate.hpp"

#include "base/shared/checked.hpp"
#include "core_cost/input_gradient/combine.hpp"
#include "core_cost/model/nest_model.hpp"

#include <algorithm>

namespace monet::core_cost_detail {

namespace {

/// Assigns memories as for a separate product: the first factor as input, the second as weight. If
/// those have separate memories, an operand stays in one of them for all products.
void assign_memories(const Core& core, CoreProblem& product) {
  if (core.top(MemoryOperand::I1) == core.top(MemoryOperand::I2)) {
    product.operands[1].memory = MemoryOperand::I1;
    product.operands[2].memory = MemoryOperand::I2;
  }
}

/// Core without the memory held by operands that the product does not use.
Core beside_the_others(const CoreProblem& problem, const ProductPart& part, const Core& core) {
  return with_less_memory(
      core, problem.operands,
      [&](std::size_t i) {
        const bool own = std::ranges::find(part.operands, i) != part.operands.end();
        return own || problem.operands[i].offchip ? 0 : region_bits(problem.operands[i]);
      },
      "operands of other products");
}

using Group = std::vector<std::size_t>;

/// Groups operands after the first by equal accesses; the largest groups come first.
std::vector<Group> group_alike(const CoreProblem& problem) {
  std::vector<Group> groups;
  for (std::size_t i = 1; i < problem.operands.size(); ++i) {
    const ProblemOperand& operand = problem.operands[i];
    const auto same = std::ranges::find_if(groups, [&](const Group& group) {
      const ProblemOperand& first = problem.operands[group.front()];
      return first.axes == operand.axes && first.extents == operand.extents;
    });
    if (same == groups.end()) {
      groups.push_back({i});
    } else {
      same->push_back(i);
    }
  }
  const auto size = [&](const Group& group) {
    return checked_product(problem.operands[group.front()].extents);
  };
  std::ranges::stable_sort(groups,
                           [&](const Group& a, const Group& b) { return size(a) > size(b); });
  return groups;
}

/// Merges the group along an axis indexed by the loop over products.
ProblemOperand merged(const CoreProblem& problem, const Group& group, std::uint32_t products) {
  ProblemOperand operand = problem.operands[group.front()];
  const auto reads = std::ranges::find_if(
      group, [&](std::size_t i) { return problem.operands[i].mode == AccessMode::read; });
  if (reads != group.end())
    operand.memory = problem.operands[*reads].memory;
  operand.mode = AccessMode::read;
  for (const std::size_t i : group) {
    operand.bits = std::max(operand.bits, problem.operands[i].bits);
    operand.offchip = operand.offchip || problem.operands[i].offchip;
  }
  if (operand.memory == MemoryOperand::O)
    operand.memory = MemoryOperand::I1;
  operand.partial_bits = operand.bits;
  if (group.size() > 1) {
    operand.axes.push_back({{{products, 1}}, 0, false});
    operand.extents.push_back(static_cast<std::int64_t>(group.size()));
  }
  return operand;
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
  sum.variant = "separate";
  return sum;
}

std::optional<Compound> find_compound(const CoreProblem& problem) {
  if (std::ranges::all_of(problem.products, &NestProduct::is_whole))
    return std::nullopt;
  const std::size_t count = problem.operands.size();
  const auto products = static_cast<std::uint32_t>(problem.dims.size());
  Compound compound;
  compound.problem = problem;
  compound.problem.products.clear();
  compound.problem.dims.push_back({"P", std::ssize(problem.products), true});
  const auto outputs = std::ranges::count_if(
      problem.operands, [](const ProblemOperand& o) { return o.mode != AccessMode::read; });
  if (outputs <= 1 && count <= kMaxOperands) {
    for (std::size_t i = 0; i < count; ++i)
      compound.part_of.emplace_back(i);
    return compound;
  }
  compound.problem.operands = {problem.operands[0]};
  compound.part_of.assign(count, std::nullopt);
  compound.part_of[0] = 0;
  for (const Group& group : group_alike(problem)) {
    const std::size_t place = compound.problem.operands.size();
    if (place == kMaxOperands)
      break;
    compound.problem.operands.push_back(merged(problem, group, products));
    for (const std::size_t i : group)
      compound.part_of[i] = place;
  }
  return compound;
}

CoreCost share_out(const CoreProblem& problem, const Compound& compound, CoreCost cost) {
  const std::size_t count = problem.operands.size();
  std::vector<OffchipTraffic> traffic(count);
  std::vector<Bits> resident(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ProblemOperand& operand = problem.operands[i];
    const auto place = compound.part_of[i];
    std::int64_t moved = region_bits(operand);
    std::int64_t slice = 0;
    if (place) {
      const auto members = std::ranges::count(compound.part_of, place);
      const auto streamed = std::ranges::count_if(problem.operands, [&](const auto& other) {
        return other.offchip &&
               compound.part_of[static_cast<std::size_t>(&other - problem.operands.data())] ==
                   place;
      });
      const OffchipTraffic& whole = cost.offchip[*place];
      const std::int64_t bits = whole.read.value + whole.write.value;
      moved = std::max(moved, ceil_div(bits, std::max<std::int64_t>(streamed, 1)));
      slice = ceil_div(cost.resident[*place].value, static_cast<std::int64_t>(members));
    }
    resident[i] = Bits{operand.offchip ? slice : region_bits(operand)};
    if (i == 0) { // the result is unchanged
      traffic[i] = cost.offchip[0];
      resident[i] = cost.resident[0];
    } else if (operand.offchip) {
      (operand.mode == AccessMode::read ? traffic[i].read : traffic[i].write) = Bits{moved};
    }
  }
  cost.offchip = std::move(traffic);
  cost.resident = std::move(resident);
  for (LevelEnergy& level : cost.levels) {
    const auto first = std::ranges::find(compound.part_of, std::optional(level.operand));
    level.operand = static_cast<std::size_t>(first - compound.part_of.begin());
  }
  return cost;
}

} // namespace monet::core_cost_detail
