// Numbers of a tensor against what a fixture holds of it: its shape, all elements or some, the
// largest magnitude, the norm and a projection on generated numbers that any misplaced element
// changes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace monet::test {

/// Below this magnitude a tensor counts as zero up to rounding: errors are relative to the
/// tensor's largest magnitude, but at least to this.
inline constexpr double kMinMagnitude = 1e-3;

struct Comparison {
  std::string problem; ///< empty: equal within the tolerance
  double error = 0.0;  ///< largest relative error seen
};

/// `expected` is what summary() in tools/gradient_cases/framework.py writes, or in short
/// [largest magnitude, norm, projection].
Comparison compare(const nlohmann::json& expected, const std::vector<std::int64_t>& shape,
                   const std::vector<double>& numbers, double tolerance,
                   double min_magnitude = kMinMagnitude);

} // namespace monet::test
