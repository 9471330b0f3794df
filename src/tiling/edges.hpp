// Exact dependencies between tiles, from the regions they touch.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <span>
#include <vector>

namespace monet {

/// Elements in at least one of the boxes, all over the same axes.
std::int64_t union_volume(std::span<const Box> boxes);

/// The regions of a tensor that a tile reads, one per reading operand.
std::vector<Box> read_boxes(const Operator& op, std::span<const Interval> tile, TensorId tensor,
                            std::span<const std::int64_t> shape);
/// The region of a tensor that a tile writes.
Box written_box(const Operator& op, std::span<const Interval> tile, TensorId tensor,
                std::span<const std::int64_t> shape);

/// Fills first_edge and edges of a graph whose tiles are complete.
void make_edges(TileGraph& tiles, const Graph& graph);

} // namespace monet
