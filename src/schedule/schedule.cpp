// Core costs first, each distinct problem once and in parallel; then the tiles in time.
#include "monet/schedule/schedule.hpp"

#include "schedule/event_scheduler.hpp"

#include "monet/base/parallel.hpp"

#include <deque>
#include <functional>
#include <map>
#include <string>

namespace monet {

Timeline schedule(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                  CoreCostCache& costs, const ScheduleOptions& options) {
  std::vector<std::string> cores;
  for (const Core& core : chip.cores)
    cores.push_back(signature(core));
  std::map<std::string, std::size_t, std::less<>> known;
  std::vector<std::size_t> distinct_of;
  std::deque<CoreProblem> problems;
  std::vector<const Core*> cores_of;
  for (const Tile& tile : tiles.tiles) {
    CoreProblem problem = core_problem(tile, step, chip);
    std::string key = cores[tile.core.index()] + signature(problem);
    const auto [entry, added] = known.emplace(std::move(key), problems.size());
    distinct_of.push_back(entry->second);
    if (!added)
      continue;
    problems.push_back(std::move(problem));
    cores_of.push_back(&chip.cores[tile.core.index()]);
  }
  std::vector<const CoreCost*> solved(problems.size());
  parallel_for(problems.size(), options.jobs, [&](std::size_t i) {
    solved[i] = &costs.get(problems[i], *cores_of[i], options.core_cost);
  });
  std::vector<TileCost> tile_costs;
  for (const std::size_t i : distinct_of)
    tile_costs.push_back({&problems[i], solved[i]});
  return place_tiles(tiles, step, chip, tile_costs);
}

} // namespace monet
