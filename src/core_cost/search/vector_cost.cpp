// Lanes instead of a mapped array: every scalar operation of an iteration takes one lane for its
// cycles, operands stream once per pass through the core's top memory, and whichever takes longer
// sets the pace.

#include "base/shared/checked.hpp"
#include "core_cost/model/nest_model.hpp"
#include "core_cost/search/mapping_search.hpp"
#include "hardware/shared/core_program.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

namespace monet::core_cost_detail {

namespace {

/// Distinct elements the tile touches: per axis the span of its expression inside the tensor, at
/// most one per value.
std::int64_t footprint(const CoreProblem& problem, const ProblemOperand& operand) {
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < operand.extents.size(); ++i) {
    std::int64_t touched = operand.extents[i];
    if (!operand.opaque && !operand.axes[i].data_dependent) {
      std::int64_t span = 1;
      std::int64_t combinations = 1;
      for (const AffineTerm& term : operand.axes[i].terms) {
        const std::int64_t size = problem.dims[term.dim].size;
        span = checked_add(span, checked_multiply(std::abs(term.coefficient), size - 1));
        combinations = checked_multiply(combinations, size);
      }
      touched = std::min({touched, span, combinations});
    }
    elements = checked_multiply(elements, touched);
  }
  return elements;
}

bool touches_output(const CoreProblem& problem, std::size_t dim) {
  return std::ranges::any_of(problem.operands, [&](const auto& operand) {
    return operand.mode != AccessMode::read && moves_with(operand, dim);
  });
}

/// Elements that pass through the top memory per sweep: each one once, as lanes keep what they
/// broadcast. A data-dependent index is looked up every time, even in a small table; loops that are
/// summed over and do not move it (the classes of a loss) look up the same again.
std::int64_t elements_per_pass(const CoreProblem& problem, const ProblemOperand& operand) {
  if (!looks_up(operand))
    return footprint(problem, operand);
  std::int64_t lookups = 1;
  for (std::size_t d = 0; d < problem.dims.size(); ++d) {
    if (operand.mode != AccessMode::read || moves_with(operand, d) || touches_output(problem, d))
      lookups = checked_multiply(lookups, problem.dims[d].size);
  }
  return lookups;
}

/// Lanes that work on one result together, and how many results they have: what is left to add up
/// between lanes at the end. {1, 0} when nothing is summed.
struct SharedSums {
  std::int64_t lanes = 1;
  std::int64_t results = 0;
};

SharedSums shared_sums(const CoreProblem& problem, std::int64_t lanes) {
  std::int64_t summed = 1;
  for (std::size_t d = 0; d < problem.dims.size(); ++d) {
    if (!touches_output(problem, d))
      summed = checked_multiply(summed, problem.dims[d].size);
  }
  std::int64_t results = 0;
  for (const ProblemOperand& operand : problem.operands) {
    if (operand.mode != AccessMode::read && !looks_up(operand))
      results = std::max(results, footprint(problem, operand));
  }
  if (results == 0 || summed == 1 || problem.compute == ComputeKind::copy)
    return {};
  return {std::clamp<std::int64_t>(lanes / results, 1, summed), results};
}

double lane_cycles(const VectorWork& work, const Core& core) {
  return work.add + work.multiply + work.compare +
         core.cycles_per_divide * (work.divide + work.square_root) +
         core.cycles_per_transcendental * work.transcendental;
}

struct Accesses {
  std::int64_t read = 0; ///< bits
  std::int64_t write = 0;
};

Accesses through_top(const ProblemOperand& operand, std::int64_t elements) {
  const std::int64_t bits =
      checked_multiply(checked_multiply(elements, operand.bits), std::max(1, operand.passes));
  switch (operand.mode) {
  case AccessMode::read:
    return {bits, 0};
  case AccessMode::write:
    return {0, bits};
  case AccessMode::accumulate:
    return {bits, bits};
  }
  return {};
}

/// Between lanes and registers, where results that are summed over are read, added to and written
/// back in every iteration, as wide as partial sums are.
Accesses at_registers(const CoreProblem& problem, const ProblemOperand& operand,
                      std::int64_t elements) {
  Accesses accesses = through_top(operand, elements);
  bool sums = false;
  for (std::size_t d = 0; d < problem.dims.size(); ++d)
    sums = sums || (problem.dims[d].size > 1 && !touches_output(problem, d));
  if (operand.mode == AccessMode::write && sums && problem.compute == ComputeKind::vector) {
    accesses.write = checked_multiply(elements, std::max(operand.bits, operand.partial_bits));
    accesses.read = accesses.write;
  }
  return accesses;
}

/// Off-chip traffic of a streamed operand. All of an output is written, including zeros without
/// contributions; if rows are overwritten at indices, the others are unchanged.
OffchipTraffic streamed_traffic(const ProblemOperand& operand, Accesses streamed) {
  if (operand.mode == AccessMode::read)
    return {{streamed.read}, {0}};
  if (operand.mode == AccessMode::write && looks_up(operand))
    return {{0}, {streamed.write}};
  return {{streamed.read}, {std::max(streamed.write, region_bits(operand))}};
}

/// Charges one operand at one memory, and books its cycles on the ports used.
class LevelCharge {
public:
  LevelCharge(CoreCost& cost, std::map<const MemoryPort*, std::int64_t>& port_bits)
      : cost_(cost), ports_(port_bits) {}

