// Tile grids of operators: cutting loops, appending tiles, edges between tiles and their order. All
// parts of the tiling stage use it.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <algorithm>
#include <span>

namespace monet {

/// A loop and the number of parts into which it is cut.
struct SplitFactor {
  std::size_t dim = 0;
  std::int64_t parts = 1;
};

/// True if the loop moves an affine axis of the operand. False for opaque operands; data-dependent
/// axes are ignored.
inline bool moved_by(const Access& access, std::size_t dim) {
  return !access.opaque && std::ranges::any_of(access.axes, [&](const AxisExpr& axis) {
    return !axis.data_dependent && has_loop(axis, dim);
  });
}

/// True if cutting the loop keeps every output's parts disjoint: every output has an axis on which
/// one step of the loop is larger than the joint reach of all other loops. False for reductions and
/// opaque outputs; a data-dependent axis does not separate parts.
bool may_split(const LoopNest& nest, std::size_t dim);

/// Tiling of the nest into a single tile: every loop is whole.
OperatorTiling uncut(const LoopNest& nest);

/// Cuts every present part of the loop into `factor.parts` even parts; the new cut becomes the
/// innermost one. The caller ensures that every present part has at least `factor.parts`
/// iterations: otherwise some new parts are empty.
void cut(OperatorTiling& tiling, const SplitFactor& factor);

/// Number of iterations of the loop's shortest part.
std::int64_t shortest_part(const OperatorTiling& tiling, std::size_t dim);

/// Number of tiles that the cuts produce.
std::int64_t tile_count(const OperatorTiling& tiling);

/// Appends the tiles of the next operator. The tiles of a slice are assigned to the cores
/// round-robin; every slice starts with the first core. Edges, ranks and stacks are left to the
/// caller.
void append_tiles(TileGraph& tiles, OpId op, OperatorTiling tiling, std::span<const CoreId> cores);

/// Computes first_edge, edges and anti_dependences of a graph whose tiles are complete. Edges lead
/// to a tile from two kinds of tiles.
/// - For every part of a tensor that it reads: the tile that writes the part. If several tiles add
///   into the part, the last of them.
/// - For every region that it adds into: the previous tile that adds into the same region.
///
/// The running time is proportional to the number of edges: for each group of axes, the producer's
/// parts that a consumer's part overlaps are found once for all tiles that share the consumer's
/// part.
void make_edges(TileGraph& tiles, const Graph& graph);

/// Computes `rank`, the scheduling order. Stacks follow each other in the order of their first
/// operators. Within a stack, slices interleave: slice by slice, with operators in their order. A
/// tile that needs more than its own slice of another operator (a halo, a sum over slices) belongs
/// to the last slice that it needs.
///
/// A tile ranks after every tile it depends on, also across stacks: tiles that a stack needs of
/// other stacks rank directly before their first use. A stack may therefore enclose an operator of
/// another stack. Storage is overwritten only after it has been read (anti_dependences).
///
/// Stacks set in `in_turns` (indexed by stack; empty: no stack) take `turns` turns, beginning at
/// the rank of the first such stack. In each turn, every such stack runs the next of `turns` equal
/// shares of its slices. Also computes `turn`.
void rank_tiles(TileGraph& tiles, std::int64_t turns, const std::vector<bool>& in_turns);

/// Ranks tiles in the order of their ids; each operator becomes a separate stack.
void rank_in_order(TileGraph& tiles);

} // namespace monet
