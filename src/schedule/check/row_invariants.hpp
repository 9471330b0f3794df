// Rows of the off-chip memory in a finished timeline, recomputed without its closed forms.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/schedule/timeline.hpp"
#include "monet/tiling/tiling.hpp"

namespace monet {

/// InternalError unless every transfer from or to the off-chip memory opens as many rows as its
/// bits fill at least and takes the time that banks simulated row by row need, and transfers that
/// fetch a tensor open the rows that a tile's box touches. Without rows, nobody opens any.
void verify_rows(const Timeline& timeline, const TileGraph& tiles, const Graph& graph,
                 const Chip& chip);

} // namespace monet
