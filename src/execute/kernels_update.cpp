// Optimiser updates.
#include "execute/kernel.hpp"

#include <array>

namespace monet {

namespace {

/// w -= lr * (g + decay * w).
struct SgdUpdate {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    const auto rate = static_cast<Real>(context.attributes().number("learning_rate", 0.0));
    const auto decay = static_cast<Real>(context.attributes().number("weight_decay", 0.0));
    context.for_each_iteration([=](std::span<const Real> v, std::span<Real> y) {
      y[0] = v[0] - rate * (v[1] + decay * v[0]);
    });
  }
};

constexpr std::array kKernels{kernel<SgdUpdate>(kMonetDomain, "SgdUpdate")};

} // namespace

std::span<const KernelEntry> update_kernels() {
  return kKernels;
}

} // namespace monet
