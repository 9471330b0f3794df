#include "cluster/cost/chip_costs.hpp"

#include "monet/base/errors.hpp"
#include "monet/cluster/stages.hpp"
#include "monet/optimise/step_mode.hpp"

#include <algorithm>
#include <cmath>

namespace monet::cluster_cost {

namespace {

/// Some of a step's operators as a step of their own.
struct Computed {
  TrainingGraph step;
  std::vector<OpId> ops; ///< of the whole step, by operator of this one
};

template <class Takes>
Computed without_collectives(const TrainingGraph& step, Takes takes) {
  Computed computed;
  for (std::size_t i = 0; i < step.graph.operators().size(); ++i) {
    const Operator& op = step.graph.operators()[i];
    if (!is_collective(op) && takes(op))
      computed.ops.emplace_back(i);
  }
  const bool all = computed.ops.size() == step.graph.operators().size();
  computed.step = all ? step : step_of(step, computed.ops);
  return computed;
}

/// What operators add to the end of those before them, cycles.
std::vector<std::int64_t> added_cycles(const ModelledStep& modelled, std::size_t operators) {
  std::vector<std::int64_t> added(operators, 0);
  for (const TileRun& run : modelled.timeline.runs)
    added[run.op.index()] = std::max(added[run.op.index()], run.end.value);
  // What comes after the last run, results written back, is the last operator's.
  if (!added.empty())
    added.back() = modelled.timeline.makespan.value;
  std::int64_t reached = 0;
  for (std::int64_t& end : added) {
    const std::int64_t before = reached;
    reached = std::max(reached, end);
    end = reached - before;
  }
  return added;
}

void add_costs(const Computed& computed, const Chip& chip, CoreCostCache& costs, ChipCosts& found) {
  if (computed.ops.empty())
    return;
  StepOptions options;
  const ModelContext context{costs};
  options.tiling =
      choose_step(computed.step, chip, options, StepMode::automatic, Objective::latency, context)
          .tiling;
  const ModelledStep modelled = model_step(computed.step, chip, options, context);
  std::vector<double> energy(computed.ops.size(), 0);
  double known = 0;
  for (const TileRun& run : modelled.timeline.runs) {
    const RunCost& cost = modelled.timeline.cost_of(run);
    const double own = (cost.compute + cost.memory).picojoules().value;
    energy[run.op.index()] += own;
    known += own;
  }
  const std::vector<std::int64_t> added = added_cycles(modelled, computed.ops.size());
  const auto cycles = static_cast<double>(modelled.timeline.makespan.value);
  const double shared = modelled.figures.energy_pj - known;
  const double nanoseconds_per_cycle = 1e9 / chip.frequency_hz;
  std::int64_t reached = 0;
  double told = 0;
  for (std::size_t i = 0; i < added.size(); ++i) {
    reached += added[i];
    const double now = std::round(static_cast<double>(reached) * nanoseconds_per_cycle);
    found.nanoseconds[computed.ops[i].index()] = now - told;
    found.picojoules[computed.ops[i].index()] =
        energy[i] + (cycles > 0 ? shared * static_cast<double>(added[i]) / cycles : 0);
    told = now;
  }
}

} // namespace

ChipCosts chip_costs(const TrainingGraph& step, const Chip& chip, CoreCostCache& costs,
                     bool accumulates) {
  if (!(chip.frequency_hz > 0))
    throw InfeasibleError("a chip without a frequency has cycles, but no times");
  ChipCosts found;
  found.nanoseconds.assign(step.graph.operators().size(), 0);
  found.picojoules.assign(step.graph.operators().size(), 0);
  if (!accumulates) {
    const auto all = [](const Operator&) { return true; };
    add_costs(without_collectives(step, all), chip, costs, found);
    return found;
  }
  for (const bool update : {false, true}) {
    const auto takes = [&](const Operator& op) { return (op.phase == Phase::update) == update; };
    add_costs(without_collectives(step, takes), chip, costs, found);
  }
  return found;
}

} // namespace monet::cluster_cost
