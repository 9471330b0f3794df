// Makes the cost of a tile's run from the cost of its problem on the core, for the event scheduler.
#include "schedule/cost/run_cost.hpp"

#include <algorithm>

namespace monet {

namespace {

/// Splits a latency by cause. The parts of array cores can be fractional, so each cause takes what
/// the parts up to its own add to the whole cycles.
RunCycles split(const CoreCost& cost, Cycles latency) {
  const LatencyParts& parts = cost.parts;
  RunCycles causes{};
  std::int64_t before = 0;
  const auto until = [&](RunCause cause, double cycles) {
    const auto whole = static_cast<std::int64_t>(
        std::clamp(cycles, static_cast<double>(before), static_cast<double>(latency.value)));
    causes.at(static_cast<std::size_t>(cause)) = {whole - before};
    before = whole;
  };
  double sum = parts.ideal_temporal;
  if (parts.total() > 0)
    until(RunCause::work, std::min(static_cast<double>(cost.ideal.value), sum));
  until(RunCause::idle_lanes, sum);
  until(RunCause::instructions, sum += parts.instructions);
  until(RunCause::stall, sum += parts.stall);
  const RunCause rest = parts.total() > 0 ? RunCause::loading : RunCause::work;
  until(rest, static_cast<double>(latency.value));
  return causes;
}

} // namespace

std::string_view name_of(RunCause cause) {
  static constexpr std::array<std::string_view, kRunCauses> kNames{
      "work", "idle_lanes", "instructions", "stall", "loading", "streaming"};
  return kNames.at(static_cast<std::size_t>(cause));
}

RunCost run_cost(const CoreProblem& problem, const CoreCost& cost) {
  RunCost row{Energy::from(cost.compute_energy),
              Energy::from(cost.memory_energy),
              0,
              cost.variant,
              std::max(Cycles{1}, cost.latency),
              {}};
  row.causes = split(cost, row.latency);
  if (problem.compute == ComputeKind::mac) {
    row.macs = 1;
    for (const LoopDim& dim : problem.dims)
      row.macs *= dim.size;
  }
  return row;
}

} // namespace monet
