// Tiles and schedules fusion plans and single groups, with caches of costs; every fusion search
// evaluates its plans here.
#include "optimise/fusion/evaluate.hpp"

#include "base/shared/parallel.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/tiling/allocation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace monet {

FusionEvaluator::FusionEvaluator(const FusionProblem& problem)
    : problem_(problem),
      tile_costs_(std::make_unique<TileCostCache>(problem.step, problem.chip, problem.costs,
                                                  problem.schedule.core_cost)) {}

namespace {

/// Number of slices of all operators, and an estimate of the edges between them.
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

/// Share of the tensor that the middle slice touches.
double share(const Access& access, const OperatorTiling& tiling, const Tensor& tensor) {
  std::vector<Interval> ranges;
  for (const auto& parts : tiling.parts)
    ranges.push_back(parts[parts.size() / 2]);
  const auto all = static_cast<double>(std::max<std::int64_t>(1, element_count(tensor)));
  return static_cast<double>(volume(region(access, ranges, tensor.shape))) / all;
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

/// Models the step; throws InfeasibleError if it would have more tiles or edges than a search
/// allows.
StepFigures FusionEvaluator::model(const TrainingGraph& step, TilingOptions tiling,
                                   std::size_t max_tiles, TileCostCache* tile_costs) const {
  const TilePlanner planner(step, problem_.chip, tiling);
  if (tiling.mode == TilingMode::fused) {
    constexpr double kEdgesPerTile = 16;
    const Size size = size_of(planner, step.graph);
    const auto most = static_cast<double>(max_tiles);
    if (size.slices > most || size.edges > kEdgesPerTile * most)
      throw InfeasibleError(fmt::format(
          "about {:.0f} tiles that read each other {:.0f} times: a search schedules up to {} tiles",
          size.slices, size.edges, max_tiles));
  }
  StepOptions options{std::move(tiling), problem_.schedule, {}, max_tiles};
  options.schedule.jobs = 1; // plans are scheduled in parallel
  return model_step(step, problem_.chip, options, {problem_.costs, nullptr, tile_costs, &planner})
      .figures;
}

StepFigures FusionEvaluator::run_step(TilingOptions tiling, std::size_t max_tiles) const {
  const bool limited = tiling.mode == TilingMode::fused;
  StepFigures figures = model(problem_.step, std::move(tiling), max_tiles, tile_costs_.get());
  if (limited && !fits(figures))
    throw InfeasibleError("more bytes alive at once than the limit");
  return figures;
}

StepFigures FusionEvaluator::evaluate_or_throw(const FusionPlan& plan,
                                               std::size_t max_tiles) const {
  return run_step(problem_.tiling.with(plan), max_tiles);
}

StepFigures FusionEvaluator::layer_by_layer() const {
  TilingOptions tiling = problem_.tiling;
  tiling.mode = TilingMode::layer_by_layer;
  tiling.stacks.reset();
  tiling.slices.clear();
  return run_step(std::move(tiling), static_cast<std::size_t>(-1));
}

std::optional<StepFigures> FusionEvaluator::try_group(const TrainingGraph& step,
                                                      const FusionPlan& plan) const {
  try {
    TilingOptions tiling = problem_.tiling.with(plan);
    tiling.allocation = nullptr; // refers to the operators of the whole step
    return model(step, std::move(tiling), max_tiles_, nullptr);
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

std::vector<std::optional<StepFigures>>
FusionEvaluator::try_all(std::span<const FusionPlan> plans, const SearchControl& control) const {
  std::vector<std::optional<StepFigures>> figures(plans.size());
  parallel_for(plans.size(), control.jobs, [&](std::size_t i) {
    if (control.interrupted())
      return;
    control.finishes([&] {
      try {
        figures[i] = run_step(problem_.tiling.with(plans[i]), max_tiles_);
      } catch (const InfeasibleError&) {
        figures[i].reset();
      }
    });
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
      if (plan.slices[s]->turns > 1)
        key += 't' + std::to_string(plan.slices[s]->turns);
    } else {
      key += '?';
    }
    key += '\n';
  }
  for (const bool idle : plan.idle)
    key += idle ? 'i' : '.';
  return key;
}

} // namespace monet
