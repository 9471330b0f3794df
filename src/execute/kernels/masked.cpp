// Activations that also write where their gradient passes, one bit an element, and their gradient
// (see training/memory/pack_stored.cpp).
#include "execute/kernels/pointwise.hpp"
#include "workload/shared/op_types.hpp"

namespace monet {

namespace {

/// (X, min, max), of which the bounds may be left out.
constexpr auto kMaskedClip = [](const Operator& op) {
  const bool low = has_input(op, 1);
  const bool high = has_input(op, 2);
  const bool strict = op.attributes.integer("strict", 0) != 0;
  return [=](auto x, auto least, auto most) {
    const bool above = !low || (strict ? x > least : x >= least);
    const bool below = !high || (strict ? x < most : x <= most);
    auto y = low ? std::max(x, least) : x;
    if (high)
      y = std::min(y, most);
    return std::array{y, static_cast<decltype(x)>(above && below)};
  };
};

constexpr auto kMaskedHardSigmoid = []<class Real>(KernelContext<Real>& context) {
  const auto alpha = static_cast<Real>(context.attributes().number("alpha", 0.2));
  const auto beta = static_cast<Real>(context.attributes().number("beta", 0.5));
  context.map([=](Real x) {
    const Real line = alpha * x + beta;
    return std::array{std::clamp(line, Real{0}, Real{1}), static_cast<Real>(line > 0 && line < 1)};
  });
};

constexpr auto kMaskedLeakyRelu = []<class Real>(KernelContext<Real>& context) {
  const auto alpha = static_cast<Real>(context.attributes().number("alpha", 0.01));
  context.map([=](Real x) { return std::array{x > 0 ? x : alpha * x, static_cast<Real>(x > 0)}; });
};

/// dX = inside * dY where the mask is set, outside * dY elsewhere.
constexpr auto kMaskGrad = []<class Real>(KernelContext<Real>& context) {
  const auto inside = static_cast<Real>(context.attributes().number("inside", 1.0));
  const auto outside = static_cast<Real>(context.attributes().number("outside", 0.0));
  context.map([=](Real dy, Real mask) { return (mask != 0 ? inside : outside) * dy; });
};

} // namespace

KernelTable masked_kernels() {
  static constexpr KernelEntry kEntries[]{
      own_with(ops::Clip, kMaskedClip),
      kernel(kMonetDomain, ops::HardSigmoid, kMaskedHardSigmoid),
      kernel(kMonetDomain, ops::LeakyRelu, kMaskedLeakyRelu),
      kernel(kMonetDomain, ops::MaskGrad, kMaskGrad),
      own(ops::Relu,
          []<class Real>(Real x) {
            return std::array{x > 0 ? x : Real{0}, static_cast<Real>(x > 0)};
          }),
  };
  return kEntries;
}

} // namespace monet
