// The order in which tiles are scheduled.
#pragma once

#include "monet/tiling/tiling.hpp"

namespace monet {

/// Fills `rank`. Stacks follow each other in the order of their first operators. Within a stack,
/// slices interleave: slice by slice, the operators in their order. A tile that needs more than its
/// own slice of another operator (a halo, a sum over slices) belongs to the last slice that it
/// needs. A tile is never before one it depends on, be it in another stack: what a stack needs of
/// others comes just before it is needed, so that a stack around an operator of another one is
/// legal. Storage is overwritten after it has been read (anti_dependences).
void rank_tiles(TileGraph& tiles);

} // namespace monet
