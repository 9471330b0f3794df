#include "monet/model/figures.hpp"

#include "monet/base/errors.hpp"
#include "monet/training/liveness.hpp"

#include <algorithm>
#include <limits>

namespace monet {

namespace {

std::size_t place_of(Phase phase) {
  return static_cast<std::size_t>(phase == Phase::recompute ? Phase::backward : phase);
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
  EnergySplit& energy = figures.energy;
  for (const TileRun& run : timeline.runs) {
    const RunCost& cost = timeline.cost_of(run);
    energy.compute += cost.compute;
    energy.onchip_memory += cost.memory;
    figures.phases[place_of(step.graph.op(run.op).phase)].energy += cost.compute + cost.memory;
  }
  for (const Transfer& transfer : timeline.transfers) {
    const TransferCost& cost = timeline.cost_of(transfer);
    energy.links += cost.link_energy;
    energy.offchip += cost.offchip_energy;
    energy.onchip_memory += cost.onchip_energy;
    const Route& route = timeline.route_of(transfer);
    std::int64_t bits = route.from == chip.offchip ? cost.bits.value : 0;
    if (std::find(route.to.begin(), route.to.end(), chip.offchip) != route.to.end())
      bits += cost.bits.value;
    StepFigures::OfPhase& phase = figures.phases[place_of(step.graph.op(transfer.op).phase)];
    phase.energy += cost.link_energy + cost.offchip_energy + cost.onchip_energy;
    phase.offchip_bits += bits;
    figures.offchip_bits += bits;
  }
  for (const Energy& leakage : timeline.leakage)
    energy.leakage += leakage;
  figures.energy_pj = energy.total().picojoules().value;
  return figures;
}

} // namespace monet
