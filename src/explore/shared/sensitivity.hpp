// Sensitivity of each objective to each parameter of a space, over the evaluated designs.
#pragma once

#include "monet/explore/space.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace monet {

/// Statistics of the feasible designs with one value of a parameter, in the objective's unit as in
/// objective_values(); 0 without designs.
struct ValueEffect {
  std::size_t count = 0;
  double median = 0;
  double least = 0;
};

/// Effect of one parameter on an objective.
struct ParameterEffect {
  /// First-order effect: the share, 0 to 1, of the variance of the objective's logarithm explained
  /// by the means of the parameter's values (Sobol' 1993). Exact for a complete table; otherwise
  /// corrected for the share expected by chance (epsilon squared, Kelley 1935).
  double share = 0;
  std::vector<ValueEffect> values; ///< effects in the order of the parameter's values
};

/// Effects of all parameters on one objective.
struct ObjectiveSensitivity {
  Objective objective = Objective::latency;
  std::size_t designs = 0; ///< feasible designs with a positive objective
  double deviation = 0;    ///< standard deviation of the natural logarithm; 0: nothing to explain
  /// Share of the variance that parameters explain only in combination: 1 minus the sum of all
  /// shares, at least 0.
  double together = 0;
  std::vector<ParameterEffect> parameters; ///< effects in the order of the space's parameters
};

/// Sensitivity of all objectives of a space.
struct Sensitivity {
  /// Objectives of all fronts by run of the space, in Objective's order. Objectives of the chip
  /// alone (area, power) are equal in every run and repeated in each.
  std::vector<std::vector<ObjectiveSensitivity>> runs;
};

/// Computes the sensitivity in O(results x parameters). Throws InternalError for results that do
/// not belong to the space.
Sensitivity sensitivity(const Space& space, std::span<const DesignResult> results);

} // namespace monet
