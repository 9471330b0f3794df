// Exact dependencies between tiles, from the regions they touch.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <span>
#include <vector>

namespace monet {

/// Elements in at least one of the boxes, all over the same axes.
std::int64_t union_volume(std::span<const Box> boxes);

/// The regions of a tensor that a tile reads, one per reading operand.
std::vector<Box> read_boxes(const Graph& graph, const Tile& tile, TensorId tensor);
/// The region of a tensor that a tile writes.
Box written_box(const Graph& graph, const Tile& tile, TensorId tensor);

/// Edges into every tile, sorted by (to, from, tensor).
std::vector<TileEdge> make_edges(const TileGraph& tiles, const Graph& graph);

} // namespace monet