  void charge(const Memory& memory, std::size_t operand, MemoryOperand kind,
              const std::array<std::int64_t, kDirections>& bits, bool on_ports,
              std::int64_t instances = 1) {
    LevelEnergy level{.memory = memory.name, .operand = operand};
    for (std::size_t d = 0; d < kDirections; ++d) {
      const MemoryPort* port = port_of(memory, kind, static_cast<Direction>(d));
      if (port == nullptr || bits[d] == 0)
        continue;
      const std::int64_t words = ceil_div(bits[d], port->bandwidth_max);
      const bool write = d == static_cast<std::size_t>(Direction::fh) ||
                         d == static_cast<std::size_t>(Direction::fl);
      level.accesses[d] = words;
      level.energy += Picojoules{static_cast<double>(words) *
                                 (write ? memory.write_energy_pj : memory.read_energy_pj)};
      if (on_ports)
        ports_[port] += ceil_div(bits[d], instances);
    }
    cost_.memory_energy += level.energy;
    cost_.levels.push_back(std::move(level));
  }

private:
  CoreCost& cost_;
  std::map<const MemoryPort*, std::int64_t>&
      ports_; // only looked up and maximised over: order does not matter
};

/// Bits by direction: top memories exchange with the level below, registers also with the lanes.
std::array<std::int64_t, kDirections> directions(Accesses with_above, Accesses with_below) {
  std::array<std::int64_t, kDirections> bits{};
  bits[static_cast<std::size_t>(Direction::fh)] = with_above.read;
  bits[static_cast<std::size_t>(Direction::th)] = with_above.write;
  bits[static_cast<std::size_t>(Direction::tl)] = with_below.read;
  bits[static_cast<std::size_t>(Direction::fl)] = with_below.write;
  return bits;
}

void charge_operand(const CoreProblem& problem, const Core& core, std::size_t index, CoreCost& cost,
                    std::map<const MemoryPort*, std::int64_t>& port_bits) {
  const ProblemOperand& operand = problem.operands[index];
  const std::vector<std::size_t> levels = core.levels(operand.memory);
  if (levels.empty()) {
    throw InfeasibleError(
        fmt::format("core '{}' has no memory for {}", core.name, operand_name(problem, index)));
  }
  const Memory& top = core.memories[levels.back()];
  const std::int64_t all = footprint(problem, operand);
  const std::int64_t per_pass = elements_per_pass(problem, operand);
  const std::int64_t capacity = checked_multiply(top.size.value, instances(core, top));
  if (operand.bits > top.size.value) {
    throw InfeasibleError(fmt::format(
        "core '{}': one element of {} needs {} bits, but memory '{}' holds {}", core.name,
        operand_name(problem, index), operand.bits, top.name, top.size.value));
  }
  if (!operand.offchip && checked_multiply(all, operand.bits) > capacity) {
    throw InfeasibleError(fmt::format("core '{}': {} needs {} bits, but memory '{}' holds {}",
                                      core.name, operand_name(problem, index), all * operand.bits,
                                      top.name, capacity));
  }
  const Accesses streamed = through_top(operand, per_pass);
  LevelCharge charge(cost, port_bits);
  for (std::size_t l = 0; l + 1 < levels.size();
       ++l) { // registers: bypassed when an element is wider
    const Memory& memory = core.memories[levels[l]];
    if (operand.bits > memory.size.value)
      continue;
    const std::int64_t each =
        problem.compute == ComputeKind::copy ? per_pass : iterations_of(problem);
    charge.charge(memory, index, operand.memory,
                  directions(streamed, at_registers(problem, operand, each)), false);
  }
  charge.charge(top, index, operand.memory,
                directions(operand.offchip ? streamed : Accesses{}, streamed), true,
                instances(core, top));
  cost.offchip.push_back(operand.offchip ? streamed_traffic(operand, streamed) : OffchipTraffic{});
  const std::int64_t whole = all * operand.bits;
  // Streamed operands hold two port words or one element per lane, whichever is more: one in use,
  // one on its way.
  std::int64_t slice = checked_multiply(core.lanes(), operand.bits);
  for (const MemoryPort& port : top.ports)
    slice = std::max(slice, port.bandwidth_max);
  cost.resident.push_back({operand.offchip ? std::min({whole, 2 * slice, capacity}) : whole});
}

/// An element that a lane reads or writes takes an instruction; each result of a sum takes a loop,
/// and what passes by takes a transfer.
double issue_cycles(const CoreProblem& problem, const IssueCosts& issue, const SharedSums& shared,
                    std::int64_t lanes) {
  double accesses = 0;
  double transfers = 0;
  for (const ProblemOperand& operand : problem.operands) {
    const double passes = std::max(1, operand.passes);
    const double each = operand.mode == AccessMode::accumulate ? 2 : 1;
    accesses += each * passes * static_cast<double>(elements_per_pass(problem, operand));
    transfers += operand.offchip ? each * passes : 1;
  }
  const auto sums = static_cast<double>(shared.results * shared.lanes);
  return (accesses + sums * issue.loop_overhead) / static_cast<double>(lanes) +
         transfers * issue.dma_setup;
}

} // namespace

