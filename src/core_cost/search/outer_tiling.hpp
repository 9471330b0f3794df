// Which loops to put outside the on-chip memories where operands stream from the off-chip one.
//
// Merging prime factors to a few leaves hardly a choice of how much of a large product is on the
// chip at a time, which decides its traffic. Here all divisors of each loop are tried as its part
// on the chip, by a closed form of the traffic; orders are searched inside the best ones only.
#pragma once

#include "core_cost/search/temporal_order.hpp"

#include <vector>

namespace monet::core_cost_detail {

/// How a nest is cut between the off-chip memory and the core.
struct OuterTiling {
  std::vector<Loop> outer; ///< loops outside, innermost first
  double cycles = 0;       ///< of the off-chip memory: traffic over its rate
};

/// For each operand that stays on the chip as long as possible, the cut with the least traffic, if
/// the off-chip memory takes less than `below` cycles for it; least first. Even cuts, all operands
/// at the same loops. Traffic is exact where operands have no shared axes; halos count in full.
std::vector<OuterTiling> outer_tilings(const NestModel& model, const Hierarchy& hierarchy,
                                       const SpatialModel& spatial, const OffchipRate& rate,
                                       double below);

/// The orders with these loops outside, what is left of the others merged to `lpf_limit` factors.
TemporalSpace space_inside(const SpatialModel& spatial, const OuterTiling& tiling, int lpf_limit);

} // namespace monet::core_cost_detail
