// fold_views(): folds views into access maps. Afterwards there is no Reshape, Transpose, Slice,
// Split, Squeeze or Expand. Views that are not affine (a reshape across rows, a concatenation)
// become explicit Copy operators with the cost of a copy.
#pragma once

#include "monet/workload/graph.hpp"

namespace monet {

/// Makes an equivalent graph without views. Every consumer of a view reads the viewed tensor
/// through a composed map, and splits a loop in two if a reshape requires it (rows = batch * 1024 +
/// position). An axis of an intermediate tensor with interleaved loops becomes two axes, so that
/// each loop can be cut. An example is rows = position * images + image, as PyTorch's attention
/// flattens them. Names of tensors and operators remain, as do phase and gradient_of; total MACs
/// are unchanged.
Graph fold_views(const Graph& graph);

/// Whether the operator is a view, or a Cast without effect: its input and output share memory.
bool is_view(const Graph& graph, const Operator& op);

/// Replaces a view in an operand of a nest by the viewed tensor, through all consecutive views that
/// compose with its map. Loops are split if a reshape requires it.
void read_through_views(const Graph& graph, LoopNest& nest, std::size_t operand);

/// Tensor whose memory a view shares; the tensor itself if it is not a view.
TensorId storage_root(const Graph& graph, TensorId tensor);

} // namespace monet
