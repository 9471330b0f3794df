// Table of operators: the loop nest of each, or its property of being a view. There is one file per
// family in src/workload/operators/; a new operator is one line in its family's table.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/workload/graph.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace monet {

/// Function that builds the nest of `op`; the shapes of its tensors must be known. Throws
/// InputError located at the node if attributes and shapes contradict each other.
using NestBuilder = LoopNest (*)(const Graph& graph, const Operator& op);

/// Rule for an operator type.
struct OperatorRule {
  std::string_view domain; ///< empty: ai.onnx
  std::string_view op_type;
  NestBuilder build = nullptr; ///< null for a view
  /// Whether it only rearranges or aliases its input; fold_views() removes it.
  bool is_view = false;
};

/// Rule for an operator type; null if the type is unknown.
const OperatorRule* find_rule(std::string_view domain, std::string_view op_type);
/// Whether the operator's rule marks it as a view.
bool has_view_rule(const Operator& op);
/// All rules, sorted by domain and type (for documentation and messages).
const std::vector<OperatorRule>& all_rules();

/// Whether the operator is ai.monet.Offload, which copies a tensor from the device to the host's
/// memory.
bool is_offload(const Operator& op);
/// Whether the operator is ai.monet.Fetch, which copies a tensor from the host's memory to the
/// device.
bool is_fetch(const Operator& op);
/// Whether the tensor is the copy that an Offload makes, which uses no memory of the device.
bool lies_in_host(const Graph& graph, TensorId tensor);

/// Sets op.nest by the operator's rule, which must exist.
void build_nest(Graph& graph, OpId op);

/// Location of a node for messages: "net.onnx [node '/conv1/Conv' (Conv)]".
SourceLoc location_of(const Graph& graph, const Operator& op, std::string_view detail = {});

/// Operator types, in the domain ai.monet, of the gradients of a product Y = product(X, W).
struct ProductGradients {
  std::string_view forward; ///< type of the product
  std::string_view first;   ///< (dY, W) -> dX
  std::string_view second;  ///< (X, dY) -> dW
};
/// Gradient types of all products.
std::span<const ProductGradients> product_gradients();

/// Operator type that computes both gradients of a product: (X, W, dY) -> dX, dW.
inline constexpr std::string_view kProductGrad = "ProductGrad";

/// Tensors that a gradient of a product reads and produces. X is the product's first operand and W
/// its second, whether or not it is a weight.
struct GradientTensors {
  TensorId dy;
  std::optional<TensorId> x, w;   ///< nullopt: not read
  std::optional<TensorId> dx, dw; ///< nullopt: not produced
};
/// Tensors of an operator that computes gradients of a product; nullopt for other operators.
std::optional<GradientTensors> gradient_tensors(const Operator& op);

} // namespace monet
