// Computes the figures of a modelled step (latency, energy, memory, off-chip traffic) from its
// timeline, and finds the memories that operands bypass. model_step() uses it.
#include "monet/base/errors.hpp"
#include "monet/model/model_step.hpp"
#include "monet/schedule/tile_costs.hpp"
#include "monet/training_graph/liveness.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace monet {

namespace {

/// Index into StepFigures::phases; recomputation counts as backward.
std::size_t place_of(Phase phase) {
  return static_cast<std::size_t>(phase == Phase::recompute ? Phase::backward : phase);
}

/// Memory name, operand, bits of an element and bits of the memory.
using Key = std::tuple<std::string, MemoryOperand, std::int64_t, std::int64_t>;

/// Memories that operands of one tile bypass because an element does not fit.
std::set<Key> bypassed_by(const CoreProblem& problem, const Core& core) {
  std::set<Key> found;
  if (problem.compute == ComputeKind::copy)
    return found;
  for (const ProblemOperand& operand : problem.operands) {
    const std::int64_t bits = std::max(operand.bits, operand.partial_bits);
    const std::vector<std::size_t> levels = core.levels(operand.memory);
    for (std::size_t l = 0; l + 1 < levels.size(); ++l) {
      const Memory& memory = core.memories[levels[l]];
      if (bits > memory.size.value)
        found.emplace(memory.name, operand.memory, bits, memory.size.value);
    }
  }
  return found;
}

} // namespace

double StepFigures::value(Objective objective) const {
  if (!feasible)
    return std::numeric_limits<double>::infinity();
  switch (objective) {
  case Objective::latency:
    return static_cast<double>(latency_cycles);
  case Objective::energy:
    return energy_pj;
  case Objective::edp:
    return energy_pj * static_cast<double>(latency_cycles);
  case Objective::dram:
    return static_cast<double>(offchip_bits);
  case Objective::memory:
    return static_cast<double>(peak_memory_bytes);
  default:
    throw InternalError("no objective of a step");
  }
}

StepFigures figures_of(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
                       const Chip& chip) {
  StepFigures figures;
  figures.latency_cycles = timeline.makespan.value;
  figures.peak_memory_bytes = total(timeline.peak.live);
  figures.stored_bytes = step.stored_bytes;
  figures.tiles = static_cast<std::int64_t>(tiles.tiles.size());
  const std::vector<Cycles> latencies = phase_latencies(timeline, step);
  for (std::size_t i = 0; i < latencies.size(); ++i)
    figures.phases[place_of(timeline.phases[i].phase)].cycles = latencies[i].value;
  figures.energy = energy_of(timeline);
  figures.energy_pj = figures.energy.total().picojoules().value;
  for (const TileRun& run : timeline.runs) {
    const RunCost& cost = timeline.cost_of(run);
    figures.phases[place_of(step.graph.op(run.op).phase)].energy += cost.compute + cost.memory;
  }
  for (const Transfer& transfer : timeline.transfers) {
    const TransferCost& cost = timeline.cost_of(transfer);
    const Route& route = timeline.route_of(transfer);
    std::int64_t bits = route.from == chip.offchip ? cost.bits.value : 0;
    if (std::find(route.to.begin(), route.to.end(), chip.offchip) != route.to.end())
      bits += cost.bits.value;
    StepFigures::OfPhase& phase = figures.phases[place_of(step.graph.op(transfer.op).phase)];
    phase.energy += cost.link_energy + cost.offchip_energy + cost.onchip_energy;
    phase.offchip_bits += bits;
    figures.offchip_bits += bits;
  }
  return figures;
}

std::vector<BypassedMemory> bypassed_memories(const TrainingGraph& step, const TileGraph& tiles,
                                              const Chip& chip) {
  std::vector<BypassedMemory> found;
  std::map<Key, std::size_t> known;
  for (std::size_t i = 0; i < tiles.operators.size(); ++i) {
    const OperatorTiling& tiling = tiles.operators[i];
    std::set<CoreId> seen;
    std::set<Key> of_operator;
    for (std::uint32_t t = tiling.first; t < tiling.last; ++t) {
      const Tile& tile = tiles.tiles[t];
      const Core& core = chip.cores[tile.core.index()];
      if (!seen.insert(tile.core).second)
        continue;
      const CoreProblem problem = core_problem(tile, tiles.ranges(TileId(t)), step, chip);
      for (const Key& key : bypassed_by(problem, core)) {
        const auto [at, added] = known.emplace(key, found.size());
        const auto& [memory, operand, bits, size] = key;
        if (added)
          found.push_back({memory, core.name, operand, bits, size, 0, OpId(i)});
        if (of_operator.insert(key).second)
          ++found[at->second].operators;
      }
    }
  }
  return found;
}

} // namespace monet
