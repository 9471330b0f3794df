// Splitting of axes in which two loops interleave, so that each loop can be cut.
#pragma once

#include "monet/workload/graph.hpp"

namespace monet {

/// Splits axes in which two loops interleave. PyTorch's attention flattens [T, B, C] to rows t * B
/// + b. A tile of one image then accesses every B-th row, which is not a box, so the loop over
/// images could not be tiled. An axis of an internal tensor becomes two axes, if every access
/// allows it and a writer of the tensor interleaves. The order of elements is unchanged.
void part_interleaved_axes(Graph& folded);

} // namespace monet
