// Scheduling with a caller's own core costs.
#include "schedule/event_scheduler.hpp"

#include <deque>

namespace monet {

Timeline schedule_with(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                       const CostFunction& cost_of) {
  std::deque<CoreProblem> problems;
  std::deque<CoreCost> costs;
  std::vector<TileCost> tile_costs;
  std::vector<Interval> ranges;
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t) {
    const Tile& tile = tiles.tiles[t];
    tiles.ranges(TileId(t), ranges);
    problems.push_back(core_problem(tile, ranges, step, chip));
    costs.push_back(cost_of(problems.back(), chip.cores[tile.core.index()]));
    tile_costs.push_back({&problems.back(), &costs.back()});
  }
  return place_tiles(tiles, step, chip, tile_costs);
}

} // namespace monet
