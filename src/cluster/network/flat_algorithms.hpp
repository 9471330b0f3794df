// Costs of flat algorithms, which ignore the hierarchy: closed forms over a placement, or over one
// of its levels. Used by collectives.cpp.
#pragma once

#include "cluster/shared/collectives.hpp"

namespace monet {

/// Unrounded nanoseconds, and the bytes that a rank sends over each level of the placement.
struct RawCost {
  double nanoseconds = 0;
  std::int64_t chunks = 1;
  std::array<double, kMaxTiers> bytes{};
};

/// Whether a flat algorithm (ring, tree, halving-doubling, direct) supports the collective on the
/// topology of the placement. False for other algorithms.
bool does_flat(const GroupPlacement& placement, Collective collective,
               CollectiveAlgorithm algorithm);
/// Cost of a flat algorithm. Requires does_flat(), except for point-to-point messages. `chunks`: 0
/// chooses the cheapest number. Throws InternalError if the algorithm is not flat.
RawCost flat_cost(const GroupPlacement& placement, Collective collective,
                  CollectiveAlgorithm algorithm, double bytes, std::int64_t chunks);

/// Maximum number of chunks that the search for the cheapest number tries.
inline constexpr std::int64_t kMaxChunks = 64;

} // namespace monet
