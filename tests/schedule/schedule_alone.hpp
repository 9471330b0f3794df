// A schedule with the costs of the core model, and nothing shared.
#pragma once

#include "monet/schedule/schedule.hpp"

namespace monet::testing {

/// schedule() with the costs of the core model.
inline Timeline schedule_alone(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                               CoreCostCache& costs, const ScheduleOptions& options = {}) {
  return schedule(tiles, step, chip,
                  tile_costs(tiles, step, chip, costs, options.core_cost, options.jobs), options);
}

} // namespace monet::testing
