// Activation functions and their gradients. v: X; in gradients dY, then the tensor that the
// gradient reads: X, or Y where it is sufficient. If both are possible, attribute `reads` = "input"
// selects X.
#include "execute/kernels/pointwise.hpp"
#include "workload/shared/op_types.hpp"

#include <numbers>

namespace monet {

namespace {

// Definitions of Selu, exact; the operator's own defaults are these in single precision.
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluGamma = 1.0507009873554804934193349852946;

double number(const Operator& op, std::string_view name, double fallback) {
  return op.attributes.number(name, fallback);
}

bool reads_input(const Operator& op) {
  return op.attributes.text("reads", "output") == "input";
}

bool is_tanh(const Operator& op) {
  return op.attributes.text("approximate", "none") == "tanh";
}

// tanh(k * (x + a*x^3)), k = sqrt(2/pi), approximates erf(x / sqrt 2).
constexpr double kTanhScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kTanhCube = 0.044715;

template <class Real>
Real gelu(Real x, bool approximate) {
  const double value = static_cast<double>(x);
  const double erf = approximate
                         ? std::tanh(kTanhScale * (value + kTanhCube * value * value * value))
                         : std::erf(value / std::numbers::sqrt2);
  return static_cast<Real>(0.5 * value * (1 + erf));
}

double gelu_slope(double x, bool approximate) {
  if (approximate) {
    const double t = std::tanh(kTanhScale * (x + kTanhCube * x * x * x));
    const double inner = kTanhScale * (1 + 3 * kTanhCube * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
  }
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
}

double mish_slope(double x) {
  const double t = std::tanh(softplus(x));
  return t + x * sigmoid(x) * (1 - t * t);
}

/// dY * (X > 0 ? 1 : a*exp(X)), as Y + a with Y = a*(exp(X) - 1): where X is kept, Y is made again,
/// so that both are the same number.
auto elu_slope(const Operator& op, double alpha, double gamma, double width) {
  return [=, from_input = reads_input(op)]<class Real>(Real dy, Real x) -> double {
    if (x > 0)
      return dy * gamma;
    const double y =
        from_input ? static_cast<Real>(gamma * (alpha * std::expm1(static_cast<double>(x) / width)))
                   : x;
    return dy * ((y + gamma * alpha) / width);
  };
}

} // namespace

KernelTable activation_kernels() {
  static constexpr KernelEntry kEntries[]{
      onnx(ops::Relu, [](auto x) { return x > 0 ? x : 0; }),
      onnx(ops::Sigmoid, [](auto x) { return sigmoid(x); }),
      onnx(ops::Softplus, [](auto x) { return softplus(x); }),
      onnx(ops::Softsign, [](auto x) { return x / (1 + std::abs(x)); }),
      onnx(ops::Tanh, [](auto x) { return std::tanh(x); }),
      onnx(ops::Mish, [](auto x) { return x * std::tanh(softplus(x)); }),
      onnx(ops::HardSwish, [](auto x) { return x * std::clamp<double>(x / 6.0 + 0.5, 0.0, 1.0); }),
      onnx(ops::PRelu, [](auto a, auto b) { return a > 0 ? a : b * a; }),
      onnx(ops::Celu, {{"alpha", 1.0}},
           [](double alpha, auto x) { return x > 0 ? x : alpha * std::expm1(x / alpha); }),
      onnx(ops::Elu, {{"alpha", 1.0}},
           [](double alpha, auto x) { return x > 0 ? x : alpha * std::expm1(x); }),
      onnx_with(ops::Gelu,
                [](const Operator& op) {
                  return [approximate = is_tanh(op)](auto x) { return gelu(x, approximate); };
                }),
      onnx(
          ops::HardSigmoid, {{"alpha", 0.2}, {"beta", 0.5}},
          [](double alpha, double beta, auto x) { return std::clamp(alpha * x + beta, 0.0, 1.0); }),
      onnx(ops::LeakyRelu, {{"alpha", 0.01}},
           [](double alpha, auto x) { return x > 0 ? x : alpha * x; }),
      onnx(ops::Selu, {{"alpha", kSeluAlpha}, {"gamma", kSeluGamma}},
           [](double alpha, double gamma, auto x) {
             return gamma * (x > 0 ? x : alpha * std::expm1(x));
           }),
      onnx(ops::Shrink, {{"lambd", 0.5}, {"bias", 0.0}},
           [](double lambda, double bias, auto x) {
             return x < -lambda ? x + bias : x > lambda ? x - bias : 0;
           }),
      onnx(ops::ThresholdedRelu, {{"alpha", 1.0}},
           [](double alpha, auto x) { return x > alpha ? x : 0; }),
      own(ops::Silu, {{"alpha", 1.0}}, [](double alpha, auto x) { return x * sigmoid(alpha * x); }),
      // --- gradients ---
      own(ops::ReluGrad, [](auto dy, auto x) { return x > 0 ? dy : 0; }),
      own(ops::SigmoidGrad, [](auto dy, auto x) { return dy * x * (1 - x); }),
      own(ops::SoftplusGrad, [](auto dy, auto x) { return dy * sigmoid(x); }),
      own(ops::SoftsignGrad,
          [](auto dy, auto x) { return dy * (1 - std::abs(x)) * (1 - std::abs(x)); }),
      own(ops::TanhGrad, [](auto dy, auto x) { return dy * (1 - x * x); }),
      own(ops::MishGrad, [](auto dy, auto x) { return dy * mish_slope(x); }),
      own(ops::HardSwishGrad,
          [](auto dy, auto x) -> double {
            const double slope = x < -3 ? 0 : x <= 3 ? x / 3.0 + 0.5 : 1;
            return dy * slope;
          }),
      own_with(ops::PReluGrad,
               [](const Operator& op) {
                 return [one = op.inputs.size() < 3](auto dy, auto x, auto slope) {
                   const bool on = x > 0;
                   return std::array{on || one ? dy : dy * slope, on ? 0 * dy : dy * x};
                 };
               }),
      own_with(ops::CeluGrad,
               [](const Operator& op) {
                 const double alpha = number(op, "alpha", 1.0);
                 return elu_slope(op, alpha, 1.0, alpha);
               }),
      own_with(
          ops::EluGrad,
          [](const Operator& op) { return elu_slope(op, number(op, "alpha", 1.0), 1.0, 1.0); }),
      own_with(ops::GeluGrad,
               [](const Operator& op) {
                 return [approximate = is_tanh(op)](auto dy, auto x) {
                   return dy * gelu_slope(x, approximate);
                 };
               }),
      own_with(ops::HardSigmoidGrad,
               [](const Operator& op) {
                 return [alpha = number(op, "alpha", 0.2), beta = number(op, "beta", 0.5),
                         from_input = reads_input(op)](auto dy, auto x) -> double {
                   const double y = from_input ? alpha * x + beta : x;
                   return y > 0 && y < 1 ? dy * alpha : 0;
                 };
               }),
      own(ops::LeakyReluGrad, {{"alpha", 0.01}},
          [](double alpha, auto dy, auto x) { return x > 0 ? dy : alpha * dy; }),
      own_with(ops::SeluGrad,
               [](const Operator& op) {
                 return elu_slope(op, number(op, "alpha", kSeluAlpha),
                                  number(op, "gamma", kSeluGamma), 1.0);
               }),
      own(ops::ShrinkGrad, {{"lambd", 0.5}},
          [](double lambda, auto dy, auto x) { return std::abs(x) > lambda ? dy : 0; }),
      own(ops::SiluGrad, {{"alpha", 1.0}},
          [](double alpha, auto dy, double x) {
            const double s = sigmoid(alpha * x);
            return dy * s * (1 + alpha * x * (1 - s));
          }),
      own_with(ops::ThresholdedReluGrad,
               [](const Operator& op) {
                 return [bound = reads_input(op) ? number(op, "alpha", 1.0) : 0.0](
                            auto dy, auto x) -> double { return x > bound ? dy : 0; };
               }),
  };
  return kEntries;
}

} // namespace monet
