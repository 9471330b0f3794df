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
///
/// Stacks in `in_turns` (per stack; empty: none) follow each other with the first of `turns` equal
/// shares of their slices, beginning where the first of them would, and so again until all slices
/// have had their turn. Fills `turn`, too.
void rank_tiles(TileGraph& tiles, std::int64_t turns = 1, const std::vector<bool>& in_turns = {});

} // namespace monet
