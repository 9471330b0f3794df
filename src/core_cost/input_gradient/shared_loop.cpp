// cost_in_parts(): runs several products for one part of a shared loop after another.
#include "base/shared/checked.hpp"
#include "core_cost/input_gradient/combine.hpp"
#include "core_cost/input_gradient/separate.hpp"
#include "core_cost/model/nest_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace monet::core_cost_detail {

namespace {

bool has_loop(const ProblemOperand& operand, std::uint32_t dim) {
  return std::ranges::any_of(operand.axes,
                             [&](const AxisExpr& axis) { return has_loop(axis, dim); });
}

/// Whether parts of the loop touch parts of the operand, disjoint for results.
bool can_pass(const ProblemOperand& operand, std::uint32_t dim) {
  if (operand.opaque || operand.passes != 1)
    return false;
  return std::ranges::none_of(operand.axes, [&](const AxisExpr& axis) {
    const bool overlaps = operand.mode != AccessMode::read && axis.terms.size() > 1;
    return axis.data_dependent || (overlaps && has_loop(axis, dim));
  });
}

/// Elements along an axis that `length` iterations of the loop and all iterations of the others
/// touch.
std::int64_t reach(const CoreProblem& problem, const ProblemOperand& operand, std::size_t a,
                   std::uint32_t dim, std::int64_t length) {
  const AxisExpr& axis = operand.axes[a];
  if (!has_loop(axis, dim))
    return operand.extents[a];
  std::int64_t span = 1;
  for (const AffineTerm& term : axis.terms) {
    const std::int64_t size = term.dim == dim ? length : problem.dims[term.dim].size;
    span = checked_add(span, checked_multiply(std::abs(term.coefficient), size - 1));
  }
  return std::min(span, operand.extents[a]);
}

/// One part of the loop as a problem without streamed operands.
CoreProblem part_of(const CoreProblem& problem, std::uint32_t dim, std::int64_t length) {
  CoreProblem part = problem;
  part.dims[dim].size = length;
  for (std::size_t i = 0; i < part.operands.size(); ++i) {
    ProblemOperand& operand = part.operands[i];
    operand.offchip = false;
    for (std::size_t a = 0; a < operand.axes.size(); ++a)
      operand.extents[a] = reach(problem, problem.operands[i], a, dim, length);
  }
  return part;
}

class Parts {
public:
  Parts(const CoreProblem& problem, std::uint32_t dim, const Core& core)
      : problem_(problem), dim_(dim), core_(core) {}

  bool possible() const {
    return problem_.dims[dim_].size > 1 && streams(problem_) &&
           std::ranges::all_of(problem_.operands, [&](const ProblemOperand& operand) {
             return can_pass(operand, dim_);
           });
  }

  /// Bits of the operand on the chip while parts of that length run.
  std::int64_t room_of(std::size_t i, const CoreProblem& part) const {
    const ProblemOperand& whole = problem_.operands[i];
    if (!passes(i))
      return footprint(whole);
    return checked_multiply(2, footprint(part.operands[i]));
  }

  /// Maximum iterations of a part that fit; 0 if not even one does.
  std::int64_t longest() const {
    std::int64_t least = 0; // known to fit
    std::int64_t most = problem_.dims[dim_].size;
    while (least + 1 < most) { // a part must be shorter than the loop
      const std::int64_t length = least + (most - least) / 2;
      (fits(length) ? least : most) = length;
    }
    return least;
  }

  /// Core while one part runs, without the memory of the passing slices and the kept data.
  Core core_beside(const CoreProblem& part) const {
    return with_less_memory(
        core_, problem_.operands,
        [&](std::size_t i) { return room_of(i, part) - footprint(part.operands[i]); }, "operands");
  }

  /// Whether the operand is streamed and has the loop.
  bool passes(std::size_t i) const {
    return problem_.operands[i].offchip && has_loop(problem_.operands[i], dim_);
  }

private:
  bool fits(std::int64_t length) const {
    const CoreProblem part = part_of(problem_, dim_, length);
    for (const Memory& memory : core_.memories) {
      std::int64_t taken = 0;
      for (std::size_t i = 0; i < problem_.operands.size(); ++i) {
        if (core_.top(problem_.operands[i].memory) == &memory)
          taken = checked_add(taken, room_of(i, part));
      }
      if (taken > checked_multiply(memory.size.value, instances(core_, memory)))
        return false;
    }
    return true;
  }

