// Grids of tiles: cutting loops and counting through the parts.
#pragma once

#include "tiling/slices.hpp"
#include "tiling/split.hpp"

#include "monet/tiling/tiling.hpp"

#include <span>
#include <vector>

namespace monet {

/// All loops whole: one tile.
OperatorTiling uncut(const LoopNest& nest);

/// Cuts every part that the loop has so far into `factor.parts` even ones; the new cut is the
/// innermost. Parts that cannot be cut so often have a size of 0: the caller sees to it that there
/// are none.
void cut(OperatorTiling& tiling, const SplitFactor& factor);

/// Cuts a loop that is whole into these slices. Slices come before other cuts.
void cut_slices(OperatorTiling& tiling, const SliceCut& slices);

/// Iterations of the shortest part of the loop.
std::int64_t shortest_part(const OperatorTiling& tiling, std::size_t dim);

/// Tiles that the cuts make.
std::int64_t tile_count(const OperatorTiling& tiling);

/// Appends the tiles of the next operator. Those of one slice take the cores in turn, every slice
/// from the first one on. Edges, ranks and stacks are the caller's.
void append_tiles(TileGraph& tiles, OpId op, OperatorTiling tiling, std::span<const CoreId> cores);

/// Ranks in the order of tiles, each operator a stack of its own.
void rank_in_order(TileGraph& tiles);

} // namespace monet
