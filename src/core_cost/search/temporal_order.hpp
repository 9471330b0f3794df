// The temporal loops of an unrolling (LOMA): prime factors of the iterations that are left, merged
// to a few, and where a user wants them.
#pragma once

#include "core_cost/model/spatial_mapping.hpp"

#include <cstdint>
#include <vector>

namespace monet::core_cost_detail {

/// A user's constraint on one place in the order.
struct PlaceRule {
  std::uint32_t dim = 0;
  double size = 0; ///< 0 = any

  bool allows(const Loop& loop) const {
    return loop.dim == dim && (size == 0 || loop.size == size);
  }
};

/// The temporal loops of one unrolling, and where they may stand.
struct TemporalSpace {
  std::vector<Loop> factors;
  std::vector<PlaceRule> inner; ///< from the innermost loop outwards
  std::vector<PlaceRule> outer; ///< from the outermost loop inwards

  bool allows(const Loop& loop, std::size_t place) const;
};

/// Prime factors of the iterations left per dim, merged to at most max(lpf_limit, number of dims
/// with work) factors (0: to kMaxTemporalLoops): the first dim with the most factors has its two
/// smallest merged. No loop when nothing is left.
std::vector<Loop> temporal_factors(const std::vector<std::int64_t>& iterations, int lpf_limit);

/// Temporal loops under a user's order. Loops with a size are kept whole, loops without may be any
/// factor of their dim; entries after a ("*", any) count from the outermost loop. As in ZigZag,
/// entries of dims that the nest lacks are omitted; with `from_inside` also ("*", any), so that all
/// count from the innermost. Throws InfeasibleError if a dim has too few iterations.
TemporalSpace temporal_space(const NestModel& model, const std::vector<std::int64_t>& iterations,
                             int lpf_limit, const std::vector<OrderedLoop>& wanted,
                             bool from_inside);

} // namespace monet::core_cost_detail
