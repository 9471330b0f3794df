// How much each parameter of a space decides of each objective, over the designs evaluated.
#pragma once

#include "monet/explore/design.hpp"
#include "monet/explore/space.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace monet {

/// The feasible designs that have one value of a parameter. Numbers are of the objective as
/// objective_values() gives it; 0 without designs.
struct ValueEffect {
  std::size_t count = 0;
  double median = 0;
  double least = 0;
};

struct ParameterEffect {
  /// First-order effect: the share, 0 to 1, of the variance of the objective's logarithm that the
  /// means of the parameter's values make up (Sobol' 1993). Exact over a complete table; else the
  /// share of the sample less what chance alone would give (epsilon squared, Kelley 1935).
  double share = 0;
  std::vector<ValueEffect> values; ///< in the order of the parameter's values
};

struct ObjectiveSensitivity {
  Objective objective = Objective::latency;
  std::size_t designs = 0; ///< feasible, with the objective above 0
  double deviation = 0;    ///< standard deviation of the natural logarithm; 0: nothing to explain
  /// Of the variance, what no parameter explains alone: they act together. 1 less all shares, at
  /// least 0.
  double together = 0;
  std::vector<ParameterEffect> parameters; ///< in the space's order
};

struct Sensitivity {
  /// Per run of the space the objectives of all its fronts, in Objective's order. Objectives
  /// of the chip alone (area, power) are the same in every run, and given in each.
  std::vector<std::vector<ObjectiveSensitivity>> runs;
};

/// O(results x parameters). Results that are not of the space are InternalError.
Sensitivity sensitivity(const Space& space, std::span<const DesignResult> results);

} // namespace monet
