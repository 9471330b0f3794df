// The table of operators: how each becomes a loop nest, or that it is a view. One file per family
// in src/workload/operators/; a new operator is one line in its family's table.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/workload/graph.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace monet {

/// Builds the nest of `op`, whose tensors' shapes are all known. Throws InputError located at the
/// node when attributes and shapes contradict each other.
using NestBuilder = LoopNest (*)(const Graph& graph, const Operator& op);

struct OperatorRule {
  std::string_view domain; ///< "" = ai.onnx
  std::string_view op_type;
  NestBuilder build = nullptr; ///< null for a view
  bool is_view = false;        ///< rearranges or aliases only; fold_views() removes it
};

/// The rule for an operator type, or null when there is none.
const OperatorRule* find_rule(std::string_view domain, std::string_view op_type);
/// The operator's rule says that it is a view.
bool has_view_rule(const Operator& op);
/// All rules, sorted by domain and type (for documentation and messages).
const std::vector<OperatorRule>& all_rules();

/// ai.monet.Offload copies a tensor from the device to the host's memory, ai.monet.Fetch back.
bool is_offload(const Operator& op);
bool is_fetch(const Operator& op);
/// The copy that an Offload makes: it takes no memory of the device.
bool lies_in_host(const Graph& graph, TensorId tensor);

/// Fills op.nest by the rule. The rule must exist.
void build_nest(Graph& graph, OpId op);

/// Location of a node for messages: "net.onnx [node '/conv1/Conv' (Conv)]".
SourceLoc location_of(const Graph& graph, const Operator& op, std::string_view detail = {});

/// Types in the domain ai.monet of the gradients of Y = product(X, W).
struct ProductGradients {
  std::string_view forward; ///< type of the product
  std::string_view first;   ///< (dY, W) -> dX
  std::string_view second;  ///< (X, dY) -> dW
};
std::span<const ProductGradients> product_gradients();

/// (X, W, dY) -> dX, dW: both in one operator.
inline constexpr std::string_view kProductGrad = "ProductGrad";

/// What a gradient of a product reads and makes; X is the product's first operand and W its second,
/// whichever of them is a weight.
struct GradientTensors {
  TensorId dy;
  std::optional<TensorId> x, w;   ///< that it reads
  std::optional<TensorId> dx, dw; ///< that it makes
};
/// Nothing for an operator that is none.
std::optional<GradientTensors> gradient_tensors(const Operator& op);

} // namespace monet
