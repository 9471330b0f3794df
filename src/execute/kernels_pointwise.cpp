// Scalar functions of one iteration: element-wise operators and their gradients, and sums of such.
// v holds the inputs in the operator's order (dY first in gradients), as the loop nest broadcasts
// them; a result with fewer axes than the loops is a sum.
#include "execute/kernel.hpp"

#include <array>
#include <cmath>
#include <numbers>

namespace monet {

namespace {

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

constexpr double kTwoOverRootPi = 2.0 * std::numbers::inv_sqrtpi;

constexpr std::array kKernels{
    pointwise("", "Add", [](auto v) { return v[0] + v[1]; }),
    pointwise("", "Sub", [](auto v) { return v[0] - v[1]; }),
    pointwise("", "Mul", [](auto v) { return v[0] * v[1]; }),
    pointwise("", "Div", [](auto v) { return v[0] / v[1]; }),
    pointwise("", "Neg", [](auto v) { return -v[0]; }),
    pointwise("", "Relu", [](auto v) { return v[0] > 0 ? v[0] : 0; }),
    pointwise("", "Tanh", [](auto v) { return std::tanh(v[0]); }),
    pointwise("", "Sigmoid", [](auto v) { return sigmoid(v[0]); }),
    pointwise("", "Erf", [](auto v) { return std::erf(v[0]); }),
    pointwise("", "Sqrt", [](auto v) { return std::sqrt(v[0]); }),
    pointwise("", "Exp", [](auto v) { return std::exp(v[0]); }),
    pointwise("", "Log", [](auto v) { return std::log(v[0]); }),
    pointwise("", "Reciprocal", [](auto v) { return 1 / v[0]; }),
    pointwise("", "Abs", [](auto v) { return std::abs(v[0]); }),
    pointwise("", "Pow", [](auto v) { return std::pow(v[0], v[1]); }),
    pointwise("", "Where", [](auto v) { return v[0] != 0 ? v[1] : v[2]; }),
    pointwise("", "Softplus", [](auto v) { return softplus(v[0]); }),
    pointwise("", "ReduceSum", [](auto v) { return v[0]; }),
    pointwise(kMonetDomain, "ReluGrad", [](auto v) { return v[1] > 0 ? v[0] : 0; }),
    pointwise(kMonetDomain, "TanhGrad", [](auto v) { return v[0] * (1 - v[1] * v[1]); }),
    pointwise(kMonetDomain, "SigmoidGrad", [](auto v) { return v[0] * v[1] * (1 - v[1]); }),
    pointwise(kMonetDomain, "ErfGrad",
              [](auto v) { return v[0] * kTwoOverRootPi * std::exp(-v[1] * v[1]); }),
    pointwise(kMonetDomain, "SqrtGrad", [](auto v) { return v[0] / (2 * v[1]); }),
    pointwise(kMonetDomain, "ReciprocalGrad", [](auto v) { return -v[0] * v[1] * v[1]; }),
    pointwise(kMonetDomain, "AbsGrad", [](auto v) { return v[0] * sign(v[1]); }),
    pointwise(kMonetDomain, "PowGrad",
              [](auto v) { return v[0] * v[2] * std::pow(v[1], v[2] - 1); }),
    pointwise(kMonetDomain, "SquareGrad", [](auto v) { return v[0] * 2 * v[1]; }),
    pointwise(kMonetDomain, "SoftplusGrad", [](auto v) { return v[0] * sigmoid(v[1]); }),
    pointwise_with("", "LeakyRelu",
                   [](const Attributes& attributes) {
                     const double alpha = attributes.number("alpha", 0.01);
                     return [=](auto v) { return v[0] > 0 ? v[0] : alpha * v[0]; };
                   }),
    pointwise_many(kMonetDomain, "MulGrad",
                   [](auto v, auto y) {
                     put(y, 0, v[0] * (v.size() > 2 ? v[2] : v[1]));
                     put(y, 1, v[0] * v[1]);
                   }),
};

} // namespace

std::span<const KernelEntry> pointwise_kernels() {
  return kKernels;
}

} // namespace monet
