// Builds the core problem of a tile: sizes without names, the operands that are streamed from the
// off-chip memory, and the core's share of that memory's bandwidth. tile_costs.cpp solves it.
#include "base/shared/checked.hpp"
#include "hardware/shared/array_modes.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/schedule.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

/// Divisor: this part of a top memory is kept free as working space of streamed operands.
constexpr std::int64_t kStreamShare = 8;
/// Maximum operands of a problem for which other sets of streamed operands are tried.
constexpr std::size_t kMaxChoices = 4;
/// Maximum operands, instead of kMaxChoices, for operators that compute both gradients of a
/// product.
constexpr std::size_t kMaxPairChoices = 5;

MemoryOperand memory_operand(const LoopNest& nest, const Access& access, std::size_t read_index,
                             const Core& core) {
  if (access.mode != AccessMode::read)
    return MemoryOperand::O;
  bool weight = false;
  if (nest.compute == ComputeKind::mac)
    weight = access.role == "W" || (access.role != "I" && read_index > 0);
  const MemoryOperand wanted = weight ? MemoryOperand::I2 : MemoryOperand::I1;
  const MemoryOperand other = weight ? MemoryOperand::I1 : MemoryOperand::I2;
  return core.top(wanted) ? wanted : other;
}

/// The axis relative to the tile's first iteration and the region's first element. Equal tiles at
/// different places therefore have equal problems.
AxisExpr relative(const AxisExpr& axis, std::span<const Interval> tile, std::int64_t region_begin) {
  if (axis.data_dependent)
    return axis;
  AxisExpr moved = axis;
  for (const AffineTerm& term : axis.terms)
    moved.offset += term.coefficient * tile[term.dim].begin;
  moved.offset -= region_begin;
  return moved;
}

bool sums_up(const LoopNest& nest) {
  if (nest.products.size() > 1)
    return true;
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    if (nest.dims[d].size > 1 && is_reduction(nest, d))
      return true;
  }
  return false;
}

ProblemOperand problem_operand(const Operator& op, std::span<const Interval> tile,
                               const TrainingGraph& step, const Access& access) {
  const Tensor& tensor = step.graph.tensor(access.tensor);
  ProblemOperand operand;
  operand.mode = access.mode;
  operand.bits = core_bits_of(tensor.type);
  const bool partial = access.mode == AccessMode::accumulate ||
                       (access.mode == AccessMode::write && sums_up(op.nest));
  operand.partial_bits = partial ? std::max(operand.bits, bits_of(step.accumulate)) : operand.bits;
  operand.passes = access.passes;
  operand.opaque = access.opaque;
  const Box box = region(access, tile, tensor.shape);
  for (std::size_t a = 0; a < box.size(); ++a) {
    AxisExpr any;
    any.data_dependent = true;
    operand.axes.push_back(access.opaque ? any : relative(access.axes[a], tile, box[a].begin));
    operand.extents.push_back(box[a].size());
  }
  return operand;
}

/// Streams tables whose rows are overwritten: the table stays off-chip, and only the rows pass by.
void stream_tables(std::vector<ProblemOperand>& operands) {
  const bool overwrites = std::ranges::any_of(operands, [](const ProblemOperand& operand) {
    return operand.mode == AccessMode::write && looks_up(operand);
  });
  for (ProblemOperand& operand : operands)
    operand.offchip = operand.offchip || (overwrites && looks_up(operand));
}

/// Marks the largest operands of one top memory as off-chip until the others fit together with the
/// working space of the streamed ones. `sizes` is indexed by operand.
void mark_offchip(const std::vector<std::size_t>& members, std::int64_t capacity,
                  const std::vector<std::int64_t>& sizes, std::vector<ProblemOperand>& operands) {
  std::int64_t kept = 0;
  bool streams = false;
  for (const std::size_t i : members) {
    streams = streams || operands[i].offchip;
    kept = checked_add(kept, operands[i].offchip ? 0 : sizes[i]);
  }
  std::int64_t budget = streams ? capacity - capacity / kStreamShare : capacity;
  while (kept > budget) {
    std::size_t largest = operands.size();
    for (const std::size_t i : members) {
      if (operands[i].offchip || sizes[i] == 0)
        continue;
      if (largest == operands.size() || sizes[i] > sizes[largest])
        largest = i;
    }
    if (largest == operands.size())
      return;
    operands[largest].offchip = true;
    kept -= sizes[largest];
    budget = capacity - capacity / kStreamShare;
  }
}

