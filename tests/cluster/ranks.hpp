// A step executed whole and by the ranks of a mesh, from the same numbers.
#pragma once

#include "monet/cluster/lockstep.hpp"
#include "monet/cluster/partition.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training/training.hpp"

#include <string>
#include <vector>

namespace monet::test {

struct Difference {
  std::string tensor;
  double relative = 0; ///< largest deviation of an element over the largest magnitude
};

/// Runs `steps` steps of both; the largest differences of the loss, gradients, updated weights and
/// states, first the largest.
std::vector<Difference> differences(const TrainingGraph& step, const RankStep& ranks, int steps);

/// Collectives of a rank's step by type and axis: "AllReduce data" -> how many.
std::vector<std::pair<std::string, int>> collectives_of(const RankStep& ranks);

} // namespace monet::test
