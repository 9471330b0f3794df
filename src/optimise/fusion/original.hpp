// The original study's fusion: no cost in the objective.
#pragma once

#include "optimise/fusion/space.hpp"

#include "monet/hardware/chip.hpp"

#include <vector>

namespace monet {

struct OriginalPlan {
  FusionPlan plan; ///< slices are the tool's choice
  bool optimal = false;
  std::vector<KeepRate> kept;
};

/// Parts the step into connected groups of at most six operators with one that is read outside, as
/// many products and convolutions as one mapping holds, sizes of the sliced loop that divide each
/// other, and weights that fit every core; the graph of the groups has no circle. Minimises the
/// number of groups, or the bits between groups, by an integer program over all groups (the largest
/// steps: over the first so many). `cores`: per operator, those that may run it.
OriginalPlan original_fusion(const Graph& graph, const Chip& chip,
                             const std::vector<std::vector<CoreId>>& cores,
                             const FusionOrder& order, bool fewest, const SearchControl& control);

} // namespace monet
