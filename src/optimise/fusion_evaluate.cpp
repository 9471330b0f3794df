#include "optimise/fusion_evaluate.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/parallel.hpp"
#include "monet/schedule/bounds.hpp"
#include "monet/tiling/allocation.hpp"
#include "monet/training/liveness.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace monet {

namespace {

std::size_t place_of(Phase phase) {
  switch (phase) {
  case Phase::forward:
    return 0;
  case Phase::loss:
    return 1;
  case Phase::backward:
  case Phase::recompute:
    return 2;
  case Phase::update:
    return 3;
  }
  return 0;
}

} // namespace

FusionFigures figures_of(const Timeline& timeline, const TileGraph& tiles, const Graph& graph,
                         const Chip& chip) {
  FusionFigures figures;
  figures.latency_cycles = timeline.makespan.value;
  figures.energy_pj = energy_of(timeline).total().picojoules().value;
  figures.tiles = tiles.tiles.size();
  figures.peak_live_bytes = total(timeline.peak.live);
  for (const PhaseSpan& span : timeline.phases)
    figures.phases[place_of(span.phase)].cycles = (span.end - span.start).value;
  std::array<Energy, 4> energy{};
  for (const TileRun& run : timeline.runs) {
    const RunCost& cost = timeline.cost_of(run);
    energy[place_of(graph.op(run.op).phase)] += cost.compute + cost.memory;
  }
  for (const Transfer& transfer : timeline.transfers) {
    const TransferCost& cost = timeline.cost_of(transfer);
    const Route& route = timeline.route_of(transfer);
    const std::size_t phase = place_of(graph.op(transfer.op).phase);
    energy[phase] += cost.link_energy + cost.offchip_energy + cost.onchip_energy;
    std::int64_t bits = route.from == chip.offchip ? cost.bits.value : 0;
    if (std::find(route.to.begin(), route.to.end(), chip.offchip) != route.to.end())
      bits += cost.bits.value;
    figures.phases[phase].offchip_bits += bits;
    figures.offchip_bits += bits;
  }
  for (std::size_t phase = 0; phase < energy.size(); ++phase)
    figures.phases[phase].energy_pj = energy[phase].picojoules().value;
  return figures;
}

FusionEvaluator::FusionEvaluator(const FusionProblem& problem) : problem_(problem) {
  ScheduleOptions options = problem.schedule;
  options.jobs = 1; // plans are scheduled side by side
  scheduler_ = std::make_unique<Scheduler>(problem.step, problem.chip, problem.costs, options);
}

namespace {

/// Slices of all operators, and about how many pairs of them read each other.
struct Size {
  double slices = 0;
  double edges = 0;
};

double slices_of(const OperatorTiling& tiling) {
  double slices = 1;
  for (const LoopCut& cut : tiling.cuts)
    slices *= cut.count;
  return slices;
}

/// Part of the tensor that the slice in the middle touches.
double share(const Access& access, const OperatorTiling& tiling, const Tensor& tensor) {
  std::vector<Interval> ranges;
  for (const auto& parts : tiling.parts)
    ranges.push_back(parts[parts.size() / 2]);
  const auto all = static_cast<double>(std::max<std::int64_t>(1, element_count(tensor)));
  return static_cast<double>(volume(region(access, ranges, tensor.shape))) / all;
}

InfeasibleError too_many(double tiles, double edges, std::size_t most) {
  return InfeasibleError(fmt::format(
      "about {:.0f} tiles that read each other {:.0f} times: a search schedules up to {} tiles",
      tiles, edges, most));
}

Size size_of(const TilePlanner& planner, const Graph& graph) {
  std::vector<OperatorTiling> tilings;
  for (std::size_t i = 0; i < graph.operators().size(); ++i)
    tilings.push_back(planner.sliced(OpId(i)));
  Size size;
  for (std::size_t i = 0; i < tilings.size(); ++i) {
    const double own = slices_of(tilings[i]);
    size.slices += own;
    for (const Access& access : graph.operators()[i].nest.operands) {
      const Tensor& tensor = graph.tensor(access.tensor);
      if (access.mode != AccessMode::read || !tensor.producer)
        continue;
      const double makers = slices_of(tilings[tensor.producer->index()]);
      size.edges += own * std::max(1.0, makers * share(access, tilings[i], tensor));
    }
  }
  return size;
}

} // namespace

