// Activations that also write where their gradient passes, one bit an element, and their gradient
// (see training/pack_stored.hpp).
#include "execute/kernels/pointwise.hpp"

namespace monet {

namespace {

constexpr auto kMaskedClip = []<class Real>(KernelContext<Real>& context) {
  const bool low = context.has_input(1);
  const bool high = context.has_input(2);
  const bool strict = context.attributes().integer("strict", 0) != 0;
  context.for_each_iteration([&](std::span<const Real> v, std::span<Real> y) {
    const bool above = !low || (strict ? v[0] > v[1] : v[0] >= v[1]);
    const bool below = !high || (strict ? v[0] < v[2] : v[0] <= v[2]);
    y[0] = v[0];
    if (low)
      y[0] = std::max(y[0], v[1]);
    if (high)
      y[0] = std::min(y[0], v[2]);
    y[1] = static_cast<Real>(above && below);
  });
};

constexpr auto kMaskedHardSigmoid = []<class Real>(KernelContext<Real>& context) {
  const auto alpha = static_cast<Real>(context.attributes().number("alpha", 0.2));
  const auto beta = static_cast<Real>(context.attributes().number("beta", 0.5));
  context.for_each_iteration([&](std::span<const Real> v, std::span<Real> y) {
    const Real line = alpha * v[0] + beta;
    y[0] = std::clamp(line, Real{0}, Real{1});
    y[1] = static_cast<Real>(line > 0 && line < 1);
  });
};

constexpr auto kMaskedLeakyRelu = []<class Real>(KernelContext<Real>& context) {
  const auto alpha = static_cast<Real>(context.attributes().number("alpha", 0.01));
  context.for_each_iteration([&](std::span<const Real> v, std::span<Real> y) {
    y[0] = v[0] > 0 ? v[0] : alpha * v[0];
    y[1] = static_cast<Real>(v[0] > 0);
  });
};

/// dX = inside * dY where the mask is set, outside * dY elsewhere.
constexpr auto kMaskGrad = []<class Real>(KernelContext<Real>& context) {
  const auto inside = static_cast<Real>(context.attributes().number("inside", 1.0));
  const auto outside = static_cast<Real>(context.attributes().number("outside", 0.0));
  context.template for_each_iteration<2, 1>(
      [=](auto v, auto y) { y[0] = (v[1] != 0 ? inside : outside) * v[0]; });
};

} // namespace

std::vector<KernelEntry> masked_kernels() {
  return {
      kernel(kMonetDomain, "Clip", kMaskedClip),
      kernel(kMonetDomain, "HardSigmoid", kMaskedHardSigmoid),
      kernel(kMonetDomain, "LeakyRelu", kMaskedLeakyRelu),
      kernel(kMonetDomain, "MaskGrad", kMaskGrad),
      pointwise_many(kMonetDomain, "Relu",
                     [](auto v, auto y) {
                       y[0] = v[0] > 0 ? v[0] : 0;
                       y[1] = v[0] > 0;
                     }),
  };
}

} // namespace monet
