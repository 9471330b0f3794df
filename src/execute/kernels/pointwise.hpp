// Table entries for scalar functions of one iteration.
#pragma once

#include "execute/kernels/kernel.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

/// The most inputs that a function of one output reads, if it does not count them.
inline constexpr std::size_t kPointwiseInputs = 3;

/// One output: f(v).
template <class F>
constexpr KernelEntry pointwise(std::string_view domain, std::string_view op_type, F) {
  return kernel(domain, op_type, []<class Real>(KernelContext<Real>& context) {
    context.template for_each_iteration<kPointwiseInputs, 1>(
        [](auto v, auto y) { y[0] = static_cast<Real>(F{}(v)); });
  });
}
/// One output: f(v) of any number of inputs.
template <class F>
constexpr KernelEntry pointwise_any(std::string_view domain, std::string_view op_type, F) {
  return kernel(domain, op_type, []<class Real>(KernelContext<Real>& context) {
    context.template for_each_iteration<std::dynamic_extent, 1>(
        [](auto v, auto y) { y[0] = static_cast<Real>(F{}(v)); });
  });
}
/// One output: f(attributes)(v).
template <class F>
constexpr KernelEntry pointwise_with(std::string_view domain, std::string_view op_type, F) {
  return kernel(domain, op_type, []<class Real>(KernelContext<Real>& context) {
    const auto function = F{}(context.attributes());
    context.template for_each_iteration<kPointwiseInputs, 1>(
        [&](auto v, auto y) { y[0] = static_cast<Real>(function(v)); });
  });
}
/// Several outputs, any of which may be left out: f(v, y).
template <class F>
constexpr KernelEntry pointwise_many(std::string_view domain, std::string_view op_type, F) {
  return kernel(domain, op_type, []<class Real>(KernelContext<Real>& context) {
    context.for_each_iteration([](std::span<const Real> v, std::span<Real> y) { F{}(v, y); });
  });
}

template <class Real>
Real sigmoid(Real x) {
  if (x >= 0)
    return 1 / (1 + std::exp(-x));
  const Real e = std::exp(x);
  return e / (1 + e);
}

template <class Real>
Real softplus(Real x) {
  return std::max(x, Real{0}) + std::log1p(std::exp(-std::abs(x)));
}

template <class Real>
Real sign(Real x) {
  return static_cast<Real>((x > 0) - (x < 0));
}

/// Writes y[i] if the operator has that output.
template <class Real>
void put(std::span<Real> y, std::size_t i, Real value) {
  if (i < y.size())
    y[i] = value;
}

} // namespace monet