CoreCost vector_cost(const CoreProblem& problem, const Core& core, const ModelChoices& choices) {
  CoreCost cost;
  const std::int64_t iterations = iterations_of(problem);
  const std::int64_t lanes = std::max<std::int64_t>(1, core.lanes());
  const double per_lane =
      problem.compute == ComputeKind::copy ? 0 : lane_cycles(problem.work, core);
  const std::int64_t rounds = ceil_div(iterations, lanes);
  // Lanes that share a result add up in a tree.
  const SharedSums shared = shared_sums(problem, lanes);
  const auto tree =
      static_cast<double>(std::bit_width(static_cast<std::uint64_t>(shared.lanes - 1)));
  const double compute = std::ceil(static_cast<double>(rounds) * per_lane) + tree;
  cost.ideal = {static_cast<std::int64_t>(
      std::ceil(static_cast<double>(iterations) * per_lane / static_cast<double>(lanes)))};
  cost.spatial_utilisation = per_lane > 0
                                 ? static_cast<double>(iterations) /
                                       (static_cast<double>(rounds) * static_cast<double>(lanes))
                                 : 0;
  if (problem.compute != ComputeKind::copy) {
    const auto additions = static_cast<double>((shared.lanes - 1) * shared.results);
    cost.compute_energy = {(static_cast<double>(iterations) * problem.work.total() + additions) *
                           core.mac_energy_pj};
  }
  std::map<const MemoryPort*, std::int64_t> port_bits;
  std::int64_t fill = 0;
  for (std::size_t i = 0; i < problem.operands.size(); ++i) {
    charge_operand(problem, core, i, cost, port_bits);
    fill = std::max(fill, core.top(problem.operands[i].memory)->latency_cycles);
  }
  double port_cycles = 0;
  for (const auto& [port, bits] : port_bits)
    port_cycles = std::max(port_cycles, static_cast<double>(ceil_div(bits, port->bandwidth_max)));
  cost.parts.ideal_temporal = compute;
  const CoreProgram* program = choices.instruction_costs ? core.program.get() : nullptr;
  if (program != nullptr && program->issue)
    cost.parts.instructions = issue_cycles(problem, *program->issue, shared, lanes);
  cost.parts.stall = std::max(0.0, port_cycles - compute - cost.parts.instructions);
  if (program != nullptr && program->kernels)
    cost.parts.instructions += program->kernels->host_cycles;
  cost.parts.onload = static_cast<double>(std::max<std::int64_t>(fill, 1));
  cost.latency = cost.parts.whole();
  return cost;
}

} // namespace monet::core_cost_detail
