// schedule(): places tiles on cores over time and moves their data.
// Example:
//   Timeline schedule_tiles(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip) {
//     CoreCostCache cache;
//     ScheduleOptions options;
//     options.priority = Priority::memory;
//     const TileCosts costs = tile_costs(tiles, step, chip, cache, options.core_cost);
//     return schedule(tiles, step, chip, costs, options);
//   }
#pragma once

#include "monet/base/stage.hpp"
#include "monet/schedule/tile_costs.hpp"
#include "monet/schedule/timeline.hpp"

#include <functional>
#include <optional>
#include <string_view>

namespace monet {

/// Rule that selects the next tile among the ready ones.
enum class Priority {
  /// The core that can start first runs its first ready tile in rank order.
  latency,
  memory, ///< tile of the latest operator, so that started work is finished first
  order,  ///< given rank order
};

/// Rules for data movement. A rule that is false behaves as in the reference scheduler Stream, so
/// that its benefit can be measured.
struct TransferRules {
  bool share_links = true;     ///< false: a transfer has exclusive use of its links
  bool multicast = true;       ///< false: every core has a separate transfer
  bool exact_overlap = true;   ///< false: whole pieces move even if a tile reads only a part
  bool pieces = true;          ///< false: a transfer moves in a single piece
  bool spills_to_cores = true; ///< false: tensors evicted while still needed go off-chip
  /// false: no alternative routes, and no routes of more than two links between cores.
  bool free_routing = true;

  friend bool operator==(const TransferRules&, const TransferRules&) = default;
};
/// Rule named links, multicast, overlap, pieces, spills or routing; null for other names.
bool TransferRules::*transfer_rule_named(std::string_view name);

/// Lower bounds on the latency and energy of a schedule in progress.
struct ScheduleFloor {
  Cycles latency;
  Picojoules energy;
};

/// Options of schedule().
struct ScheduleOptions {
  CoreCostOptions core_cost;
  Priority priority = Priority::latency;
  TransferRules rules;
  /// Threads that solve core costs; the timeline is the same for any number.
  int jobs = 1;
  /// Called before the first tile is placed and from time to time after it, with rising lower
  /// bounds. Returns true to end the schedule early. May be empty.
  std::function<bool(const ScheduleFloor&)> hopeless;
};

/// Schedules tiles one at a time; options.priority selects the next of those whose predecessors are
/// placed. A tile starts when its core is free and its operands are present. Pieces move over links
/// from the nearest copy or the off-chip memory. They move ahead of the tile if links and space
/// allow, and to several cores at once if these need the same piece. Results stay in the core's
/// memory while they fit, and are freed after their last use. To make room, copies that the memory
/// no longer needs are removed first, then those with the farthest next use. The only copy of a
/// piece moves to another core or off-chip. Updates start after all other operators unless they are
/// fused with some of them. Throws InfeasibleError if an operand does not fit or no route exists,
/// with the operand, place and amount. The timeline is not `complete` if options.hopeless ended the
/// schedule.
Timeline schedule(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                  const TileCosts& costs, const ScheduleOptions& options = {});

/// Moment of maximum live bytes if tensors inside one stack count by parts. A tensor that is
/// produced and read inside one stack counts only with parts that are still to be read. A part is
/// live from the start of the tile that writes it to the end of the last tile that reads it. All
/// other tensors count as a whole, as in Timeline::peak. Returns nullopt if no stack has such a
/// tensor in several parts.
std::optional<MemorySample> peak_by_slices(const TrainingGraph& step, const TileGraph& tiles,
                                           const Timeline& timeline);

/// Checks the invariants of a timeline and throws InternalError with the first violation:
/// - a core runs one tile at a time, a link carries at most its bandwidth, a memory holds at most
///   its capacity;
/// - every operand is present when read, and producers precede consumers;
/// - phases cover the makespan, ledger sums agree, no bound is beaten, and the critical path has no
///   gap.
void verify(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
            const Chip& chip);

} // namespace monet
