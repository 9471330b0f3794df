// Scalar functions of one iteration: element-wise operators and their gradients, and sums of such.
// v holds the inputs in the operator's order (dY first in gradients), as the loop nest broadcasts
// them; a result with fewer axes than the loops is a sum. Activations are in
// pointwise_activation.cpp.
#include "execute/kernels/pointwise.hpp"

#include "base/shared/checked.hpp"
#include "workload/shared/op_types.hpp"

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

/// v: dY, then the operands. Those that equal the result share dY evenly.
template <bool kLargest>
constexpr auto kShareExtremum = []<class Real>(KernelContext<Real>& context) {
  context.for_each_iteration([](std::span<const Real> v, std::span<Real> y) {
    const Real best = extremum<kLargest>(v, 1);
    const auto equal = static_cast<Real>(std::count(v.begin() + 1, v.end(), best));
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = v[i + 1] == best ? v[0] / equal : Real{0};
  });
};

/// The bits that an unsigned type has.
constexpr auto kBitwiseNot = []<class Real>(KernelContext<Real>& context) {
  const ElementType type = context.graph().tensor(*context.op().inputs[0]).type;
  const std::int64_t mask = type == ElementType::uint8    ? 0xFF
                            : type == ElementType::uint16 ? 0xFFFF
                            : type == ElementType::uint32 ? std::int64_t{0xFFFF'FFFF}
                                                          : -1;
  context.map([=](Real x) { return ~whole(x) & mask; });
};

bool is_fmod(const Operator& op) {
  return op.attributes.integer("fmod", 0) != 0;
}

/// (X, min, max), of which the bounds may be left out.
constexpr auto kClip = [](const Operator& op) {
  return [low = has_input(op, 1), high = has_input(op, 2)](auto x, auto least, auto most) {
    const auto above = low ? std::max(x, least) : x;
    return high ? std::min(above, most) : above;
  };
};

/// (dY, X or Y, min, max) -> (dX, dMin, dMax): inside the bounds, or strictly inside; outside of
/// one.
constexpr auto kClipGrad = [](const Operator& op) {
  const bool low = has_input(op, 2);
  const bool high = has_input(op, 3);
  const bool strict = op.attributes.integer("strict", 0) != 0;
  return [=](auto dy, auto x, auto least, auto most) {
    const bool below = low && (strict ? x <= least : x < least);
    const bool above = high && (strict ? x >= most : x > most);
    const bool crossed = low && high && most < least;
    const decltype(dy) zero = 0;
    return std::array{below || above ? zero : dy, below && !crossed ? dy : zero,
                      above || crossed ? dy : zero};
  };
};

} // namespace

