// Fusion by the rules of the original study (examples/study/), whose objectives have no costs.
#pragma once

#include "optimise/fusion/space.hpp"

#include "monet/hardware/chip.hpp"

#include <vector>

namespace monet {

struct OriginalPlan {
  FusionPlan plan; ///< with slices chosen by this tool
  bool optimal = false;
  std::vector<KeepRate> kept;
};

/// Partitions the step into connected groups by the rules of the study. A group has at most six
/// operators, and at most one with an outside reader. It has up to three convolutions and three
/// transposed ones, or one product and at most one of either.
/// Sizes of the sliced loop must divide each other, weights must fit every core, and the graph of
/// groups must be acyclic. Minimises the number of groups or the bits between them with an integer
/// program over all groups (limited to the first ones for the largest steps). `cores`: allowed
/// cores per operator.
OriginalPlan original_fusion(const Graph& graph, const Chip& chip,
                             const std::vector<std::vector<CoreId>>& cores,
                             const FusionOrder& order, bool fewest, const SearchControl& control);

} // namespace monet
