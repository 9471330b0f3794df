// Axes in which two loops interleave, as two axes.
#pragma once

#include "monet/workload/graph.hpp"

namespace monet {

/// PyTorch's attention flattens [T, B, C] to rows t * B + b. A tile of one image then touches every
/// B-th row, which is no box: the loop over images could not be cut. An axis of a tensor that is made
/// and used up inside the graph becomes two, of which every loop goes along one, where all who write
/// and read it allow that and somebody who writes it gains by it. Elements stay where they are.
void part_interleaved_axes(Graph& folded);

} // namespace monet