/// A problem, and the operands that share each top memory.
struct Placed {
  CoreProblem problem;
  std::vector<std::vector<std::size_t>> members; ///< [memory of the core]
  std::vector<std::int64_t> capacity;
  std::vector<std::int64_t> sizes; ///< [operand], including its scales
};

/// Bits of the scales that are stored with the elements of an operand.
std::int64_t scales_beside(ElementType type, const ProblemOperand& operand) {
  if (!block_of(type).separate_scales)
    return 0;
  const std::int64_t elements = checked_product(operand.extents);
  return storage_of(type, elements).value - checked_multiply(elements, bits_of(type));
}

Placed place_operands(const Tile& tile, std::span<const Interval> ranges, const TrainingGraph& step,
                      const Chip& chip) {
  const Operator& op = step.graph.op(tile.op);
  const Core& core = chip.cores[tile.core.index()];
  Placed placed;
  CoreProblem& problem = placed.problem;
  problem.compute = op.nest.compute;
  problem.work = op.nest.work;
  problem.products = op.nest.products;
  if (!core.modes.empty())
    problem.across_blocks = loops_across_blocks(step.graph, op);
  for (std::size_t d = 0; d < op.nest.dims.size(); ++d) {
    problem.dims.push_back({op.nest.dims[d].name, ranges[d].size()});
  }
  placed.members.resize(core.memories.size());
  std::size_t reads = 0;
  for (const Access& access : op.nest.operands) {
    ProblemOperand operand = problem_operand(op, ranges, step, access);
    operand.memory = memory_operand(op.nest, access, reads, core);
    if (access.mode == AccessMode::read)
      ++reads;
    const Memory* top = core.top(operand.memory);
    if (top == nullptr) {
      throw InfeasibleError(fmt::format("core '{}' has no memory for operand '{}' of '{}'",
                                        core.name, access.role, op.name));
    }
    placed.members[static_cast<std::size_t>(top - core.memories.data())].push_back(
        problem.operands.size());
    problem.operands.push_back(std::move(operand));
  }
  for (std::size_t i = 0; i < problem.operands.size(); ++i) {
    const ElementType type = step.graph.tensor(op.nest.operands[i].tensor).type;
    placed.sizes.push_back(
        checked_add(footprint(problem.operands[i]), scales_beside(type, problem.operands[i])));
  }
  stream_tables(problem.operands);
  for (std::size_t i = 0; i < problem.operands.size(); ++i) // tensors in the host are streamed
    problem.operands[i].offchip |= lies_in_host(step.graph, op.nest.operands[i].tensor);
  for (const Memory& memory : core.memories)
    placed.capacity.push_back(checked_multiply(memory.size.value, instances(core, memory)));
  return placed;
}

/// Streams all operands that read one tensor if one of them is streamed. Memory holds copies per
/// tensor: a copy kept for one operand would also contain the data that the others read.
void stream_together(const LoopNest& nest, std::vector<ProblemOperand>& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].offchip || operands[i].mode != AccessMode::read)
      continue;
    for (std::size_t j = 0; j < operands.size(); ++j) {
      if (operands[j].mode == AccessMode::read &&
          nest.operands[i].tensor == nest.operands[j].tensor)
        operands[j].offchip = true;
    }
  }
}

/// True if the kept operands fit into every top memory, together with the working space of streamed
/// ones.
bool fits(const Placed& placed, const std::vector<ProblemOperand>& operands) {
  for (std::size_t m = 0; m < placed.members.size(); ++m) {
    std::int64_t kept = 0;
    std::int64_t room = placed.capacity[m];
    for (const std::size_t i : placed.members[m]) {
      if (operands[i].offchip)
        room = placed.capacity[m] - placed.capacity[m] / kStreamShare;
      else
        kept = checked_add(kept, placed.sizes[i]);
    }
    if (kept > room)
      return false;
  }
  return true;
}

/// True if products run one after the other: an operand kept for one product occupies space of the
/// others.
bool runs_apart(const CoreProblem& problem) {
  return !problem.products.empty() && std::ranges::all_of(problem.products, &NestProduct::is_whole);
}

/// True if no streamed operand could be kept in addition.
bool smallest(const Placed& placed, std::vector<ProblemOperand> operands) {
  for (ProblemOperand& operand : operands) {
    if (!operand.offchip)
      continue;
    operand.offchip = false;
    if (fits(placed, operands))
      return false;
    operand.offchip = true;
  }
  return true;
}

