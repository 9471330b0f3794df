// Schedules of many tilings of one step.
#pragma once

#include "monet/schedule/schedule.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace monet {

/// What a tile costs: its problem (which operands pass by) and the cost of it.
struct TileCost {
  const CoreProblem* problem = nullptr;
  const CoreCost* cost = nullptr;
};

/// The costs of one operator's tiles: those that cannot differ share a row.
struct OperatorTileCosts {
  std::vector<std::uint32_t> row_of; ///< per tile of the operator
  std::vector<TileCost> rows;
};

/// schedule() for tilings of one step on one chip, as often as wanted and from any thread: what the
/// tiles of an operator cost is found once for each way in which it is cut and put on cores.
class Scheduler {
public:
  /// Keeps references to all but the options.
  Scheduler(const TrainingGraph& step, const Chip& chip, CoreCostCache& costs,
            const ScheduleOptions& options = {});
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Equal to schedule() of the same; throws as that does.
  Timeline schedule(const TileGraph& tiles);
  /// The costs of the operator's tiles; null where some tile has no mapping. The pointers in it
  /// stay valid as long as this object.
  std::shared_ptr<const OperatorTileCosts> costs_of(const TileGraph& tiles, OpId op);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace monet
