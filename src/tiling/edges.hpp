// Exact dependencies between tiles, from the regions they touch.
#pragma once

#include "monet/tiling/tiling.hpp"

namespace monet {

/// Fills first_edge and edges of a graph whose tiles are complete. A tile has an edge
/// - for every part of a tensor that it reads and another tile writes; of several that add into the
///   part, the last one;
/// - for what it adds into, from the tile that adds into the same before it.
/// The cost is that of the edges: per group of axes, what a consumer's part overlaps is looked up
/// among the producer's parts, once for all tiles that share it.
void make_edges(TileGraph& tiles, const Graph& graph);

} // namespace monet
