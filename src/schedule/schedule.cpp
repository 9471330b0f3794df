// Core costs first, each distinct problem once and in parallel; then the tiles in time.
#include "monet/schedule/schedule.hpp"

#include "schedule/event_scheduler.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/parallel.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <string>

namespace monet {

namespace {

/// One problem on one core at one share of the off-chip memory.
struct Solved {
  CoreProblem problem;
  const Core* core = nullptr;
  OffchipRate rate;
  const CoreCost* cost = nullptr;
  std::exception_ptr infeasible;
};

/// Every distinct problem of a step, and which of them each tile may choose from.
class CostTable {
public:
  CostTable(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip)
      : tiles_(tiles), step_(step), chip_(chip) {
    for (const Core& core : chip.cores)
      core_keys_.push_back(signature(core));
    choices_.resize(tiles.tiles.size());
    for (const OperatorTiling& op : tiles.operators)
      add_operator(op.first, op.last);
  }

  void solve(CoreCostCache& costs, const ScheduleOptions& options) {
    parallel_for(solved_.size(), options.jobs, [&](std::size_t i) {
      Solved& s = solved_[i];
      CoreCostOptions with_rate = options.core_cost;
      with_rate.offchip = s.rate;
      try {
        s.cost = &costs.get(s.problem, *s.core, with_rate);
      } catch (const InfeasibleError&) {
        s.infeasible = std::current_exception();
      }
    });
  }

  /// The choice with the best merit, the first on ties. When none is feasible, the first one says
  /// why.
  TileCost best(TileId tile, Objective objective) const {
    const std::vector<std::size_t>& choices = choices_[tile.index()];
    const Solved* best = nullptr;
    for (const std::size_t i : choices) {
      const Solved& s = solved_[i];
      if (s.cost == nullptr)
        continue;
      if (best == nullptr || value(s, objective) < value(*best, objective))
        best = &s;
    }
    if (best == nullptr)
      std::rethrow_exception(solved_[choices.front()].infeasible);
    return {&best->problem, best->cost};
  }

private:
  void add_operator(std::uint32_t first, std::uint32_t last) {
    std::vector<std::vector<CoreProblem>> choices;
    std::vector<CoreId> streaming;
    for (std::uint32_t t = first; t < last; ++t) {
      const Tile& tile = tiles_.tiles[t];
      choices.push_back(streaming_choices(tile, tiles_.ranges(TileId(t)), step_, chip_));
      const bool known =
          std::find(streaming.begin(), streaming.end(), tile.core) != streaming.end();
      if (!known && streams(choices.back().front()))
        streaming.push_back(tile.core);
    }
    for (std::uint32_t t = first; t < last; ++t) {
      for (CoreProblem& problem : choices[t - first])
        choices_[t].push_back(add(tiles_.tiles[t].core, std::move(problem), streaming));
    }
  }

  std::size_t add(CoreId core, CoreProblem problem, const std::vector<CoreId>& streaming) {
    OffchipRate rate;
    std::string key = core_keys_[core.index()] + signature(problem);
    if (streams(problem)) {
      rate = offchip_rate(chip_, core, streaming);
      key += signature(rate);
    }
    const auto [entry, added] = known_.emplace(std::move(key), solved_.size());
    if (added)
      solved_.push_back({std::move(problem), &chip_.cores[core.index()], rate, nullptr, nullptr});
    return entry->second;
  }

  /// As the mapping is judged; what stays on the core has to be brought and taken away once, too.
  static std::pair<double, double> value(const Solved& s, Objective objective) {
    OffchipTraffic all;
    for (std::size_t i = 0; i < s.problem.operands.size(); ++i) {
      const ProblemOperand& operand = s.problem.operands[i];
      std::int64_t stays = operand.offchip ? 0 : operand.bits;
      for (const std::int64_t extent : operand.extents)
        stays *= extent;
      (operand.mode == AccessMode::read ? all.read : all.write).value += stays;
      all.read += s.cost->offchip[i].read;
      all.write += s.cost->offchip[i].write;
    }
    return merit(objective, std::max(s.cost->parts.total(), s.rate.cycles(all)),
                 s.cost->energy().value + s.rate.energy_pj(all));
  }

  const TileGraph& tiles_;
  const TrainingGraph& step_;
  const Chip& chip_;
  std::vector<std::string> core_keys_;
  std::map<std::string, std::size_t, std::less<>> known_;
  std::deque<Solved> solved_;
  std::vector<std::vector<std::size_t>> choices_; ///< [tile]: indices into solved_
};

} // namespace

Timeline schedule(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                  CoreCostCache& costs, const ScheduleOptions& options) {
  CostTable table(tiles, step, chip);
  table.solve(costs, options);
  std::vector<TileCost> tile_costs;
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t)
    tile_costs.push_back(table.best(TileId(t), options.core_cost.objective));
  return place_tiles(tiles, step, chip, tile_costs);
}

} // namespace monet
