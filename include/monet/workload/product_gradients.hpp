// The operators that compute the gradients of a product's operands.
#pragma once

#include "monet/workload/graph.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace monet {

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
