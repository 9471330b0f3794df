// The choice of each technique.
#pragma once

#include "core_cost/joint_mapping/search.hpp"

#include <optional>
#include <vector>

namespace monet::joint_mapping {

/// One program after another: one where both products run together or only dW runs, else dX and dW,
/// in the order in which they run.
struct Chosen {
  std::vector<Choice> programs;
  Wide time() const;
};

/// InfeasibleError where nothing fits.
Chosen choose(const PairProblem& problem, Technique technique, const BackwardOptions& options);

/// dx_major, dw_major or interleave.
Technique by_rule(const PairProblem& problem, MajorRule rule);

} // namespace monet::joint_mapping