  const CoreProblem& problem_;
  std::uint32_t dim_;
  const Core& core_;
};

/// Charges a streamed operand's transfers at the outermost memory's ports.
void charge_passing(const CoreProblem& problem, const Core& core, std::size_t i, CoreCost& cost) {
  const ProblemOperand& operand = problem.operands[i];
  const Memory* top = core.top(operand.memory);
  const bool reads = operand.mode == AccessMode::read;
  const Direction direction = reads ? Direction::fh : Direction::th;
  const MemoryPort* port = top ? port_of(*top, operand.memory, direction) : nullptr;
  const std::int64_t bits = reads ? cost.offchip[i].read.value : cost.offchip[i].write.value;
  if (port == nullptr || bits == 0)
    return;
  const std::int64_t words = ceil_div(bits, port->bandwidth_max);
  const Picojoules energy{static_cast<double>(words) *
                          (reads ? top->write_energy_pj : top->read_energy_pj)};
  cost.memory_energy += energy;
  for (LevelEnergy& level : cost.levels) {
    if (level.operand != i || level.memory != top->name)
      continue;
    level.energy += energy;
    level.accesses[static_cast<std::size_t>(direction)] += words;
    return;
  }
  LevelEnergy level{top->name, i, energy, {}};
  level.accesses[static_cast<std::size_t>(direction)] = words;
  cost.levels.push_back(std::move(level));
}

} // namespace

std::optional<CoreCost> cost_in_parts(const CoreProblem& problem, std::uint32_t dim,
                                      const Core& core, const CoreCostOptions& options,
                                      const Solver& solve) {
  const Parts parts(problem, dim, core);
  if (!parts.possible())
    return std::nullopt;
  const std::int64_t longest = parts.longest();
  if (longest == 0)
    return std::nullopt;
  const std::int64_t size = problem.dims[dim].size;
  const std::int64_t count = ceil_div(size, longest);
  const std::int64_t length = ceil_div(size, count); // equal parts; the last may be shorter
  const std::int64_t whole = size / length;
  const std::int64_t rest = size % length;
  const std::size_t operands = problem.operands.size();
  const CoreProblem part = part_of(problem, dim, length);
  CoreCost sum;
  sum.offchip.resize(operands);
  sum.resident.resize(operands);
  const Core remaining_core = parts.core_beside(part);
  add_cost(cost_apart(part, remaining_core, options, solve), whole, {}, sum);
  std::optional<CoreProblem> last;
  if (rest > 0) {
    last = part_of(problem, dim, rest);
    add_cost(cost_apart(*last, remaining_core, options, solve), 1, {}, sum);
  }
  for (std::size_t i = 0; i < operands; ++i) {
    const ProblemOperand& operand = problem.operands[i];
    sum.resident[i] = Bits{parts.room_of(i, part)};
    if (!operand.offchip) {
      sum.resident[i] = Bits{region_bits(operand)};
      continue;
    }
    std::int64_t moved = checked_product(operand.extents);
    if (parts.passes(i)) {
      moved = checked_multiply(checked_product(part.operands[i].extents), whole);
      moved = checked_add(moved, last ? checked_product(last->operands[i].extents) : 0);
    }
    moved = checked_multiply(moved, operand.bits);
    (operand.mode == AccessMode::read ? sum.offchip[i].read : sum.offchip[i].write) = Bits{moved};
    charge_passing(problem, core, i, sum);
  }
  sum.latency = sum.parts.whole();
  sum.variant = fmt::format("joint over {} in {}", problem.dims[dim].name, whole + (rest > 0));
  return sum;
}

CoreCost cost_together(const CoreProblem& problem, const Core& core, const CoreCostOptions& options,
                       const Solver& solve) {
  BestCost best(options);
  best.attempt([&] { return cost_apart(problem, core, options, solve); });
  for (std::uint32_t dim = 0; streams(problem) && dim < problem.dims.size(); ++dim)
    best.attempt([&] { return cost_in_parts(problem, dim, core, options, solve); });
  return best.take();
}

} // namespace monet::core_cost_detail
