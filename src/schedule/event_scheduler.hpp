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

/// The same with the options' priority and rules; nothing when their `hopeless` gives it up.
std::optional<Timeline> place_tiles_unless(const TileGraph& tiles, const TrainingGraph& step,
                                           const Chip& chip, const TileCosts& costs,
                                           const ScheduleOptions& options);

/// The same with every distinct problem answered by `cost_of`.
using CostFunction = std::function<CoreCost(const CoreProblem&, const Core&)>;
Timeline schedule_with(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                       const CostFunction& cost_of, Priority priority = Priority::latency,
                       const TransferRules& rules = {});
/// With the options' priority and rules; nothing when their `hopeless` gives it up.
std::optional<Timeline> schedule_with_unless(const TileGraph& tiles, const TrainingGraph& step,
                                             const Chip& chip, const CostFunction& cost_of,
                                             const ScheduleOptions& options);

/// Fills phases, live, peak and makespan from runs and transfers (src/schedule/liveness.cpp).
void add_phases(const TrainingGraph& step, Timeline& timeline);
void add_liveness(const TrainingGraph& step, Timeline& timeline);
/// Fills leakage from the makespan (src/schedule/leakage.cpp).
void add_leakage(const Chip& chip, Timeline& timeline);
/// pJ of a core's memories.
double leakage_per_cycle(const Chip& chip, CoreId core);

} // namespace monet
