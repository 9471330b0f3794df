// The scheduler proper, with core costs given. schedule() solves the costs first.
#pragma once

#include "monet/schedule/schedule.hpp"

#include <functional>
#include <vector>

namespace monet {

/// What one tile costs: its problem (which operands pass by) and the cost of it.
struct TileCost {
  const CoreProblem* problem = nullptr;
  const CoreCost* cost = nullptr;
};

/// The timeline for costs given per tile; both pointers of every entry must be set.
Timeline place_tiles(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                     const std::vector<TileCost>& costs);

/// The same with every distinct problem answered by `cost_of`.
using CostFunction = std::function<CoreCost(const CoreProblem&, const Core&)>;
Timeline schedule_with(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                       const CostFunction& cost_of);

/// Fills phases, live, peak and makespan from runs and transfers (src/schedule/liveness.cpp).
void add_phases(const TrainingGraph& step, Timeline& timeline);
void add_liveness(const TrainingGraph& step, Timeline& timeline);

} // namespace monet