/// The tiles, unless there would be more of them, or of their edges, than a search waits for.
TileGraph FusionEvaluator::tiles_of(const TrainingGraph& step, const TilingOptions& tiling,
                                    std::size_t most_tiles) const {
  const TilePlanner planner(step, problem_.chip, tiling);
  if (tiling.mode == TilingMode::fused) {
    constexpr double kEdgesPerTile = 16;
    const Size size = size_of(planner, step.graph);
    const auto most = static_cast<double>(most_tiles);
    if (size.slices > most || size.edges > kEdgesPerTile * most)
      throw too_many(size.slices, size.edges, most_tiles);
  }
  return planner.tiles(planner.given());
}

FusionFigures FusionEvaluator::run_step(const TilingOptions& tiling, std::size_t most_tiles) const {
  const TileGraph tiles = tiles_of(problem_.step, tiling, most_tiles);
  if (tiles.tiles.size() > most_tiles)
    throw too_many(static_cast<double>(tiles.tiles.size()), static_cast<double>(tiles.edges.size()),
                   most_tiles);
  FusionFigures figures =
      figures_of(scheduler_->schedule(tiles), tiles, problem_.step.graph, problem_.chip);
  if (!fits(figures) && tiling.mode == TilingMode::fused)
    throw InfeasibleError("more bytes alive at once than the limit");
  return figures;
}

TilingOptions FusionEvaluator::tiling_of(const FusionPlan& plan) const {
  TilingOptions tiling = problem_.tiling;
  tiling.mode = TilingMode::fused;
  tiling.stacks = plan.stacks;
  tiling.slices = plan.slices;
  return tiling;
}

FusionFigures FusionEvaluator::must(const FusionPlan& plan) const {
  return run_step(tiling_of(plan), kMostTiles);
}

FusionFigures FusionEvaluator::layer_by_layer() const {
  TilingOptions tiling = problem_.tiling;
  tiling.mode = TilingMode::layer_by_layer;
  tiling.stacks.reset();
  tiling.slices.clear();
  return run_step(tiling, static_cast<std::size_t>(-1));
}

std::optional<FusionFigures> FusionEvaluator::try_group(const TrainingGraph& step,
                                                        const FusionPlan& plan) const {
  try {
    TilingOptions tiling = tiling_of(plan);
    tiling.allocation = nullptr; // of other operators
    const TileGraph tiles = tiles_of(step, tiling, most_tiles_);
    if (tiles.tiles.size() > most_tiles_)
      return std::nullopt;
    ScheduleOptions options = problem_.schedule;
    options.jobs = 1;
    return figures_of(schedule(tiles, step, problem_.chip, problem_.costs, options), tiles,
                      step.graph, problem_.chip);
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

std::vector<std::optional<FusionFigures>>
FusionEvaluator::try_all(std::span<const FusionPlan> plans, const SearchControl& control) const {
  std::vector<std::optional<FusionFigures>> figures(plans.size());
  parallel_for(plans.size(), control.jobs, [&](std::size_t i) {
    if (control.interrupted())
      return;
    try {
      figures[i] = run_step(tiling_of(plans[i]), most_tiles_);
    } catch (const InfeasibleError&) {
      figures[i].reset();
    }
  });
  return figures;
}

std::string key_of(const FusionPlan& plan) {
  std::string key;
  for (std::size_t s = 0; s < plan.stacks.size(); ++s) {
    for (const OpId member : plan.stacks[s])
      key += std::to_string(member.index()) + ' ';
    if (s < plan.slices.size() && plan.slices[s]) {
      for (const StackSlices::Cut& cut : plan.slices[s]->cuts)
        key += '/' + std::to_string(cut.op.index()) + ':' + std::to_string(cut.dim) + ':' +
               std::to_string(cut.count);
      if (plan.slices[s]->halo)
        key += *plan.slices[s]->halo == Halo::cached ? 'c' : 'r';
    } else {
      key += '?';
    }
    key += '\n';
  }
  return key;
}

} // namespace monet
