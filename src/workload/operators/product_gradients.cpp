#include "monet/workload/product_gradients.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

constexpr std::array kGradients{
    ProductGradients{"Conv", "ConvGradInput", "ConvGradWeight"},
    ProductGradients{"ConvTranspose", "ConvTransposeGradInput", "ConvTransposeGradWeight"},
    ProductGradients{"MatMul", "MatMulGradA", "MatMulGradB"},
    ProductGradients{"Gemm", "GemmGradA", "GemmGradB"},
    ProductGradients{"Einsum", "EinsumGradA", "EinsumGradB"},
};

} // namespace

std::span<const ProductGradients> product_gradients() {
  return kGradients;
}

std::optional<GradientTensors> gradient_tensors(const Operator& op) {
  if (op.domain != kMonetDomain)
    return std::nullopt;
  const auto is = [&](std::string_view ProductGradients::*type) {
    return std::ranges::find(kGradients, op.op_type, type) != kGradients.end();
  };
  if (op.op_type == kProductGrad)
    return GradientTensors{*op.inputs[2], op.inputs[0], op.inputs[1], op.outputs[0], op.outputs[1]};
  if (is(&ProductGradients::first))
    return GradientTensors{*op.inputs[0], std::nullopt, op.inputs[1], op.outputs[0], std::nullopt};
  if (is(&ProductGradients::second))
    return GradientTensors{*op.inputs[1], op.inputs[0], std::nullopt, std::nullopt, op.outputs[0]};
  return std::nullopt;
}

} // namespace monet
