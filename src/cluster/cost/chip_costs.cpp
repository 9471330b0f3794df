// Costs of a rank's operators on a modelled chip: models the step without its collectives, and
// divides time and energy among the operators. Called by blocks.cpp.
#include "cluster/cost/costs.hpp"
#include "cluster/shared/stages.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/step_mode.hpp"

#include <algorithm>
#include <cmath>

namespace monet::cluster_cost {

namespace {

/// A step of some operators of another step.
struct Computed {
  TrainingGraph step;
  std::vector<OpId> ops; ///< operators of the other step, by operator of `step`
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
  computed.step = all ? step : part_of_step(step, computed.ops).step;
  return computed;
}

/// The begin or the end of a tile's run.
struct RunEdge {
  std::int64_t at = 0;
  bool begins = false;
  std::size_t op = 0;
  friend auto operator<=>(const RunEdge&, const RunEdge&) = default;
};

/// Divides the makespan among operators, in cycles. Operators that run at the same time share it
/// equally, and waiting counts for the next operator that runs. Time after the last run, in which
/// results are written back, counts for the operator of that run.
std::vector<double> shared_cycles(const Timeline& timeline, std::size_t operators) {
  std::vector<RunEdge> edges;
  edges.reserve(2 * timeline.runs.size());
  for (const TileRun& run : timeline.runs) {
    if (run.start == run.end)
      continue;
    edges.push_back({run.start.value, true, run.op.index()});
    edges.push_back({run.end.value, false, run.op.index()});
  }
  std::ranges::sort(edges);
  std::vector<double> cycles(operators, 0);
  std::vector<std::size_t> running; // operators, one entry per running tile
  std::int64_t now = 0;
  for (const RunEdge& edge : edges) {
    const auto passed = static_cast<double>(edge.at - now);
    for (const std::size_t op : running)
      cycles[op] += passed / static_cast<double>(running.size());
    if (running.empty())
      cycles[edge.op] += passed;
    now = edge.at;
    if (edge.begins)
      running.push_back(edge.op);
    else
      running.erase(std::ranges::find(running, edge.op));
  }
  const std::size_t last = edges.empty() ? operators - 1 : edges.back().op;
  cycles[last] += static_cast<double>(timeline.makespan.value - now);
  return cycles;
}

void add_costs(const Computed& computed, const Chip& chip, CoreCostCache& costs, ChipCosts& found) {
  if (computed.ops.empty())
    return;
  StepOptions options;
  options.tiling =
      choose_step(computed.step, chip, options, {StepMode::automatic, Objective::latency}, costs)
          .tiling;
  const ModelledStep modelled = model_step(computed.step, chip, options, {costs});
  std::vector<double> energy(computed.ops.size(), 0);
  double known = 0;
  for (const TileRun& run : modelled.timeline.runs) {
    const RunCost& cost = modelled.timeline.cost_of(run);
    const double own = (cost.compute + cost.memory).picojoules().value;
    energy[run.op.index()] += own;
    known += own;
  }
  const std::vector<double> cycles = shared_cycles(modelled.timeline, computed.ops.size());
  const auto makespan = static_cast<double>(modelled.timeline.makespan.value);
  const double shared = modelled.figures.energy_pj - known;
  const double nanoseconds_per_cycle = 1e9 / chip.frequency_hz;
  double reached = 0;
  double told = 0;
  for (std::size_t i = 0; i < cycles.size(); ++i) {
    reached += cycles[i];
    const double now = std::round(std::min(reached, makespan) * nanoseconds_per_cycle);
    found.nanoseconds[computed.ops[i].index()] = now - told;
    found.picojoules[computed.ops[i].index()] =
        energy[i] + (makespan > 0 ? shared * cycles[i] / makespan : 0);
    told = now;
  }
}

} // namespace

ChipCosts chip_costs(const TrainingGraph& step, const Chip& chip, CoreCostCache& costs,
                     bool update_apart) {
  if (!(chip.frequency_hz > 0))
    throw InfeasibleError("a chip without a frequency has cycles, but no times");
  ChipCosts found;
  found.nanoseconds.assign(step.graph.operators().size(), 0);
  found.picojoules.assign(step.graph.operators().size(), 0);
  if (!update_apart) {
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
