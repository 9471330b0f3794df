// Candidate fusion plans from closed-form estimates, and the cores they may leave idle; step_mode
// and the fusion search evaluate them.
#include "optimise/fusion/candidates.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/tile_costs.hpp"
#include "monet/tiling/tiling.hpp"

#include <algorithm>
#include <bit>

namespace monet {

namespace {

/// Whether two cores are equal except for their position.
bool alike(const Core& a, const Core& b) {
  return a.name == b.name && a.kind == b.kind && a.lanes() == b.lanes() && a.origin == b.origin;
}

/// Sum of the lengths of the paths from a core to all cores of other kinds.
std::size_t distance(const Chip& chip, CoreId core) {
  std::size_t sum = 0;
  for (std::size_t c = 0; c < chip.compute_cores(); ++c) {
    if (alike(chip.cores[c], chip.cores[core.index()]) || !chip.connected(core, CoreId(c)))
      continue;
    for (const LinkId link : chip.route(core, CoreId(c)))
      sum += chip.links[link.index()].cores.size();
  }
  return sum;
}

/// Core counts below `below` to plan for: powers of two and three times powers of two, so that
/// plans for smaller chips are also considered on a larger one.
std::vector<std::size_t> nominal_counts(std::size_t below) {
  constexpr std::size_t kMax = 5;
  std::vector<std::size_t> counts;
  for (std::size_t power = std::bit_ceil(below); power > 0; power /= 2) {
    for (const std::size_t count : {power, power / 4 * 3}) {
      if (count > 0 && count < below && counts.size() < kMax)
        counts.push_back(count);
    }
  }
  return counts;
}

} // namespace

FusionCovers::Estimates estimated_plans(const FusionCovers& covers, const TrainingGraph& step,
                                        const Chip& chip, const TilingOptions& tiling,
                                        const ScheduleOptions& schedule, CoreCostCache& costs) {
  const auto cycles_of = [&](const FusionPlan& plan) {
    TilingOptions wanted = tiling.with(plan);
    if (plan.stacks.empty())
      wanted.mode = TilingMode::layer_by_layer;
    const TileGraph tiles = make_tiles(step, chip, wanted);
    std::vector<double> cycles;
    try {
      const TileCosts known =
          tile_costs(tiles, step, chip, costs, schedule.core_cost, schedule.jobs);
      for (const OperatorTiling& op : tiles.operators) {
        std::vector<double> busy(chip.cores.size(), 0.0);
        for (std::uint32_t t = op.first; t < op.last; ++t)
          busy[tiles.tiles[t].core.index()] +=
              static_cast<double>(known.rows[known.row_of[t]].cost->latency.value);
        cycles.push_back(*std::ranges::max_element(busy));
      }
    } catch (const InfeasibleError&) {
      cycles.clear();
    }
    return cycles;
  };
  return covers.plans(chip, tiling, cycles_of);
}

bool gives_cores(const MappingFile* mapping) {
  return mapping != nullptr && std::ranges::any_of(mapping->entries, [](const MappingEntry& e) {
           return e.core_allocation.has_value();
         });
}

std::vector<std::vector<bool>> idle_cores(const Chip& chip) {
  std::vector<std::vector<bool>> choices;
  const std::size_t cores = chip.compute_cores();
  for (std::size_t first = 0; first < cores; ++first) {
    std::vector<std::size_t> same;
    for (std::size_t c = 0; c < cores; ++c) {
      if (alike(chip.cores[c], chip.cores[first]))
        same.push_back(c);
    }
    if (same.size() < 2 || same.front() != first)
      continue;
    std::ranges::stable_sort(same, {}, [&](std::size_t c) { return distance(chip, CoreId(c)); });
    for (const std::size_t kept : nominal_counts(same.size())) {
      std::vector<bool> idle(chip.cores.size(), false);
      for (std::size_t i = kept; i < same.size(); ++i)
        idle[same[i]] = true;
      choices.push_back(std::move(idle));
    }
  }
  return choices;
}

} // namespace monet
