// Multiply-accumulate nests: every product, convolution and gradient of one.
#include "execute/kernel.hpp"
#include "execute/product.hpp"

#include <array>

namespace monet {

namespace {

/// Adds beta * bias to every element that the nest's outputs cover.
template <class Real>
void start_from_bias(KernelContext<Real>& context, std::size_t operand, double beta) {
  const LoopNest& nest = context.op().nest;
  const OperandMap to = context.map_of(0);
  const OperandMap from = context.map_of(operand);
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < nest.dims.size(); ++d)
    sizes.push_back(to.strides[d] == 0 ? 1 : nest.dims[d].size);
  const auto& bias = context.tensor(nest.operands[operand].tensor);
  auto& out = context.output(0);
  std::vector<std::int64_t> point(sizes.size(), 0);
  do {
    const auto target = to.at(point);
    const auto source = from.at(point);
    if (target && source) {
      out[static_cast<std::size_t>(*target)] +=
          static_cast<Real>(beta) * bias[static_cast<std::size_t>(*source)];
    }
  } while (next_point(point, sizes));
}

/// One value per channel (axis 1): transposed convolutions visit an output several times, or never.
template <class Real>
void add_channel_bias(KernelContext<Real>& context) {
  const auto& bias = context.input(2);
  auto& out = context.output(0);
  const auto& shape = context.output_shape(0);
  const std::size_t channels = bias.size();
  const std::size_t pixels =
      out.size() / static_cast<std::size_t>(shape[0]) / std::max<std::size_t>(channels, 1);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] += bias[i / pixels % channels];
}

struct Product {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    const LoopNest& nest = context.op().nest;
    internal_check(nest.operands.size() >= 3, "a product has two operands and a result");
    auto& out = context.output(0);
    multiply_accumulate<Real>(context.graph(), nest, out, context.tensor(nest.operands[1].tensor),
                              context.tensor(nest.operands[2].tensor));
    const double alpha = context.attributes().number("alpha", 1.0);
    if (alpha != 1.0) {
      for (Real& value : out)
        value *= static_cast<Real>(alpha);
    }
    if (nest.operands.size() < 4)
      return;
    if (context.op().op_type == "ConvTranspose") {
      add_channel_bias(context);
    } else {
      start_from_bias(context, 3, context.attributes().number("beta", 1.0));
    }
  }
};

/// One operand: a sum, a diagonal or a permutation, as the loops say.
struct Einsum {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    if (context.op().inputs.size() > 1) {
      Product::run(context);
      return;
    }
    context.for_each_iteration([](std::span<const Real> v, std::span<Real> y) { y[0] = v[0]; });
  }
};

constexpr std::array kKernels{
    kernel<Einsum>("", "Einsum"),
    kernel<Einsum>(kMonetDomain, "EinsumGradA"),
    kernel<Einsum>(kMonetDomain, "EinsumGradB"),
    kernel<Product>("", "Conv"),
    kernel<Product>("", "ConvTranspose"),
    kernel<Product>("", "MatMul"),
    kernel<Product>("", "Gemm"),
    kernel<Product>("com.microsoft", "FusedMatMul"),
    kernel<Product>("com.microsoft", "TransposeMatMul"),
    kernel<Product>(kMonetDomain, "ConvGradInput"),
    kernel<Product>(kMonetDomain, "ConvGradWeight"),
    kernel<Product>(kMonetDomain, "ConvTransposeGradInput"),
    kernel<Product>(kMonetDomain, "ConvTransposeGradWeight"),
    kernel<Product>(kMonetDomain, "MatMulGradA"),
    kernel<Product>(kMonetDomain, "MatMulGradB"),
    kernel<Product>(kMonetDomain, "GemmGradA"),
    kernel<Product>(kMonetDomain, "GemmGradB"),
};

} // namespace

std::span<const KernelEntry> product_kernels() {
  return kKernels;
}

} // namespace monet
