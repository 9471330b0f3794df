// Models one step: makes tiles, costs them and schedules them, each as a stage that may be
// verified. Commands and searches all call model_step().
#include "monet/model/model_step.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <utility>

namespace monet {

namespace {

/// Runs `make` as a stage of the context, which calls `verify` on its product if it verifies
/// stages. Without stages, only runs `make`.
template <class Make, class Verify>
auto as_stage(const ModelContext& context, const StepOptions& options, const char* what,
              Make&& make, Verify&& verify) {
  if (context.stages == nullptr)
    return make();
  const std::string name = options.name.empty() ? what : options.name + ": " + what;
  return run_stage(*context.stages, name, std::forward<Make>(make), std::forward<Verify>(verify));
}

/// The step's tiles; throws InfeasibleError if they are more than options.max_tiles.
TileGraph tiles_of(const TrainingGraph& step, const Chip& chip, const StepOptions& options,
                   const ModelContext& context) {
  TileGraph tiles;
  if (context.planner == nullptr)
    tiles = make_tiles(step, chip, options.tiling);
  else
    tiles = context.planner->tiles(options.tiling.allocation != nullptr ? *options.tiling.allocation
                                                                        : context.planner->given());
  if (tiles.tiles.size() > options.max_tiles)
    throw InfeasibleError(fmt::format(
        "about {} tiles that read each other {} times: a search schedules up to {} tiles",
        tiles.tiles.size(), tiles.edges.size(), options.max_tiles));
  return tiles;
}

/// Costs and schedules the tiles. Returns an incomplete timeline if context.known accepts the
/// costs.
Timeline timeline_of(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                     const StepOptions& options, const ModelContext& context) {
  const ScheduleOptions& how = options.schedule;
  try {
    const TileCosts costs =
        context.tile_costs != nullptr
            ? context.tile_costs->of(tiles)
            : tile_costs(tiles, step, chip, context.costs, how.core_cost, how.jobs);
    if (context.known && context.known(costs))
      return {.complete = false};
    return schedule(tiles, step, chip, costs, how);
  } catch (const InfeasibleError& error) {
    if (options.name.empty())
      throw;
    throw InfeasibleError(options.name + ": " + error.what());
  }
}

} // namespace

ModelledStep model_step(const TrainingGraph& step, const Chip& chip, const StepOptions& options,
                        const ModelContext& context) {
  ModelledStep made;
  made.tiles = as_stage(
      context, options, "tiling", [&] { return tiles_of(step, chip, options, context); },
      [&](const TileGraph& tiles) { verify(tiles, step); });
  made.timeline = as_stage(
      context, options, "schedule",
      [&] { return timeline_of(made.tiles, step, chip, options, context); },
      [&](const Timeline& timeline) {
        if (timeline.complete)
          verify(timeline, made.tiles, step, chip);
      });
  if (made.timeline.complete)
    made.figures = figures_of(made.timeline, made.tiles, step, chip);
  return made;
}

void verify_figures(const StepFigures& claimed, const TrainingGraph& step, const Chip& chip,
                    const StepOptions& options, const ModelContext& context) {
  StageContext checked;
  checked.verify = true;
  const ModelContext alone{context.costs, &checked};
  internal_check(model_step(step, chip, options, alone).figures == claimed,
                 "a search's best answer has other figures than recorded");
}

} // namespace monet
