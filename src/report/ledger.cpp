// Sums energy, busy time and traffic of a timeline (ledger.hpp) for the JSON of a step.
#include "report/ledger.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>

namespace monet {

namespace {

/// Total length of a union of intervals, which are added in order of their starts.
struct BusyTime {
  Cycles until;
  Cycles total;

  void add(Cycles start, Cycles end) {
    const Cycles from = std::max(start, until);
    if (end <= from)
      return;
    total += end - from;
    until = end;
  }
};

/// Splits a transfer's energy over its links in proportion to their charges; the last link receives
/// the rounding remainder.
void book_links(const Timeline& timeline, const Transfer& transfer, const Chip& chip,
                std::vector<LinkSums>& links) {
  const TransferCost& cost = timeline.cost_of(transfer);
  const std::vector<LinkId>& used = timeline.route_of(transfer).links;
  std::vector<double> charges;
  double sum = 0;
  for (const LinkId id : used) {
    const Link& link = chip.links.at(id.index());
    const auto bandwidth = static_cast<double>(link.bandwidth_bits_per_cycle);
    charges.push_back(static_cast<double>(cost.bits.value) *
                      (link.energy_pj_per_cycle / bandwidth + link.energy_pj_per_bit));
    sum += charges.back();
  }
  Energy left = cost.link_energy;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const double part = sum > 0 ? charges[i] / sum : 0;
    const auto units = static_cast<double>(cost.link_energy.units);
    const Energy share =
        i + 1 == charges.size() ? left : Energy{static_cast<std::int64_t>(part * units)};
    links.at(used[i].index()).energy += share;
    left = left - share;
  }
  internal_check(!used.empty() || cost.link_energy.units == 0,
                 "a transfer without links has link energy");
}

void book_runs(const Timeline& timeline, Ledger& ledger) {
  std::vector<BusyTime> busy(ledger.cores.size());
  std::vector<std::set<CoreId>> cores_of(ledger.layers.size());
  for (const TileRun& run : timeline.runs) {
    LayerSums& layer = ledger.layers.at(run.op.index());
    std::set<CoreId>& used = cores_of[run.op.index()];
    layer.start = used.empty() ? run.start : std::min(layer.start, run.start);
    layer.end = std::max(layer.end, run.end);
    const RunCost& cost = timeline.cost_of(run);
    layer.energy.compute += cost.compute;
    layer.energy.onchip_memory += cost.memory;
    for (std::size_t i = 0; i < kRunCauses; ++i)
      layer.causes[i] += cost.causes[i];
    layer.causes.back() += run.end - run.start - cost.latency;
    used.insert(run.core);
    if (!cost.variant.empty())
      layer.variants.insert(cost.variant);
    CoreSums& core = ledger.cores.at(run.core.index());
    core.energy += cost.compute + cost.memory;
    ++core.tiles;
    core.macs += cost.macs;
    busy[run.core.index()].add(run.start, run.end);
  }
  for (std::size_t i = 0; i < cores_of.size(); ++i) {
    ledger.layers[i].cores.assign(cores_of[i].begin(), cores_of[i].end());
  }
  for (std::size_t i = 0; i < busy.size(); ++i)
    ledger.cores[i].busy = busy[i].total;
}

/// Splits an energy equally over cores; the last core receives the rounding remainder.
void book_onchip(Energy energy, std::span<const CoreId> cores, Ledger& ledger) {
  Energy left = energy;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const Energy part = i + 1 == cores.size()
                            ? left
                            : Energy{energy.units / static_cast<std::int64_t>(cores.size())};
    ledger.cores.at(cores[i].index()).energy += part;
    left = left - part;
  }
}

void book_transfers(const Timeline& timeline, const Chip& chip, Ledger& ledger) {
  std::vector<BusyTime> busy(ledger.links.size());
  BusyTime offchip_busy;
  std::array<BusyTime, 2> port_busy;
  const bool shared_port = !chip.offchip || offchip_port(chip).shared;
  for (const Transfer& transfer : timeline.transfers) {
    LayerSums& layer = ledger.layers.at(transfer.op.index());
    const TransferCost& cost = timeline.cost_of(transfer);
    const Route& route = timeline.route_of(transfer);
    layer.energy.onchip_memory += cost.onchip_energy;
    layer.energy.links += cost.link_energy;
    layer.energy.offchip += cost.offchip_energy;
    const bool leaves = chip.offchip == route.to.front();
    book_onchip(cost.onchip_energy, leaves ? std::span(&route.from, 1) : std::span(route.to),
                ledger);
    if (leaves || chip.offchip == route.from) {
      layer.offchip += cost.bits;
      ledger.cores.at(chip.offchip->index()).energy += cost.offchip_energy;
      offchip_busy.add(transfer.start, transfer.end);
      const std::size_t port = leaves && !shared_port ? 1 : 0;
      ledger.ports.at(port).bits += cost.bits;
      port_busy.at(port).add(transfer.start, transfer.end);
    } else {
      internal_check(cost.offchip_energy.units == 0, "an on-chip transfer has off-chip energy");
    }
    book_links(timeline, transfer, chip, ledger.links);
    for (const LinkId link : route.links) {
      ledger.links[link.index()].bits += cost.bits;
      busy[link.index()].add(transfer.start, transfer.end);
    }
  }
  for (std::size_t i = 0; i < busy.size(); ++i)
    ledger.links[i].busy = busy[i].total;
  for (std::size_t i = 0; i < port_busy.size(); ++i)
    ledger.ports[i].busy = port_busy[i].total;
  if (chip.offchip)
    ledger.cores[chip.offchip->index()].busy = offchip_busy.total;
}

void book_memory(const Timeline& timeline, const Chip& chip, Ledger& ledger) {
  std::vector<Bits> held(ledger.cores.size());
  std::vector<CoreId> touched;
  const auto settle = [&] { // memory freed and memory allocated in the same cycle never coexist
    for (const CoreId core : touched) {
      Bits& peak = ledger.cores[core.index()].peak;
      peak = std::max(peak, held[core.index()]);
    }
    touched.clear();
  };
  const std::vector<MemoryEvent> events = memory_events(timeline);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const MemoryEvent& event = events[i];
    if (i > 0 && events[i - 1].time != event.time)
      settle();
    held.at(event.memory.index()) += event.delta;
    touched.push_back(event.memory);
  }
  settle();
  for (const std::vector<CoreId>& group : chip.shared_memory) {
    Bits peak;
    for (const CoreId core : group)
      peak = std::max(peak, ledger.cores.at(core.index()).peak);
    for (const CoreId core : group)
      ledger.cores[core.index()].peak = peak;
  }
}

} // namespace

Ledger make_ledger(const StepResult& result, const Chip& chip) {
  Ledger ledger;
  ledger.layers.resize(result.step->graph.operators().size());
  ledger.cores.resize(chip.cores.size());
  ledger.links.resize(chip.links.size());
  book_runs(*result.timeline, ledger);
  book_transfers(*result.timeline, chip, ledger);
  book_memory(*result.timeline, chip, ledger);
  for (std::size_t i = 0; i < result.timeline->leakage.size(); ++i)
    ledger.cores.at(i).energy += result.timeline->leakage[i];
  return ledger;
}

Bits capacity_of(const Chip& chip, CoreId core) {
  if (chip.offchip == core)
    return offchip_port(chip).capacity;
  return {chip.pool_bits(core)};
}

} // namespace monet
