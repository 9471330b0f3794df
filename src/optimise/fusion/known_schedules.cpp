// Cache of schedule figures, keyed by everything a schedule depends on; step_mode reuses figures
// across similar chips.
#include "base/shared/bytes.hpp"

#include "monet/core_cost/core_cost.hpp"
#include "monet/optimise/search.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace monet {

namespace {

/// Core as schedules depend on it: without the sizes of inner memories, names and prices.
std::string seen_by_schedules(const Core& core) {
  Core seen = core;
  for (Memory& memory : seen.memories) {
    const bool outermost = &memory == &seen.memories.back() ||
                           std::ranges::any_of(memory.operands, [&](MemoryOperand operand) {
                             return seen.top(operand) == &memory;
                           });
    if (!outermost)
      memory.size = {};
  }
  ByteWriter out;
  out.text(signature(seen));
  out.text(seen.name);
  out.list(seen.operator_types, [&](const std::string& type) { out.text(type); });
  for (const Memory& memory : seen.memories) {
    out.number(memory.leakage_pj_per_cycle, memory.dram_rows.has_value());
    if (memory.dram_rows)
      out.number(memory.dram_rows->banks, memory.dram_rows->row_bits, memory.dram_rows->t_row);
  }
  return out.take();
}

void write(ByteWriter& out, const Chip& chip) {
  std::map<std::string, std::size_t> kinds;
  for (const Core& core : chip.cores) {
    std::string seen = seen_by_schedules(core);
    const auto [kind, added] = kinds.emplace(std::move(seen), kinds.size());
    out.number(kind->second);
    if (added)
      out.text(kind->first);
  }
  const auto add_cores = [&](const std::vector<CoreId>& cores) {
    out.list(cores, [&](CoreId core) { out.number(core.value); });
  };
  out.number(chip.offchip ? chip.offchip->value : chip.cores.size());
  out.list(chip.links, [&](const Link& link) {
    add_cores(link.cores);
    out.number(link.reach, link.bandwidth_bits_per_cycle, link.energy_pj_per_cycle,
               link.energy_pj_per_bit, link.latency_cycles);
  });
  out.list(chip.shared_memory, add_cores);
  out.list(chip.memory_aliases, [&](const std::vector<MemoryPlace>& one) {
    out.list(one, [&](const MemoryPlace& place) { out.number(place.core.value, place.memory); });
  });
  for (std::size_t core = 0; core < chip.cores.size(); ++core) {
    if (chip.memory_of(CoreId(core)) == CoreId(core))
      out.number(chip.pool_bits(CoreId(core)));
  }
  out.list(chip.routers, [&](bool router) { out.number(router); });
}

/// Writes the part of a cost that schedules use; the rest of the problem follows from the tile.
void write(ByteWriter& out, const TileCost& row) {
  out.list(row.problem->operands,
           [&](const ProblemOperand& operand) { out.number(operand.offchip); });
  const CoreCost& cost = *row.cost;
  out.number(cost.latency.value, cost.compute_energy.value, cost.memory_energy.value);
  out.text(cost.variant);
  out.list(cost.offchip, [&](const OffchipTraffic& traffic) {
    out.number(traffic.read.value, traffic.write.value);
  });
  out.list(cost.resident, [&](Bits bits) { out.number(bits.value); });
}

} // namespace

std::string KnownSchedules::key(const Chip& chip, const TileCosts& costs, std::string_view way,
                                std::optional<double> best) {
  ByteWriter out;
  out.text(way);
  out.number(best.has_value(), best.value_or(0));
  write(out, chip);
  std::map<std::pair<const CoreProblem*, const CoreCost*>, std::size_t> kinds;
  for (const TileCost& row : costs.rows) {
    const auto [kind, added] = kinds.emplace(std::pair(row.problem, row.cost), kinds.size());
    out.number(kind->second);
    if (added)
      write(out, row);
  }
  return out.take();
}

std::optional<KnownSchedules::Outcome> KnownSchedules::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(key);
  return known == known_.end() ? std::nullopt : std::optional(known->second);
}

void KnownSchedules::add(std::string key, const Outcome& outcome) {
  const std::lock_guard lock(mutex_);
  const auto [known, added] = known_.emplace(std::move(key), outcome);
  if (!added)
    return;
  order_.push_back(&known->first);
  if (order_.size() > kMax) {
    known_.erase(known_.find(*order_.front()));
    order_.pop_front();
  }
}

} // namespace monet
