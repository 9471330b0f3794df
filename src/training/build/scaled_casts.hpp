// Products of layers in fp8 (ScaledProducts): which they are, and the casts of their operands. A
// tensor in fp8 stands for its numbers over its scale; products take the scales off their sums as
// they leave the array, which is no operator.
#pragma once

#include "training/build/step_builder.hpp"

#include <optional>
#include <vector>

namespace monet {

/// A cast with a scale, or what finds its scale.
bool casts_scaled(const Operator& op);
/// What the tensor was before it was cast with a scale.
TensorId before_scaling(const Graph& graph, TensorId id);

/// The network with the operands of chosen products cast to fp8, each tensor once. Of products with
/// one weight, a scale is shared by all that they multiply it with. Tensors keep their ids.
/// `trained` by TensorId. For inference, scales are buffers and no maxima are looked for.
/// InputError when a pattern matches no weight of a product, no product is left, or an operand has
/// at most 8 bits already.
Graph add_scaled_casts(const Graph& network, const Precision& precision,
                       const std::vector<bool>& trained, bool training);

/// dY in fp8, once for all that read it, where the operands of the forward product are; dY itself
/// elsewhere.
TensorId scaled_gradient(StepBuilder& builder, TensorId dy, OpId product);

/// States and buffers that tensors are scaled by, each once.
std::vector<TensorId> delayed_scales(const Graph& graph);

/// The largest number of an fp8 format.
double largest_of(ElementType type);

} // namespace monet
