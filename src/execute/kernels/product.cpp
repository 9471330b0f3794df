// Multiply-accumulate nests: every product, convolution and gradient of one.
#include "execute/walk/product.hpp"

#include "base/shared/fnv1a.hpp"
#include "base/shared/rng.hpp"
#include "execute/kernels/walk.hpp"
#include "workload/shared/op_types.hpp"

namespace monet {

namespace {

/// Adds beta * bias to every element that the nest's outputs cover.
template <class Real>
void start_from_bias(KernelContext<Real>& context, std::size_t operand, double beta) {
  const LoopNest& nest = context.op().nest;
  const OperandMap to = context.map_of(0);
  const OperandMap from = context.map_of(operand);
  std::vector<bool> covered;
  for (const std::int64_t stride : to.strides)
    covered.push_back(stride != 0);
  const auto& bias = context.tensor(nest.operands[operand].tensor);
  auto& out = context.output(0);
  for_each_point(
      context.op().nest,
      [&](const auto& point) {
        const auto target = to.at(point);
        const auto source = from.at(point);
        if (target && source)
          out[static_cast<std::size_t>(*target)] +=
              static_cast<Real>(beta) * bias[static_cast<std::size_t>(*source)];
      },
      &covered);
}

/// One value per channel (axis 1): transposed convolutions visit an output several times, or never.
template <class Real>
void add_channel_bias(KernelContext<Real>& context) {
  const auto& bias = context.input(2);
  const std::span<Real> out = context.output(0);
  const auto& shape = context.output_shape(0);
  if (out.empty())
    return;
  const std::size_t channels = bias.size();
  const std::size_t pixels =
      out.size() / static_cast<std::size_t>(shape[0]) / std::max<std::size_t>(channels, 1);
  for (std::size_t begin = 0; begin < out.size(); begin += pixels) {
    const Real more = bias[begin / pixels % channels];
    for (Real& value : out.subspan(begin, std::min(pixels, out.size() - begin)))
      value += more;
  }
}

/// The unit of a product; null: the machine's own arithmetic.
const Mac* unit_of(const StepArithmetic* formats, GradientOf gradient) {
  if (formats == nullptr)
    return nullptr;
  const std::optional<Mac>& unit = gradient == GradientOf::none     ? formats->forward
                                   : gradient == GradientOf::weight ? formats->weight_gradient
                                                                    : formats->input_gradient;
  return unit ? &*unit : nullptr;
}

/// Number of threads for a product: one if it takes no longer than starting threads.
int threads_for(const LoopNest& nest, int jobs) {
  constexpr std::int64_t kMin = 1 << 18;
  return iterations(nest) < kMin ? 1 : jobs;
}

/// Multiplies two operands along the loops of the nest, times alpha.
template <class Real>
void multiply(KernelContext<Real>& context, const LoopNest& nest, GradientOf gradient,
              std::vector<Real>& out) {
  const std::vector<Real>& left = context.tensor(nest.operands[1].tensor);
  const std::vector<Real>& right = context.tensor(nest.operands[2].tensor);
  const Mac* unit = unit_of(context.formats(), gradient);
  const int jobs = threads_for(nest, context.jobs());
  if constexpr (std::is_same_v<Real, float>) {
    if (unit != nullptr) {
      Mac seeded = *unit;
      seeded.rounding.seed = random_bits(context.seed(), fnv1a(context.op().name));
      emulate_product(context.graph(), nest, out, left, right,
                      {seeded, jobs, context.instructions(), context.gradients()});
    }
  }
  if (unit == nullptr)
    multiply_accumulate<Real>(context.graph(), nest, out, left, right, jobs);
  const double alpha = context.attributes().number("alpha", 1.0);
  if (alpha != 1.0) {
    for (Real& value : out)
      value *= static_cast<Real>(alpha);
  }
}

constexpr auto kProduct = []<class Real>(KernelContext<Real>& context) {
  const LoopNest& nest = context.op().nest;
  internal_check(nest.operands.size() >= 3, "a product has two operands and a result");
  multiply(context, nest, context.op().gradient_of, context.output(0));
  if (nest.operands.size() < 4)
    return;
  if (context.op().op_type == ops::ConvTranspose) {
    add_channel_bias(context);
  } else {
    start_from_bias(context, 3, context.attributes().number("beta", 1.0));
  }
};

/// Every product of the nest by itself, as its operator alone would compute it.
constexpr auto kBothGradients = []<class Real>(KernelContext<Real>& context) {
  const LoopNest& nest = context.op().nest;
  for (std::size_t p = 0; p < nest.products.size(); ++p) {
    GradientOf gradient = context.op().gradient_of;
    if (gradient == GradientOf::both)
      gradient = p == 0 ? GradientOf::input : GradientOf::weight;
    multiply(context, product_nest(nest, nest.products[p]), gradient, context.output(p));
  }
};

/// Einsum. With one operand it is a sum, a diagonal or a permutation, depending on the loops.
constexpr auto kEinsum = []<class Real>(KernelContext<Real>& context) {
  if (context.op().inputs.size() > 1) {
    kProduct(context);
    return;
  }
  copy_through_nest(context);
};

} // namespace

KernelTable product_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::Einsum, kEinsum),
      kernel(kMonetDomain, ops::EinsumGradA, kEinsum),
      kernel(kMonetDomain, ops::EinsumGradB, kEinsum),
      kernel("", ops::Conv, kProduct),
      kernel("", ops::ConvTranspose, kProduct),
      kernel("", ops::MatMul, kProduct),
      kernel("", ops::Gemm, kProduct),
      kernel("com.microsoft", ops::FusedMatMul, kProduct),
      kernel("com.microsoft", ops::TransposeMatMul, kProduct),
      kernel(kMonetDomain, ops::ConvGradInput, kProduct),
      kernel(kMonetDomain, ops::ConvGradWeight, kProduct),
      kernel(kMonetDomain, ops::ConvTransposeGradInput, kProduct),
      kernel(kMonetDomain, ops::ConvTransposeGradWeight, kProduct),
      kernel(kMonetDomain, ops::MatMulGradA, kProduct),
      kernel(kMonetDomain, ops::MatMulGradB, kProduct),
      kernel(kMonetDomain, ops::GemmGradA, kProduct),
      kernel(kMonetDomain, ops::GemmGradB, kProduct),
      kernel(kMonetDomain, ops::ProductGrad, kBothGradients),
  };
  return kEntries;
}

} // namespace monet
