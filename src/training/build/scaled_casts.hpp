// Products of layers in fp8 (ScaledProducts): which they are, and the casts of their operands. A
// tensor in fp8 stands for its numbers over its scale; products take the scales off their sums as
// they leave the array, which is no operator.
#pragma once

#include "training/build/step_builder.hpp"

#include "monet/training/options.hpp"

namespace monet {

/// A product of a layer: one operand is computed from parameters alone, the other is not.
struct LayerProduct {
  OpId op;
  std::size_t weight = 1;           ///< its input
  std::vector<TensorId> parameters; ///< of the weight, at least one
};

/// Those that the options choose, in the order of operators. InputError when a pattern matches no
/// weight of a product, or no product is left.
std::vector<LayerProduct> chosen_products(const Graph& network, const ScaledProducts& options);

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

/// What the backward products of Y = X * W read.
struct ProductOperands {
  TensorId x; ///< for dW
  TensorId dy_for_weight;
  TensorId dy_for_input;
};
/// Where the operands of the forward product are in fp8, dY is as well, cast once for all that read
/// it. Blocks lie along the axis that a product sums over, so that dW takes copies of its own.
/// Elsewhere X and dY themselves.
ProductOperands backward_operands(StepBuilder& builder, TensorId dy, OpId product, bool wants_input,
                                  bool wants_weight);
/// Of a tensor in blocks that lie along its last axis: the copy that a gradient of a weight reads,
/// where there is one. Any other tensor itself.
TensorId copy_for_weight(const Graph& graph, TensorId id);

/// States and buffers that tensors are scaled by, each once.
std::vector<TensorId> delayed_scales(const Graph& graph);

/// The largest number of an fp8 format.
double largest_of(ElementType type);

} // namespace monet
