#include "cluster/cost/chip_costs.hpp"

#include "monet/base/errors.hpp"
#include "monet/cluster/stages.hpp"
#include "monet/optimise/step_mode.hpp"

#include <algorithm>
#include <cmath>

namespace monet::cluster_cost {

namespace {

/// The step, and which of its operators are left.
struct Computed {
  TrainingGraph step;
  std::vector<OpId> ops; ///< of the whole step, by operator of this one
};

Computed without_collectives(const TrainingGraph& step) {
  Computed computed;
  for (std::size_t i = 0; i < step.graph.operators().size(); ++i) {
    if (!is_collective(step.graph.operators()[i]))
      computed.ops.emplace_back(i);
  }
  const bool all = computed.ops.size() == step.graph.operators().size();
  computed.step = all ? step : step_of(step, computed.ops);
  return computed;
}

} // namespace

ChipCosts chip_costs(const TrainingGraph& step, const Chip& chip, CoreCostCache& costs) {
  if (!(chip.frequency_hz > 0))
    throw InfeasibleError("a chip without a frequency has cycles, but no times");
  const Computed computed = without_collectives(step);
  StepOptions options;
  const ModelContext context{costs};
  options.tiling =
      choose_step(computed.step, chip, options, StepMode::automatic, Objective::latency, context)
          .tiling;
  const ModelledStep modelled = model_step(computed.step, chip, options, context);

  std::vector<std::int64_t> end(computed.ops.size(), 0);
  std::vector<double> energy(computed.ops.size(), 0);
  double known = 0;
  for (const TileRun& run : modelled.timeline.runs) {
    const RunCost& cost = modelled.timeline.cost_of(run);
    end[run.op.index()] = std::max(end[run.op.index()], run.end.value);
    const double own = (cost.compute + cost.memory).picojoules().value;
    energy[run.op.index()] += own;
    known += own;
  }
  // What comes after the last run, results written back, is the last operator's.
  if (!end.empty())
    end.back() = modelled.timeline.makespan.value;
  const auto cycles = static_cast<double>(modelled.timeline.makespan.value);
  const double shared = modelled.figures.energy_pj - known;
  const double nanoseconds_per_cycle = 1e9 / chip.frequency_hz;
  ChipCosts found;
  found.nanoseconds.assign(step.graph.operators().size(), 0);
  found.picojoules.assign(step.graph.operators().size(), 0);
  std::int64_t reached = 0;
  double told = 0;
  for (std::size_t i = 0; i < end.size(); ++i) {
    const std::int64_t added = std::max<std::int64_t>(end[i] - reached, 0);
    reached += added;
    const double now = std::round(static_cast<double>(reached) * nanoseconds_per_cycle);
    found.nanoseconds[computed.ops[i].index()] = now - told;
    found.picojoules[computed.ops[i].index()] =
        energy[i] + (cycles > 0 ? shared * static_cast<double>(added) / cycles : 0);
    told = now;
  }
  return found;
}

} // namespace monet::cluster_cost
