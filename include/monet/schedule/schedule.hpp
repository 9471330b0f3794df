// Tiles on cores over time.
#pragma once

#include "monet/base/stage.hpp"
#include "monet/schedule/tile_costs.hpp"
#include "monet/schedule/timeline.hpp"

#include <functional>
#include <optional>
#include <string_view>

namespace monet {

/// Which of the tiles that are ready is placed next.
enum class Priority {
  latency, ///< of all cores the one that can start first takes its first ready tile in rank order
  memory,  ///< the tile of the latest operator, so that what was begun is finished first
  order,   ///< rank order, as given
};

/// How data move. Each rule that is false is as in the reference scheduler, to see what it gains.
struct TransferRules {
  bool share_links = true;     ///< false: a transfer has its links for itself
  bool multicast = true;       ///< false: every core is fed by a transfer of its own
  bool exact_overlap = true;   ///< false: whole pieces move where a tile reads part of one
  bool pieces = true;          ///< false: a transfer goes in one piece
  bool spills_to_cores = true; ///< false: what has to go while it is needed goes off-chip
  bool free_routing = true; ///< false: cores more than two hops apart, and second ways, go unused

  friend bool operator==(const TransferRules&, const TransferRules&) = default;
};
/// The rule called links, multicast, overlap, pieces, spills or routing; null for another name.
bool TransferRules::*transfer_rule_named(std::string_view name);

/// What a schedule under way comes to at least.
struct ScheduleFloor {
  Cycles latency;
  Picojoules energy;
};

struct ScheduleOptions {
  CoreCostOptions core_cost;
  Priority priority = Priority::latency;
  TransferRules rules;
  int jobs = 1; ///< threads that solve core costs; the timeline is the same for any number
  /// Asked before the first tile is placed and now and then after it, with floors that rise; true
  /// gives the schedule up. May be empty.
  std::function<bool(const ScheduleFloor&)> hopeless;
};

/// Event-driven, tile by tile in the order of ranks: a tile starts when its core is free and its
/// operands are there. Pieces move over links from the nearest copy or the off-chip memory, ahead
/// of the tile where links and space allow, to several cores at once where they want the same;
/// results stay in the core's memory while they fit, are spilled (written back once, if dirty) by
/// farthest next use when they do not, and are freed after their last use. Updates start after the
/// whole backward phase unless they are fused with other operators. InfeasibleError when an operand
/// cannot fit or no route exists: which, where and by how much. What options.hopeless gave up is
/// not `complete`.
Timeline schedule(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                  const TileCosts& costs, const ScheduleOptions& options = {});

/// The moment at which most bytes are live when a tensor that is made and read inside one stack
/// counts only with the parts that somebody still reads: each from the start of the tile that
/// writes it to the end of the last one that reads it. All others count whole, as in
/// Timeline::peak. Nothing where no stack has such a tensor in several parts.
std::optional<MemorySample> peak_by_slices(const TrainingGraph& step, const TileGraph& tiles,
                                           const Timeline& timeline);

/// Invariants, thrown as InternalError with the first violation: a core runs one tile at a time, a
/// link carries no more than its bandwidth, no memory above capacity,
/// every operand present when read, producers before consumers, phases cover the makespan, ledger
/// sums agree, no bound is beaten, the critical path has no gap.
void verify(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
            const Chip& chip);

} // namespace monet
