// Scalar functions of one iteration: element-wise operators and their gradients, and sums of such.
// v holds the inputs in the operator's order (dY first in gradients), as the loop nest broadcasts
// them; a result with fewer axes than the loops is a sum. Activations are in
// kernels_pointwise_activation.cpp.
#include "execute/kernels/pointwise.hpp"

#include "monet/base/checked.hpp"

#include <numbers>

namespace monet {

namespace {

constexpr double kTwoOverRootPi = 2.0 * std::numbers::inv_sqrtpi;

/// Largest (or smallest) of v[first], v[first + 1], ...
template <bool kLargest, class Real>
Real extremum(std::span<const Real> v, std::size_t first) {
  Real best = v[first];
  for (const Real x : v.subspan(first))
    best = kLargest ? std::max(best, x) : std::min(best, x);
  return best;
}

/// v: dY, then the operands. Those that equal the result share dY evenly.
template <bool kLargest, class Real>
void share(std::span<const Real> v, std::span<Real> y) {
  const Real best = extremum<kLargest>(v, 1);
  const auto equal = std::count(v.begin() + 1, v.end(), best);
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = v[i + 1] == best ? v[0] / static_cast<Real>(equal) : Real{0};
}

template <class Real>
Real sum(std::span<const Real> v) {
  Real total = 0;
  for (const Real x : v)
    total += x;
  return total;
}

template <class Real>
std::int64_t whole(Real value) {
  return saturated_integer(value);
}

/// Of unsigned numbers the bits that their type has.
constexpr auto kBitwiseNot = []<class Real>(KernelContext<Real>& context) {
  const ElementType type = context.graph().tensor(*context.op().inputs[0]).type;
  const std::int64_t mask = type == ElementType::uint8    ? 0xFF
                            : type == ElementType::uint16 ? 0xFFFF
                            : type == ElementType::uint32 ? std::int64_t{0xFFFF'FFFF}
                                                          : -1;
  context.for_each_iteration([&](std::span<const Real> v, std::span<Real> y) {
    y[0] = static_cast<Real>(~whole(v[0]) & mask);
  });
};

/// Clip, whose bounds may be left out.
constexpr auto kClip = []<class Real>(KernelContext<Real>& context) {
  const bool low = context.has_input(1);
  const bool high = context.has_input(2);
  context.for_each_iteration([&](std::span<const Real> v, std::span<Real> y) {
    y[0] = low ? std::max(v[0], v[1]) : v[0];
    if (high)
      y[0] = std::min(y[0], v[2]);
  });
};

/// (dY, X or Y, min, max) -> (dX, dMin, dMax): inside the bounds, or strictly inside; outside of
/// one.
constexpr auto kClipGrad = []<class Real>(KernelContext<Real>& context) {
  const bool low = context.has_input(2);
  const bool high = context.has_input(3);
  const bool strict = context.attributes().integer("strict", 0) != 0;
  context.for_each_iteration([&](std::span<const Real> v, std::span<Real> y) {
    const bool below = low && (strict ? v[1] <= v[2] : v[1] < v[2]);
    const bool above = high && (strict ? v[1] >= v[3] : v[1] > v[3]);
    const bool crossed = low && high && v[3] < v[2];
    put(y, 0, below || above ? Real{0} : v[0]);
    put(y, 1, below && !crossed ? v[0] : Real{0});
    put(y, 2, above || crossed ? v[0] : Real{0});
  });
};

/// dY, A, B; the gradient of the divisor.
constexpr auto kModGrad = []<class Real>(KernelContext<Real>& context) {
  const bool truncates = context.attributes().integer("fmod", 0) != 0;
  context.for_each_iteration([&](std::span<const Real> v, std::span<Real> y) {
    const Real quotient = v[1] / v[2];
    put(y, 1, -v[0] * (truncates ? std::trunc(quotient) : std::floor(quotient)));
  });
};

} // namespace

std::vector<KernelEntry> pointwise_kernels() {
  return {
      // --- functions ---
      pointwise("", "Abs", [](auto v) { return std::abs(v[0]); }),
      pointwise("", "Acos", [](auto v) { return std::acos(v[0]); }),
      pointwise("", "Acosh", [](auto v) { return std::acosh(v[0]); }),
      pointwise("", "Add", [](auto v) { return v[0] + v[1]; }),
      pointwise("", "And", [](auto v) { return v[0] != 0 && v[1] != 0; }),
      pointwise("", "Asin", [](auto v) { return std::asin(v[0]); }),
      pointwise("", "Asinh", [](auto v) { return std::asinh(v[0]); }),
      pointwise("", "Atan", [](auto v) { return std::atan(v[0]); }),
      pointwise("", "Atanh", [](auto v) { return std::atanh(v[0]); }),
      pointwise("", "BitwiseAnd", [](auto v) { return whole(v[0]) & whole(v[1]); }),
      kernel("", "BitwiseNot", kBitwiseNot),
      pointwise("", "BitwiseOr", [](auto v) { return whole(v[0]) | whole(v[1]); }),
      pointwise("", "BitwiseXor", [](auto v) { return whole(v[0]) ^ whole(v[1]); }),
      pointwise("", "Ceil", [](auto v) { return std::ceil(v[0]); }),
      kernel("", "Clip", kClip),
      pointwise("", "Cos", [](auto v) { return std::cos(v[0]); }),
      pointwise("", "Cosh", [](auto v) { return std::cosh(v[0]); }),
      pointwise("", "Div", [](auto v) { return v[0] / v[1]; }),
      pointwise("", "Equal", [](auto v) { return v[0] == v[1]; }),
      pointwise("", "Erf", [](auto v) { return std::erf(v[0]); }),
      pointwise("", "Exp", [](auto v) { return std::exp(v[0]); }),
      pointwise("", "Floor", [](auto v) { return std::floor(v[0]); }),
      pointwise("", "Greater", [](auto v) { return v[0] > v[1]; }),
      pointwise("", "GreaterOrEqual", [](auto v) { return v[0] >= v[1]; }),
      pointwise_with("", "IsInf",
                     [](const Attributes& attributes) {
                       const bool negative = attributes.integer("detect_negative", 1) != 0;
                       const bool positive = attributes.integer("detect_positive", 1) != 0;
                       return [=](auto v) {
                         return std::isinf(v[0]) && (v[0] > 0 ? positive : negative);
                       };
                     }),
      pointwise("", "IsNaN", [](auto v) { return std::isnan(v[0]); }),
      pointwise("", "Less", [](auto v) { return v[0] < v[1]; }),
      pointwise("", "LessOrEqual", [](auto v) { return v[0] <= v[1]; }),
      pointwise("", "Log", [](auto v) { return std::log(v[0]); }),
      pointwise_any("", "Max", [](auto v) { return extremum<true>(v, 0); }),
      pointwise_any("", "Mean",
                    [](auto v) {
                      return sum(v) / static_cast<std::remove_cvref_t<decltype(v[0])>>(v.size());
                    }),
      pointwise_any("", "Min", [](auto v) { return extremum<false>(v, 0); }),
      pointwise_with("", "Mod",
                     [](const Attributes& attributes) {
                       const bool truncates = attributes.integer("fmod", 0) != 0;
                       return
                           [=](auto v) { // the remainder has the sign of the dividend, or divisor
                             return truncates ? std::fmod(v[0], v[1])
                                              : v[0] - v[1] * std::floor(v[0] / v[1]);
                           };
                     }),
      pointwise("", "Mul", [](auto v) { return v[0] * v[1]; }),
      pointwise("", "Neg", [](auto v) { return -v[0]; }),
      pointwise("", "Not", [](auto v) { return v[0] == 0; }),
      pointwise("", "Or", [](auto v) { return v[0] != 0 || v[1] != 0; }),
      pointwise("", "Pow", [](auto v) { return std::pow(v[0], v[1]); }),
      pointwise("", "Reciprocal", [](auto v) { return 1 / v[0]; }),
      pointwise("", "Round", [](auto v) { return std::nearbyint(v[0]); }),
      pointwise("", "Sign", [](auto v) { return sign(v[0]); }),
      pointwise("", "Sin", [](auto v) { return std::sin(v[0]); }),
      pointwise("", "Sinh", [](auto v) { return std::sinh(v[0]); }),
      pointwise("", "Sqrt", [](auto v) { return std::sqrt(v[0]); }),
      pointwise("", "Sub", [](auto v) { return v[0] - v[1]; }),
      pointwise_any("", "Sum", [](auto v) { return sum(v); }),
      pointwise("", "Tan", [](auto v) { return std::tan(v[0]); }),
      pointwise("", "Where", [](auto v) { return v[0] != 0 ? v[1] : v[2]; }),
      pointwise("", "Xor", [](auto v) { return (v[0] != 0) != (v[1] != 0); }),
      // --- gradients of one operand ---
      pointwise(kMonetDomain, "AbsGrad", [](auto v) { return v[0] * sign(v[1]); }),
      pointwise(kMonetDomain, "AcosGrad",
                [](auto v) { return -v[0] / std::sqrt(1 - v[1] * v[1]); }),
      pointwise(kMonetDomain, "AcoshGrad",
                [](auto v) { return v[0] / std::sqrt(v[1] * v[1] - 1); }),
      pointwise(kMonetDomain, "AsinGrad", [](auto v) { return v[0] / std::sqrt(1 - v[1] * v[1]); }),
      pointwise(kMonetDomain, "AsinhGrad",
                [](auto v) { return v[0] / std::sqrt(v[1] * v[1] + 1); }),
      pointwise(kMonetDomain, "AtanGrad", [](auto v) { return v[0] / (1 + v[1] * v[1]); }),
      pointwise(kMonetDomain, "AtanhGrad", [](auto v) { return v[0] / (1 - v[1] * v[1]); }),
      kernel(kMonetDomain, "ClipGrad", kClipGrad),
      pointwise(kMonetDomain, "CosGrad", [](auto v) { return -v[0] * std::sin(v[1]); }),
      pointwise(kMonetDomain, "CoshGrad", [](auto v) { return v[0] * std::sinh(v[1]); }),
      pointwise(kMonetDomain, "ErfGrad",
                [](auto v) { return v[0] * kTwoOverRootPi * std::exp(-v[1] * v[1]); }),
      pointwise(kMonetDomain, "ReciprocalGrad", [](auto v) { return -v[0] * v[1] * v[1]; }),
      pointwise(kMonetDomain, "SinGrad", [](auto v) { return v[0] * std::cos(v[1]); }),
      pointwise(kMonetDomain, "SinhGrad", [](auto v) { return v[0] * std::cosh(v[1]); }),
      pointwise(kMonetDomain, "SqrtGrad", [](auto v) { return v[0] / (2 * v[1]); }),
      pointwise(kMonetDomain, "SquareGrad", [](auto v) { return v[0] * 2 * v[1]; }),
      pointwise(kMonetDomain, "TanGrad", [](auto v) { return v[0] * (1 + v[1] * v[1]); }),
      // --- gradients of several operands ---
      pointwise_many(kMonetDomain, "DivGrad",
                     [](auto v, auto y) {
                       put(y, 0, v[0] / v[2]);
                       put(y, 1, -v[0] * v[1] / (v[2] * v[2]));
                     }),
      pointwise_many(kMonetDomain, "MaxGrad", [](auto v, auto y) { share<true>(v, y); }),
      pointwise_many(kMonetDomain, "MinGrad", [](auto v, auto y) { share<false>(v, y); }),
      kernel(kMonetDomain, "ModGrad", kModGrad),
      pointwise_many(kMonetDomain, "MulGrad",
                     [](auto v, auto y) {
                       put(y, 0, v[0] * (v.size() > 2 ? v[2] : v[1]));
                       put(y, 1, v[0] * v[1]);
                     }),
      pointwise_many(kMonetDomain, "PowGrad",
                     [](auto v, auto y) { // dY, base, exponent, Y
                       put(y, 0, v[2] == 0 ? 0 * v[0] : v[0] * v[2] * std::pow(v[1], v[2] - 1));
                       const bool flat = v[1] == 0 && v[2] >= 0;
                       put(y, 1, flat || v.size() < 4 ? 0 * v[0] : v[0] * v[3] * std::log(v[1]));
                     }),
      pointwise_many(kMonetDomain, "WhereGrad",
                     [](auto v, auto y) {
                       put(y, 0, v[1] != 0 ? v[0] : 0);
                       put(y, 1, v[1] != 0 ? 0 : v[0]);
                     }),
  };
}

} // namespace monet
