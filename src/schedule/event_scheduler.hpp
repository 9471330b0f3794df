// The scheduler proper, with core costs given. schedule() solves the costs first.
#pragma once

#include "monet/schedule/scheduler.hpp"

#include <functional>
#include <vector>

namespace monet {

/// Costs of all tiles: those that cannot differ share a row. Tiles of different operators have
/// different rows.
struct TileCosts {
  std::vector<std::uint32_t> row_of; ///< per tile
  std::vector<TileCost> rows;        ///< both pointers of every row are set
};

Timeline place_tiles(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                     const TileCosts& costs, Priority priority = Priority::latency,
                     const TransferRules& rules = {});

/// The same with every distinct problem answered by `cost_of`.
using CostFunction = std::function<CoreCost(const CoreProblem&, const Core&)>;
Timeline schedule_with(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                       const CostFunction& cost_of, Priority priority = Priority::latency,
                       const TransferRules& rules = {});

/// Fills phases, live, peak and makespan from runs and transfers (src/schedule/liveness.cpp).
void add_phases(const TrainingGraph& step, Timeline& timeline);
void add_liveness(const TrainingGraph& step, Timeline& timeline);
/// Fills leakage from the makespan (src/schedule/leakage.cpp).
void add_leakage(const Chip& chip, Timeline& timeline);

} // namespace monet
