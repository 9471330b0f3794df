// Scheduling with a caller's own core costs.
#include "schedule/event_scheduler.hpp"
#include "schedule/tile_classes.hpp"

#include <deque>

namespace monet {

Timeline schedule_with(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                       const CostFunction& cost_of, Priority priority, const TransferRules& rules) {
  ScheduleOptions options;
  options.priority = priority;
  options.rules = rules;
  return *schedule_with_unless(tiles, step, chip, cost_of, options);
}

std::optional<Timeline> schedule_with_unless(const TileGraph& tiles, const TrainingGraph& step,
                                             const Chip& chip, const CostFunction& cost_of,
                                             const ScheduleOptions& options) {
  TileClasses classes = classify_tiles(tiles, step.graph);
  std::deque<CoreProblem> problems;
  std::deque<CoreCost> costs;
  TileCosts rows;
  for (const TileId example : classes.example) {
    const Tile& tile = tiles.tiles[example.index()];
    problems.push_back(core_problem(tile, tiles.ranges(example), step, chip));
    costs.push_back(cost_of(problems.back(), chip.cores[tile.core.index()]));
    rows.rows.push_back({&problems.back(), &costs.back()});
  }
  rows.row_of = std::move(classes.class_of);
  return place_tiles_unless(tiles, step, chip, rows, options);
}

} // namespace monet
