// A step executed whole and by the ranks of a mesh, from the same numbers.
#pragma once

#include "cluster/lockstep.hpp"

#include "monet/cluster/partition.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <span>
#include <string>
#include <vector>

namespace monet::test {

struct Difference {
  std::string tensor;
  double relative = 0; ///< largest deviation of an element over the largest magnitude
};

/// Runs `steps` steps of both; the largest differences of the loss, gradients, updated weights and
/// states, first the largest; infinite where ranks with the same part of what they keep do not
/// agree in every bit. With `integers`, all numbers are small integers.
std::vector<Difference> differences(const TrainingGraph& step, const RankStep& ranks, int steps,
                                    bool integers = false, std::span<const StageStep> stages = {});

/// One step of as many micro-batches as there are ranks, each with one rank's samples: the largest
/// differences of gradients and updated weights.
std::vector<Difference> differences_of_micro_batches(const TrainingGraph& micro,
                                                     const TrainingGraph& whole,
                                                     const RankStep& ranks);

} // namespace monet::test
