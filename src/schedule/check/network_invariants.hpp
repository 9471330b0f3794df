// The invariants of a timeline's transfers.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/schedule/timeline.hpp"
#include "monet/tiling/tiling.hpp"

namespace monet {

/// From the lists alone, thrown as InternalError: transfers are in order and not empty; their links
/// lead from the sender to every receiver, pass through routers and never through the off-chip
/// memory, and take the latency of those links; none is faster than its links and ports; and those
/// that share a link or port at a time together take no more than its bandwidth. Every transfer
/// from or to the off-chip memory opens as many rows as its bits fill at least and takes the time
/// that banks simulated row by row need, and transfers that fetch a tensor open the rows that a
/// tile's box touches. Without rows, nobody opens any.
void verify_transfers(const Timeline& timeline, const TileGraph& tiles, const Graph& graph,
                      const Chip& chip);

} // namespace monet
