// model_step(): models a training step on a chip by tiling, core costs and scheduling, and returns
// its figures. Commands, searches and explorations all call it.
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

/// Options of model_step().
struct StepOptions {
  TilingOptions tiling;
  ScheduleOptions schedule;
  /// Name of the step in stage reports and InfeasibleError messages, such as "training"; may be
  /// empty.
  std::string name;
  /// Maximum number of tiles; model_step() throws InfeasibleError for a step with more.
  std::size_t max_tiles = std::numeric_limits<std::size_t>::max();
};

/// Objects that several calls of model_step() share. All but `costs` may be null.
struct ModelContext {
  /// Core costs found so far, read and extended.
  CoreCostCache& costs;
  /// Context in which tiling and scheduling run as stages: it handles stop requests, timing and
  /// checks.
  StageContext* stages = nullptr;
  /// Tile costs found so far, for the same step, chip and core-cost options; speeds up repeated
  /// calls.
  TileCostCache* tile_costs = nullptr;
  /// Tiling plan for the same step, chip and tiling options; only their allocation may differ.
  const TilePlanner* planner = nullptr;
  /// Called with the costs of the tiles. Returns true if the schedule's figures are known already,
  /// in which case model_step() makes no schedule.
  std::function<bool(const TileCosts&)> known;
};

/// Result of model_step().
struct ModelledStep {
  TileGraph tiles;
  /// Schedule of the tiles; incomplete if `known` returned true or options.schedule.hopeless ended
  /// it.
  Timeline timeline;
  /// Figures of the timeline; valid only if it is complete.
  StepFigures figures;
};

/// Models one step, whose views are folded, on a chip. The result does not depend on the caches or
/// the number of jobs. Throws InfeasibleError where make_tiles(), tile_costs() or schedule() does.
ModelledStep model_step(const TrainingGraph& step, const Chip& chip, const StepOptions& options,
                        const ModelContext& context);

/// Models the best answer of a search again. Throws InternalError if its figures differ from
/// `claimed`, or if the tiles or the timeline violate an invariant.
void verify_figures(const StepFigures& claimed, const TrainingGraph& step, const Chip& chip,
                    const StepOptions& options, const ModelContext& context);

} // namespace monet
