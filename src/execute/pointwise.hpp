// Table entries for scalar functions of one iteration.
#pragma once

#include "execute/kernel.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

// The functions are lambdas without captures: types that can be made out of nothing, so that an
// entry of the table is a pair of plain function pointers.

template <class F>
struct One {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    context.for_each_iteration(
        [](std::span<const Real> v, std::span<Real> y) { y[0] = static_cast<Real>(F{}(v)); });
  }
};

template <class F>
struct WithAttributes {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    const auto function = F{}(context.attributes());
    context.for_each_iteration(
        [&](std::span<const Real> v, std::span<Real> y) { y[0] = static_cast<Real>(function(v)); });
  }
};

template <class F>
struct Many {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    context.for_each_iteration([](std::span<const Real> v, std::span<Real> y) { F{}(v, y); });
  }
};

/// One output: f(v).
template <class F>
constexpr KernelEntry pointwise(std::string_view domain, std::string_view op_type, F) {
  return kernel<One<F>>(domain, op_type);
}
/// One output: f(attributes)(v).
template <class F>
constexpr KernelEntry pointwise_with(std::string_view domain, std::string_view op_type, F) {
  return kernel<WithAttributes<F>>(domain, op_type);
}
/// Several outputs, any of which may be left out: f(v, y).
template <class F>
constexpr KernelEntry pointwise_many(std::string_view domain, std::string_view op_type, F) {
  return kernel<Many<F>>(domain, op_type);
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
