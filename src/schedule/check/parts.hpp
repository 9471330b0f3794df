// Parts of verify() in invariants.cpp, which check the timeline's lists alone.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/schedule/timeline.hpp"
#include "monet/tiling/tiling.hpp"

namespace monet {

/// Checks transfers; throws InternalError. Transfers are in order and not empty. Their links lead
/// from the sender to every receiver, through routers and never through the off-chip memory;
/// latencies are those of the links. No transfer is faster than its links and ports. Transfers that
/// share a link or port at a time stay within its bandwidth.
///
/// With rows in the off-chip memory, a transfer from or to it opens at least the rows that its bits
/// fill, and lasts at least as long as a row-by-row simulation of the banks. A transfer that
/// fetches a tensor opens the rows that a tile's box touches. Without rows, no transfer opens any.
void verify_transfers(const Timeline& timeline, const TileGraph& tiles, const Graph& graph,
                      const Chip& chip);

/// Checks memories; throws InternalError. None holds more than its capacity or less than nothing,
/// and cores' memories are empty at the end. Every operand of a run is complete in its core's
/// memory during the run, or is streamed.
void verify_memories(const Timeline& timeline, const TileGraph& tiles, const Graph& graph,
                     const Chip& chip);

} // namespace monet
