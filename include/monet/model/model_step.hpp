// One way to model a step: tiles, what they cost, the schedule, and what that comes to. Commands,
// searches and explorations all go through model_step().
#pragma once

#include "monet/base/stage.hpp"
#include "monet/model/figures.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/tiling/allocation.hpp"

#include <cstddef>
#include <functional>
#include <limits>
#include <string>

namespace monet {

struct StepOptions {
  TilingOptions tiling;
  ScheduleOptions schedule;
  std::string name; ///< "training": said with stages and with what is infeasible; may be empty
  /// InfeasibleError rather than a schedule of more tiles.
  std::size_t max_tiles = std::numeric_limits<std::size_t>::max();
};

/// What models share. All but `costs` may be null.
struct ModelContext {
  CoreCostCache& costs;
  /// Tiling and scheduling run as its stages: they stop, are timed and verified as it says.
  StageContext* stages = nullptr;
  /// Of the same step and chip and the options' core costs, for steps that are modelled often.
  TileCostCache* tile_costs = nullptr;
  /// Of the same step and chip and the options' tiling, whose allocation alone may differ.
  const TilePlanner* planner = nullptr;
  /// Asked with the costs of the tiles; true: what the schedule comes to is known, and it is not
  /// made.
  std::function<bool(const TileCosts&)> known;
};

struct ModelledStep {
  TileGraph tiles;
  Timeline timeline;   ///< not complete where it is known, or options.schedule.hopeless gave it up
  StepFigures figures; ///< of a complete timeline
};

/// Models one step, whose views are folded, on a chip. The same for any caches and number of jobs.
/// InfeasibleError as make_tiles(), tile_costs() and schedule() throw it.
ModelledStep model_step(const TrainingGraph& step, const Chip& chip, const StepOptions& options,
                        const ModelContext& context);

/// Models the best answer of a search again and throws InternalError where its figures are not what
/// the search said, or an invariant of its tiles or timeline is broken.
void verify_figures(const StepFigures& claimed, const TrainingGraph& step, const Chip& chip,
                    const StepOptions& options, const ModelContext& context);

} // namespace monet
