// Activation functions and their gradients. v: X; in gradients dY, then what the gradient reads (X,
// or Y where it is sufficient; attribute `reads` says "input" where both are possible).
#include "execute/kernels/pointwise.hpp"

#include <numbers>

namespace monet {

namespace {

// Definitions of Selu, exact; the operator's own defaults are these in single precision.
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluGamma = 1.0507009873554804934193349852946;

bool reads_input(const Attributes& attributes) {
  return attributes.text("reads", "output") == "input";
}

bool is_tanh(const Attributes& attributes) {
  return attributes.text("approximate", "none") == "tanh";
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
auto elu_slope(const Attributes& attributes, double alpha, double gamma, double width) {
  const bool from_input = reads_input(attributes);
  return [=](auto v) -> double {
    const auto seen = static_cast<double>(v[1]);
    if (seen > 0)
      return v[0] * gamma;
    const double y = from_input ? static_cast<double>(static_cast<std::decay_t<decltype(v[1])>>(
                                      gamma * (alpha * std::expm1(seen / width))))
                                : seen;
    return v[0] * ((y + gamma * alpha) / width);
  };
}

} // namespace

std::vector<KernelEntry> activation_kernels() {
  return {
      pointwise("", "Relu", [](auto v) { return v[0] > 0 ? v[0] : 0; }),
      pointwise("", "Sigmoid", [](auto v) { return sigmoid(v[0]); }),
      pointwise("", "Softplus", [](auto v) { return softplus(v[0]); }),
      pointwise("", "Softsign", [](auto v) { return v[0] / (1 + std::abs(v[0])); }),
      pointwise("", "Tanh", [](auto v) { return std::tanh(v[0]); }),
      pointwise("", "Mish", [](auto v) { return v[0] * std::tanh(softplus(v[0])); }),
      pointwise("", "HardSwish",
                [](auto v) { return v[0] * std::clamp<double>(v[0] / 6.0 + 0.5, 0.0, 1.0); }),
      pointwise("", "PRelu", [](auto v) { return v[0] > 0 ? v[0] : v[1] * v[0]; }),
      pointwise_with("", "Celu",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 1.0);
                       return [=](auto v) -> double {
                         return v[0] > 0 ? v[0] : alpha * std::expm1(v[0] / alpha);
                       };
                     }),
      pointwise_with("", "Elu",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 1.0);
                       return [=](auto v) -> double {
                         return v[0] > 0 ? v[0] : alpha * std::expm1(v[0]);
                       };
                     }),
      pointwise_with("", "Gelu",
                     [](const Attributes& attributes) {
                       const bool approximate = is_tanh(attributes);
                       return [=](auto v) { return gelu(v[0], approximate); };
                     }),
      pointwise_with("", "HardSigmoid",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 0.2);
                       const double beta = attributes.number("beta", 0.5);
                       return [=](auto v) { return std::clamp(alpha * v[0] + beta, 0.0, 1.0); };
                     }),
      pointwise_with("", "LeakyRelu",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 0.01);
                       return [=](auto v) -> double { return v[0] > 0 ? v[0] : alpha * v[0]; };
                     }),
      pointwise_with("", "Selu",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", kSeluAlpha);
                       const double gamma = attributes.number("gamma", kSeluGamma);
                       return [=](auto v) -> double {
                         return gamma * (v[0] > 0 ? v[0] : alpha * std::expm1(v[0]));
                       };
                     }),
      pointwise_with("", "Shrink",
                     [](const Attributes& attributes) {
                       const double lambda = attributes.number("lambd", 0.5);
                       const double bias = attributes.number("bias", 0.0);
                       return [=](auto v) -> double {
                         return v[0] < -lambda ? v[0] + bias : v[0] > lambda ? v[0] - bias : 0;
                       };
                     }),
      pointwise_with("", "ThresholdedRelu",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 1.0);
                       return [=](auto v) -> double { return v[0] > alpha ? v[0] : 0; };
                     }),
      pointwise_with(kMonetDomain, "Silu",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 1.0);
                       return [=](auto v) -> double { return v[0] * sigmoid(alpha * v[0]); };
                     }),
      // --- gradients ---
      pointwise(kMonetDomain, "ReluGrad", [](auto v) { return v[1] > 0 ? v[0] : 0; }),
      pointwise(kMonetDomain, "SigmoidGrad", [](auto v) { return v[0] * v[1] * (1 - v[1]); }),
      pointwise(kMonetDomain, "SoftplusGrad", [](auto v) { return v[0] * sigmoid(v[1]); }),
      pointwise(kMonetDomain, "SoftsignGrad",
                [](auto v) { return v[0] * (1 - std::abs(v[1])) * (1 - std::abs(v[1])); }),
      pointwise(kMonetDomain, "TanhGrad", [](auto v) { return v[0] * (1 - v[1] * v[1]); }),
      pointwise(kMonetDomain, "MishGrad", [](auto v) { return v[0] * mish_slope(v[1]); }),
      pointwise(kMonetDomain, "HardSwishGrad",
                [](auto v) -> double {
                  const double slope = v[1] < -3 ? 0 : v[1] <= 3 ? v[1] / 3.0 + 0.5 : 1;
                  return v[0] * slope;
                }),
      pointwise_many(kMonetDomain, "PReluGrad",
                     [](auto v, auto y) { // dY, X, slope
                       const bool on = v[1] > 0;
                       put(y, 0, on || v.size() < 3 ? v[0] : v[0] * v[2]);
                       put(y, 1, on ? 0 * v[0] : v[0] * v[1]);
                     }),
      pointwise_with(kMonetDomain, "CeluGrad",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 1.0);
                       return elu_slope(attributes, alpha, 1.0, alpha);
                     }),
      pointwise_with(kMonetDomain, "EluGrad",
                     [](const Attributes& attributes) {
                       return elu_slope(attributes, attributes.number("alpha", 1.0), 1.0, 1.0);
                     }),
      pointwise_with(kMonetDomain, "GeluGrad",
                     [](const Attributes& attributes) {
                       const bool approximate = is_tanh(attributes);
                       return [=](auto v) { return v[0] * gelu_slope(v[1], approximate); };
                     }),
      pointwise_with(kMonetDomain, "HardSigmoidGrad",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 0.2);
                       const double beta = attributes.number("beta", 0.5);
                       const bool from_input = reads_input(attributes);
                       return [=](auto v) -> double {
                         const double y = from_input ? alpha * v[1] + beta : v[1];
                         return y > 0 && y < 1 ? v[0] * alpha : 0;
                       };
                     }),
      pointwise_with(kMonetDomain, "LeakyReluGrad",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 0.01);
                       return [=](auto v) -> double { return v[1] > 0 ? v[0] : alpha * v[0]; };
                     }),
      pointwise_with(kMonetDomain, "SeluGrad",
                     [](const Attributes& attributes) {
                       return elu_slope(attributes, attributes.number("alpha", kSeluAlpha),
                                        attributes.number("gamma", kSeluGamma), 1.0);
                     }),
      pointwise_with(kMonetDomain, "ShrinkGrad",
                     [](const Attributes& attributes) {
                       const double lambda = attributes.number("lambd", 0.5);
                       return [=](auto v) -> double { return std::abs(v[1]) > lambda ? v[0] : 0; };
                     }),
      pointwise_with(kMonetDomain, "SiluGrad",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 1.0);
                       return [=](auto v) -> double {
                         const double x = static_cast<double>(v[1]);
                         const double s = sigmoid(alpha * x);
                         return v[0] * s * (1 + alpha * x * (1 - s));
                       };
                     }),
      pointwise_with(kMonetDomain, "ThresholdedReluGrad",
                     [](const Attributes& attributes) {
                       const double alpha = attributes.number("alpha", 1.0);
                       const double bound = reads_input(attributes) ? alpha : 0.0;
                       return [=](auto v) -> double { return v[1] > bound ? v[0] : 0; };
                     }),
  };
}

} // namespace monet
