// Products of layers in fp8 (ScaledProducts): which they are, and the casts of their operands. A
// tensor in fp8 stands for its numbers over its scale; products take the scales off their sums as
// they leave the array, which is no operator.
#pragma once

#include "training_graph/build/step_builder.hpp"

#include "monet/training_graph/options.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/graph.hpp"

#include <vector>

namespace monet {

// An operator rounds its own results to the type of their role, and element-wise operators,
// normalisations and reductions read any type as it is; a product takes its operands in one type.
// Where a weight or a gradient comes in another, a Cast stands before the product, once for all
// readers.

/// An array multiplies the two as they are: the same type; tf32 and fp32; formats of at most 8 bits
/// with the same kind of scale (fp8 of both forms, microscaling blocks of any).
bool multiplies_with(ElementType a, ElementType b);

/// A network of which every parameter is fp64 was written so for the sake of its numbers: the same
/// in fp32. Nullopt for all others, which keep the fp64 that they cast to.
std::optional<Graph> in_single_precision(const Graph& network);
/// Element type of a parameter: trained, or kept as it is; none: the file's.
std::optional<ElementType> weight_type(const Precision& precision, bool trained);

/// Some weights may need a Cast before a product takes them.
bool casts_weights(const Precision& precision);
/// The network with a Cast of every weight that a product takes in another type, to the type of
/// activations. Tensors of the network keep their ids. `trained` by TensorId.
Graph add_weight_casts(const Graph& network, const Precision& precision,
                       const std::vector<bool>& trained);

/// A product of a layer: one operand is computed from parameters alone, the other is not.
struct LayerProduct {
  OpId op;
  std::size_t weight = 1;           ///< its input
  std::vector<TensorId> parameters; ///< of the weight, at least one
};

/// Products chosen by the options, in the order of operators. InputError when a pattern matches no
/// weight of a product, or no product is left.
std::vector<LayerProduct> chosen_products(const Graph& network, const ScaledProducts& options);

/// True for a cast with a scale, and for an operator that computes its scale.
bool casts_scaled(const Operator& op);
/// Tensor from which `id` was cast with a scale; any other tensor itself.
TensorId before_scaling(const Graph& graph, TensorId id);

/// The network with the operands of chosen products cast to fp8, each tensor once. Products with
/// the same weight share one scale for all operands multiplied by it. Tensors keep their ids.
/// `trained` by TensorId. For inference, scales are buffers and no maxima are computed. InputError
/// when a pattern matches no weight of a product, no product is left, or an operand has at most 8
/// bits already.
Graph add_scaled_casts(const Graph& network, const Precision& precision,
                       const std::vector<bool>& trained, bool training);

/// Operands of the backward products of Y = X * W.
struct ProductOperands {
  TensorId x; ///< for dW
  TensorId dy_for_weight;
  TensorId dy_for_input;
};
/// Operands in fp8 if those of the forward product are: dY is cast once for all readers. Blocks lie
/// along the axis that a product sums over, so that dW reads separate copies. For other products, X
/// and dY themselves.
ProductOperands backward_operands(StepBuilder& builder, TensorId dy, OpId product, bool wants_input,
                                  bool wants_weight);
/// For a tensor in blocks along its last axis, the copy that a gradient of a weight reads,
/// where there is one. Any other tensor itself.
TensorId copy_for_weight(const Graph& graph, TensorId id);

/// States and buffers that tensors are scaled by, each once.
std::vector<TensorId> delayed_scales(const Graph& graph);

/// The largest number of an fp8 format.
double largest_of(ElementType type);

} // namespace monet
