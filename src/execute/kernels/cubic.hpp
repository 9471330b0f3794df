// Cubic convolution (Keys, 1981): the weights of four neighbours.
#pragma once

#include <array>

namespace monet {

/// Weights of the four neighbours of a point that lies `t` behind the second.
inline std::array<double, 4> cubic_weights(double a, double t) {
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

/// Derivatives of the weights with respect to t.
inline std::array<double, 4> cubic_slopes(double a, double t) {
  const auto near = [&](double d) { return (3 * (a + 2) * d - 2 * (a + 3)) * d; };
  const auto far = [&](double d) { return (3 * a * d - 10 * a) * d + 8 * a; };
  return {far(1 + t), near(t), -near(1 - t), -far(2 - t)};
}

} // namespace monet
