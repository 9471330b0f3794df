// Adds the costs of parts that run one after another and keeps the best of several costs; all forms
// of input gradients use it.
#include "core_cost/input_gradient/combine.hpp"

#include "base/shared/checked.hpp"
#include "core_cost/input_gradient/input_gradient.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::core_cost_detail {

namespace {

void add_figures(const CoreCost& one, std::int64_t times, CoreCost& sum) {
  const auto n = static_cast<double>(times);
  const double before = sum.parts.ideal_temporal;
  sum.parts.ideal_temporal += one.parts.ideal_temporal * n;
  sum.parts.instructions += one.parts.instructions * n;
  sum.parts.stall += one.parts.stall * n;
  sum.parts.onload += one.parts.onload * n;
  sum.parts.offload += one.parts.offload * n;
  if (sum.parts.ideal_temporal > 0) {
    sum.spatial_utilisation = (sum.spatial_utilisation * before +
                               one.spatial_utilisation * one.parts.ideal_temporal * n) /
                              sum.parts.ideal_temporal;
  }
  sum.ideal += Cycles{one.ideal.value * times};
  sum.macs_executed = checked_add(sum.macs_executed, checked_multiply(one.macs_executed, times));
  sum.compute_energy += Picojoules{one.compute_energy.value * n};
  sum.memory_energy += Picojoules{one.memory_energy.value * n};
  if (one.imc) {
    if (!sum.imc) // the figures of `spatial`, as in add_cost()
      sum.imc = {{one.imc->work.rows, one.imc->work.columns, 0, 0}, {}};
    ImcCost& imc = *sum.imc;
    imc.work.waves += one.imc->work.waves * n;
    imc.work.weight_reads += one.imc->work.weight_reads * n;
    imc.energy_pj += one.imc->energy_pj * n;
  }
  sum.effort.space += one.effort.space;
  sum.effort.visited += one.effort.visited;
  sum.effort.pruned += one.effort.pruned;
  sum.effort.exact = sum.effort.exact && one.effort.exact;
  sum.latency_bound += one.latency_bound * n;
  sum.energy_bound += one.energy_bound * n;
}

void add_level(const LevelEnergy& level, std::int64_t times, std::size_t operand, CoreCost& sum) {
  const auto known = std::ranges::find_if(sum.levels, [&](const LevelEnergy& other) {
    return other.operand == operand && other.memory == level.memory;
  });
  LevelEnergy& all = known != sum.levels.end() ? *known : sum.levels.emplace_back();
  all.memory = level.memory;
  all.operand = operand;
  all.energy += Picojoules{level.energy.value * static_cast<double>(times)};
  for (std::size_t d = 0; d < level.accesses.size(); ++d)
    all.accesses[d] += level.accesses[d] * times;
}

} // namespace

void add_cost(const CoreCost& one, std::int64_t times, std::span<const std::size_t> operands,
              CoreCost& sum) {
  if (times == 0)
    return;
  add_figures(one, times, sum);
  if (sum.spatial.unrolled.empty()) {
    sum.spatial = one.spatial;
    sum.temporal = one.temporal;
  }
  const auto whole = [&](std::size_t i) { return operands.empty() ? i : operands[i]; };
  for (std::size_t i = 0; i < one.offchip.size(); ++i) {
    OffchipTraffic& traffic = sum.offchip[whole(i)];
    traffic.read += Bits{one.offchip[i].read.value * times};
    traffic.write += Bits{one.offchip[i].write.value * times};
    Bits& resident = sum.resident[whole(i)];
    resident = std::max(resident, one.resident[i]);
  }
  for (const LevelEnergy& level : one.levels)
    add_level(level, times, whole(level.operand), sum);
}

Core with_less_memory(const Core& core, std::span<const ProblemOperand> operands,
                      const std::function<std::int64_t(std::size_t)>& extra,
                      std::string_view whose) {
  Core smaller = core;
  for (Memory& memory : smaller.memories) {
    std::int64_t others = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (smaller.top(operands[i].memory) == &memory)
        others = checked_add(others, extra(i));
    }
    const std::int64_t taken = ceil_div(others, instances(core, memory));
    if (taken > 0 && taken >= memory.size.value) {
      throw InfeasibleError(fmt::format("core '{}': {} need {} bits, but memory '{}' holds {}",
                                        core.name, whose, taken, memory.name, memory.size.value));
    }
    memory.size.value -= std::max<std::int64_t>(0, taken);
  }
  return smaller;
}

std::optional<std::pair<double, double>> BestCost::merit() const {
  if (!best_)
    return std::nullopt;
  const Priced p = priced(*best_, options_.offchip);
  return monet::merit(options_.objective, p.latency, p.energy);
}

void BestCost::consider(std::optional<CoreCost> cost) {
  if (!cost)
    return;
  const Priced p = priced(*cost, options_.offchip);
  const auto best = merit();
  if (!best || monet::merit(options_.objective, p.latency, p.energy) < *best)
    best_ = std::move(cost);
}

CoreCost BestCost::take() {
  if (!best_)
    std::rethrow_exception(failure_);
  return std::move(*best_);
}

} // namespace monet::core_cost_detail