KernelTable pointwise_kernels() {
  static constexpr KernelEntry kEntries[]{
      // --- functions ---
      onnx(ops::Abs, [](auto x) { return std::abs(x); }),
      onnx(ops::Acos, [](auto x) { return std::acos(x); }),
      onnx(ops::Acosh, [](auto x) { return std::acosh(x); }),
      onnx(ops::Add, [](auto a, auto b) { return a + b; }),
      onnx(ops::And, [](auto a, auto b) { return a != 0 && b != 0; }),
      onnx(ops::Asin, [](auto x) { return std::asin(x); }),
      onnx(ops::Asinh, [](auto x) { return std::asinh(x); }),
      onnx(ops::Atan, [](auto x) { return std::atan(x); }),
      onnx(ops::Atanh, [](auto x) { return std::atanh(x); }),
      onnx(ops::BitwiseAnd, [](auto a, auto b) { return whole(a) & whole(b); }),
      kernel("", ops::BitwiseNot, kBitwiseNot),
      onnx(ops::BitwiseOr, [](auto a, auto b) { return whole(a) | whole(b); }),
      onnx(ops::BitwiseXor, [](auto a, auto b) { return whole(a) ^ whole(b); }),
      onnx(ops::Ceil, [](auto x) { return std::ceil(x); }),
      onnx_with(ops::Clip, kClip),
      onnx(ops::Cos, [](auto x) { return std::cos(x); }),
      onnx(ops::Cosh, [](auto x) { return std::cosh(x); }),
      onnx(ops::Div, [](auto a, auto b) { return a / b; }),
      onnx(ops::Equal, [](auto a, auto b) { return a == b; }),
      onnx(ops::Erf, [](auto x) { return std::erf(x); }),
      onnx(ops::Exp, [](auto x) { return std::exp(x); }),
      onnx(ops::Floor, [](auto x) { return std::floor(x); }),
      onnx(ops::Greater, [](auto a, auto b) { return a > b; }),
      onnx(ops::GreaterOrEqual, [](auto a, auto b) { return a >= b; }),
      onnx_with(ops::IsInf,
                [](const Operator& op) {
                  return [negative = op.attributes.integer("detect_negative", 1) != 0,
                          positive = op.attributes.integer("detect_positive", 1) != 0](auto x) {
                    return std::isinf(x) && (x > 0 ? positive : negative);
                  };
                }),
      onnx(ops::IsNaN, [](auto x) { return std::isnan(x); }),
      onnx(ops::Less, [](auto a, auto b) { return a < b; }),
      onnx(ops::LessOrEqual, [](auto a, auto b) { return a <= b; }),
      onnx(ops::Log, [](auto x) { return std::log(x); }),
      onnx_of_any(ops::Max, [](auto v) { return extremum<true>(v, 0); }),
      onnx_of_any(ops::Mean,
                  [](auto v) {
                    return sum(v) / static_cast<std::remove_cvref_t<decltype(v[0])>>(v.size());
                  }),
      onnx_of_any(ops::Min, [](auto v) { return extremum<false>(v, 0); }),
      onnx_with(ops::Mod,
                [](const Operator& op) { // the sign is the dividend's with fmod, or the divisor's
                  return [fmod = is_fmod(op)](auto a, auto b) {
                    return fmod ? std::fmod(a, b) : a - b * std::floor(a / b);
                  };
                }),
      onnx(ops::Mul, [](auto a, auto b) { return a * b; }),
      onnx(ops::Neg, [](auto x) { return -x; }),
      onnx(ops::Not, [](auto x) { return x == 0; }),
      onnx(ops::Or, [](auto a, auto b) { return a != 0 || b != 0; }),
      onnx(ops::Pow, [](auto a, auto b) { return std::pow(a, b); }),
      onnx(ops::Reciprocal, [](auto x) { return 1 / x; }),
      onnx(ops::Round, [](auto x) { return std::nearbyint(x); }),
      onnx(ops::Sign, [](auto x) { return sign(x); }),
      onnx(ops::Sin, [](auto x) { return std::sin(x); }),
      onnx(ops::Sinh, [](auto x) { return std::sinh(x); }),
      onnx(ops::Sqrt, [](auto x) { return std::sqrt(x); }),
      onnx(ops::Sub, [](auto a, auto b) { return a - b; }),
      onnx_of_any(ops::Sum, [](auto v) { return sum(v); }),
      onnx(ops::Tan, [](auto x) { return std::tan(x); }),
      onnx(ops::Where, [](auto a, auto b, auto c) { return a != 0 ? b : c; }),
      onnx(ops::Xor, [](auto a, auto b) { return (a != 0) != (b != 0); }),
      // --- gradients of one operand ---
      own(ops::AbsGrad, [](auto dy, auto x) { return dy * sign(x); }),
      own(ops::AcosGrad, [](auto dy, auto x) { return -dy / std::sqrt(1 - x * x); }),
      own(ops::AcoshGrad, [](auto dy, auto x) { return dy / std::sqrt(x * x - 1); }),
      own(ops::AsinGrad, [](auto dy, auto x) { return dy / std::sqrt(1 - x * x); }),
      own(ops::AsinhGrad, [](auto dy, auto x) { return dy / std::sqrt(x * x + 1); }),
      own(ops::AtanGrad, [](auto dy, auto x) { return dy / (1 + x * x); }),
      own(ops::AtanhGrad, [](auto dy, auto x) { return dy / (1 - x * x); }),
      own_with(ops::ClipGrad, kClipGrad),
      own(ops::CosGrad, [](auto dy, auto x) { return -dy * std::sin(x); }),
      own(ops::CoshGrad, [](auto dy, auto x) { return dy * std::sinh(x); }),
      own(ops::ErfGrad, [](auto dy, auto x) { return dy * kTwoOverRootPi * std::exp(-x * x); }),
      own(ops::ReciprocalGrad, [](auto dy, auto x) { return -dy * x * x; }),
      own(ops::SinGrad, [](auto dy, auto x) { return dy * std::cos(x); }),
      own(ops::SinhGrad, [](auto dy, auto x) { return dy * std::cosh(x); }),
      own(ops::SqrtGrad, [](auto dy, auto x) { return dy / (2 * x); }),
      own(ops::SquareGrad, [](auto dy, auto x) { return dy * 2 * x; }),
      own(ops::TanGrad, [](auto dy, auto x) { return dy * (1 + x * x); }),
      // --- gradients of several operands ---
      own(ops::DivGrad,
          [](auto dy, auto a, auto b) {
            return std::array{dy / b, -dy * a / (b * b)};
          }),
      kernel(kMonetDomain, ops::MaxGrad, kShareExtremum<true>),
      kernel(kMonetDomain, ops::MinGrad, kShareExtremum<false>),
      own_with(ops::ModGrad,
               [](const Operator& op) { // of the divisor only
                 return [fmod = is_fmod(op)](auto dy, auto a, auto b) {
                   const auto quotient = a / b;
                   return std::array{decltype(dy){0},
                                     -dy * (fmod ? std::trunc(quotient) : std::floor(quotient))};
                 };
               }),
      own_with(ops::MulGrad,
               [](const Operator& op) {
                 return [square = op.inputs.size() < 3](auto dy, auto a, auto b) {
                   return std::array{dy * (square ? a : b), dy * a};
                 };
               }),
      own_with(ops::PowGrad,
               [](const Operator& op) {
                 return [one = op.inputs.size() < 4](auto dy, auto a, auto b, auto y) {
                   const bool flat = one || (a == 0 && b >= 0);
                   return std::array{b == 0 ? 0 * dy : dy * b * std::pow(a, b - 1),
                                     flat ? 0 * dy : dy * y * std::log(a)};
                 };
               }),
      own(ops::WhereGrad,
          [](auto dy, auto condition) {
            const decltype(dy) zero = 0;
            return std::array{condition != 0 ? dy : zero, condition != 0 ? zero : dy};
          }),
  };
  return kEntries;
}

} // namespace monet
