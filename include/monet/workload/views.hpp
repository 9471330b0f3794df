// Folding of views into access maps: after it, no Reshape, Transpose, Slice, Split, Squeeze or
// Expand is left; what is not affine (a reshape across rows, a concatenation) is an explicit Copy
// operator that costs what a copy costs.
#pragma once

#include "monet/workload/graph.hpp"

namespace monet {

/// The same computation without views: every consumer of a view reads the viewed tensor through a
/// composed map, splitting a loop in two where a reshape needs it (rows = batch * 1024 + position).
/// An axis of an intermediate tensor in which loops interleave (rows = position * images + image, as
/// PyTorch's attention flattens them) becomes two, so that each of its loops can be cut.
/// Tensor and operator names stay. Operators keep phase and gradient_of; total MACs are unchanged.
Graph fold_views(const Graph& graph);

/// A view operator, or a Cast that changes nothing: what it reads and writes is one piece of
/// memory.
bool is_view(const Graph& graph, const Operator& op);

/// Has an operand of a nest read what is viewed instead of a view, through as many views as compose
/// with its map; loops are split where a reshape needs it.
void read_through_views(const Graph& graph, LoopNest& nest, std::size_t operand);

/// The tensor whose memory a view shares; the tensor itself when it is no view.
TensorId storage_root(const Graph& graph, TensorId tensor);

} // namespace monet
