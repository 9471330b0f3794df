// Grids of tiles: cutting loops, counting through the parts, and what they read of each other.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <algorithm>
#include <span>

namespace monet {

/// One loop cut into so many parts.
struct SplitFactor {
  std::size_t dim = 0;
  std::int64_t parts = 1;
};

/// Iterations of the loop touch other elements of the operand, as far as its axes tell.
inline bool moved_by(const Access& access, std::size_t dim) {
  return !access.opaque && std::ranges::any_of(access.axes, [&](const AxisExpr& axis) {
    return !axis.data_dependent && has_loop(axis, dim);
  });
}

/// True when cutting the loop keeps every output's parts disjoint: every output has an axis on
/// which one step of the loop goes further than all other loops of the axis together reach. Never
/// true of a reduction, nor of an output that is opaque; a data-dependent axis separates nothing.
bool may_split(const LoopNest& nest, std::size_t dim);

/// All loops whole: one tile.
OperatorTiling uncut(const LoopNest& nest);

/// Cuts every part that the loop has so far into `factor.parts` even ones; the new cut is the
/// innermost. Parts that cannot be cut so often have a size of 0: the caller sees to it that there
/// are none.
void cut(OperatorTiling& tiling, const SplitFactor& factor);

/// Iterations of the shortest part of the loop.
std::int64_t shortest_part(const OperatorTiling& tiling, std::size_t dim);

/// Tiles that the cuts make.
std::int64_t tile_count(const OperatorTiling& tiling);

/// Appends the tiles of the next operator. Those of one slice take the cores in turn, every slice
/// from the first one on. Edges, ranks and stacks are the caller's.
void append_tiles(TileGraph& tiles, OpId op, OperatorTiling tiling, std::span<const CoreId> cores);

/// Fills first_edge, edges and anti_dependences of a graph whose tiles are complete. A tile has an
/// edge
/// - for every part of a tensor that it reads and another tile writes; of several that add into the
///   part, the last one;
/// - for what it adds into, from the tile that adds into the same before it.
/// The cost is that of the edges: per group of axes, what a consumer's part overlaps is looked up
/// among the producer's parts, once for all tiles that share it.
void make_edges(TileGraph& tiles, const Graph& graph);

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
void rank_tiles(TileGraph& tiles, std::int64_t turns, const std::vector<bool>& in_turns);

/// Ranks in the order of tiles, each operator a stack of its own.
void rank_in_order(TileGraph& tiles);

} // namespace monet