bool contains(const std::vector<LinkId>& links, LinkId id) {
  return std::ranges::find(links, id) != links.end();
}

/// Share of one direction in bits per cycle: the minimum over the port and the route's links, each
/// divided by the number of cores that use it.
template <class Route>
double share(const Chip& chip, const std::vector<LinkId>& links,
             const std::vector<CoreId>& together, double port, Route route_of) {
  double least = port / static_cast<double>(std::max<std::size_t>(1, together.size()));
  for (const LinkId id : links) {
    const auto users = std::ranges::count_if(
        together, [&](CoreId other) { return contains(route_of(other), id); });
    const auto bandwidth = static_cast<double>(chip.links[id.index()].bandwidth_bits_per_cycle);
    least = std::min(least, bandwidth / static_cast<double>(std::max<std::ptrdiff_t>(1, users)));
  }
  return least;
}

/// Energy of one bit over a route, in pJ.
double link_energy(const Chip& chip, const std::vector<LinkId>& links) {
  double pj = 0;
  for (const LinkId id : links) {
    const Link& link = chip.links[id.index()];
    pj += link.energy_pj_per_bit +
          link.energy_pj_per_cycle / static_cast<double>(link.bandwidth_bits_per_cycle);
  }
  return pj;
}

} // namespace

CoreProblem core_problem(const Tile& tile, std::span<const Interval> ranges,
                         const TrainingGraph& step, const Chip& chip) {
  Placed placed = place_operands(tile, ranges, step, chip);
  for (std::size_t m = 0; m < placed.members.size(); ++m) {
    if (!placed.members[m].empty())
      mark_offchip(placed.members[m], placed.capacity[m], placed.sizes, placed.problem.operands);
  }
  stream_together(step.graph.op(tile.op).nest, placed.problem.operands);
  return std::move(placed.problem);
}

std::vector<CoreProblem> streaming_choices(const Tile& tile, std::span<const Interval> ranges,
                                           const TrainingGraph& step, const Chip& chip) {
  std::vector<CoreProblem> choices{core_problem(tile, ranges, step, chip)};
  const CoreProblem& first = choices.front();
  const std::size_t n = first.operands.size();
  const bool pair = runs_apart(first);
  const std::size_t most = pair ? kMaxPairChoices : kMaxChoices;
  if (first.compute != ComputeKind::mac || n > most || !streams(first))
    return choices;
  const Placed placed = place_operands(tile, ranges, step, chip);
  CoreProblem problem = placed.problem;
  for (unsigned set = 1; set < 1U << n; ++set) {
    for (std::size_t i = 0; i < n; ++i)
      problem.operands[i].offchip = (set >> i & 1U) != 0;
    stream_together(step.graph.op(tile.op).nest, problem.operands);
    const bool all = set + 1 == 1U << n;
    const bool wanted =
        all || (fits(placed, problem.operands) && (pair || smallest(placed, problem.operands)));
    if (wanted && std::ranges::find(choices, problem) == choices.end())
      choices.push_back(problem);
  }
  return choices;
}

OffchipRate offchip_rate(const Chip& chip, CoreId core, const std::vector<CoreId>& together) {
  OffchipRate rate;
  if (!chip.offchip)
    return rate;
  const CoreId memory = *chip.offchip;
  const OffchipPort port = offchip_port(chip);
  const std::vector<LinkId>& in = chip.route(memory, core);
  const std::vector<LinkId>& out = chip.route(core, memory);
  const auto read = static_cast<double>(port.read_bits_per_cycle);
  const auto write = static_cast<double>(port.write_bits_per_cycle);
  rate.read_bits_per_cycle = share(
      chip, in, together,
      read, [&](CoreId other) -> const auto& { return chip.route(memory, other); });
  rate.write_bits_per_cycle = share(
      chip, out, together,
      write, [&](CoreId other) -> const auto& { return chip.route(other, memory); });
  rate.shared =
      port.shared || std::ranges::any_of(in, [&](LinkId id) { return contains(out, id); });
  rate.read_pj_per_bit = port.read_pj_per_bit + link_energy(chip, in);
  rate.write_pj_per_bit = port.write_pj_per_bit + link_energy(chip, out);
  return rate;
}

} // namespace monet
