// Operators whose results depend on whole rows: softmax and its gradients. A row is what the nest
// couples or reduces, wherever those axes lie in memory.
#include "execute/kernels/kernel.hpp"
#include "workload/shared/op_types.hpp"

#include <cmath>

namespace monet {

namespace {

/// Returns the largest number. Not inlined: calls of exp() in the same function would force the
/// maximum into memory.
template <class Real>
[[gnu::noinline]] Real largest(std::span<const Real> row) {
  Real best = row.front();
  for (const Real x : row)
    best = best < x ? x : best;
  return best;
}

template <class Real>
Real sum_of_exponentials(std::span<const Real> row, Real shift) {
  Real sum = 0;
  for (const Real x : row)
    sum += std::exp(x - shift);
  return sum;
}

constexpr auto kSoftmax = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([](auto& group) {
    const std::span<const Real> x = group.in(0);
    const auto y = group.out(0).first(x.size());
    const Real shift = largest(x);
    const Real sum = sum_of_exponentials(x, shift);
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = std::exp(x[i] - shift) / sum;
  });
};

constexpr auto kLogSoftmax = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([](auto& group) {
    const std::span<const Real> x = group.in(0);
    const auto y = group.out(0).first(x.size());
    const Real shift = largest(x);
    const Real logarithm = std::log(sum_of_exponentials(x, shift));
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = (x[i] - shift) - logarithm;
  });
};

/// dX = Y * (dY - sum(dY * Y)).
constexpr auto kSoftmaxGrad = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([](auto& group) {
    const std::span<const Real> y = group.in(1);
    const auto dy = group.in(0).first(y.size());
    const auto dx = group.out(0).first(y.size());
    Real sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += dy[i] * y[i];
    for (std::size_t i = 0; i < y.size(); ++i)
      dx[i] = y[i] * (dy[i] - sum);
  });
};

/// dX = dY - exp(Y) * sum(dY).
constexpr auto kLogSoftmaxGrad = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([](auto& group) {
    const std::span<const Real> y = group.in(1);
    const auto dy = group.in(0).first(y.size());
    const auto dx = group.out(0).first(y.size());
    Real sum = 0;
    for (const Real g : dy)
      sum += g;
    for (std::size_t i = 0; i < y.size(); ++i)
      dx[i] = dy[i] - std::exp(y[i]) * sum;
  });
};

} // namespace

KernelTable row_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::Softmax, kSoftmax),
      kernel("", ops::LogSoftmax, kLogSoftmax),
      kernel(kMonetDomain, ops::SoftmaxGrad, kSoftmaxGrad),
      kernel(kMonetDomain, ops::LogSoftmaxGrad, kLogSoftmaxGrad),
  };
  return kEntries;
}

} // namespace monet
