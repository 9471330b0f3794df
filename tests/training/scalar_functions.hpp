// What element-wise operators and their gradients compute, per element; written from the
// definitions, not from the rules.
#pragma once

#include "monet/workload/graph.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string_view>

namespace monet {

inline constexpr double kTwoOverRootPi = 1.1283791670955126;

inline double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

using Scalar = double (*)(std::span<const double> v, const Attributes& a);

// v: inputs in order (dY first in gradients).
inline const std::map<std::string_view, Scalar> kScalars{
    {"Add", [](auto v, auto&) { return v[0] + v[1]; }},
    {"Sub", [](auto v, auto&) { return v[0] - v[1]; }},
    {"Mul", [](auto v, auto&) { return v[0] * v[1]; }},
    {"Div", [](auto v, auto&) { return v[0] / v[1]; }},
    {"Neg", [](auto v, auto&) { return -v[0]; }},
    {"Relu", [](auto v, auto&) { return std::max(v[0], 0.0); }},
    {"Tanh", [](auto v, auto&) { return std::tanh(v[0]); }},
    {"Sigmoid", [](auto v, auto&) { return sigmoid(v[0]); }},
    {"Erf", [](auto v, auto&) { return std::erf(v[0]); }},
    {"Sqrt", [](auto v, auto&) { return std::sqrt(v[0]); }},
    {"Exp", [](auto v, auto&) { return std::exp(v[0]); }},
    {"Log", [](auto v, auto&) { return std::log(v[0]); }},
    {"Reciprocal", [](auto v, auto&) { return 1.0 / v[0]; }},
    {"Abs", [](auto v, auto&) { return std::abs(v[0]); }},
    {"Pow", [](auto v, auto&) { return std::pow(v[0], v[1]); }},
    {"Clip", [](auto v, auto&) { return std::clamp(v[0], v[1], v[2]); }},
    {"Where", [](auto v, auto&) { return v[0] != 0 ? v[1] : v[2]; }},
    {"Softplus", [](auto v, auto&) { return std::log1p(std::exp(v[0])); }},
    {"LeakyRelu", [](auto v, auto& a) { return v[0] > 0 ? v[0] : a.number("alpha", 0.01) * v[0]; }},
    {"Elu",
     [](auto v, auto& a) { return v[0] > 0 ? v[0] : a.number("alpha", 1.0) * std::expm1(v[0]); }},
    {"HardSigmoid",
     [](auto v, auto& a) {
       return std::clamp(a.number("alpha", 0.2) * v[0] + a.number("beta", 0.5), 0.0, 1.0);
     }},
    {"HardSwish", [](auto v, auto&) { return v[0] * std::clamp(v[0] / 6 + 0.5, 0.0, 1.0); }},
    {"ReluGrad", [](auto v, auto&) { return v[1] > 0 ? v[0] : 0.0; }},
    {"TanhGrad", [](auto v, auto&) { return v[0] * (1 - v[1] * v[1]); }},
    {"SigmoidGrad", [](auto v, auto&) { return v[0] * v[1] * (1 - v[1]); }},
    {"ErfGrad", [](auto v, auto&) { return v[0] * kTwoOverRootPi * std::exp(-v[1] * v[1]); }},
    {"SqrtGrad", [](auto v, auto&) { return v[0] * 0.5 / v[1]; }},
    {"ReciprocalGrad", [](auto v, auto&) { return -v[0] * v[1] * v[1]; }},
    {"AbsGrad", [](auto v, auto&) { return v[1] < 0 ? -v[0] : v[0]; }},
    {"PowGrad", [](auto v, auto&) { return v[0] * v[2] * std::pow(v[1], v[2] - 1); }},
    {"SquareGrad", [](auto v, auto&) { return v[0] * 2 * v[1]; }},
    {"ClipGrad", [](auto v, auto&) { return v[1] > v[2] && v[1] < v[3] ? v[0] : 0.0; }},
    {"SoftplusGrad", [](auto v, auto&) { return v[0] * sigmoid(v[1]); }},
    {"LeakyReluGrad",
     [](auto v, auto& a) { return v[1] > 0 ? v[0] : a.number("alpha", 0.01) * v[0]; }},
    {"EluGrad",
     [](auto v, auto& a) { return v[1] > 0 ? v[0] : v[0] * (v[1] + a.number("alpha", 1.0)); }},
    {"HardSigmoidGrad",
     [](auto v, auto& a) { return v[1] > 0 && v[1] < 1 ? v[0] * a.number("alpha", 0.2) : 0.0; }},
    {"HardSwishGrad",
     [](auto v, auto&) { return v[1] <= -3  ? 0.0
                                : v[1] >= 3 ? v[0]
                                            : v[0] * (v[1] / 3 + 0.5); }},
    {"ReduceSum", [](auto v, auto&) { return v[0]; }},
};

} // namespace monet
