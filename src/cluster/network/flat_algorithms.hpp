// Algorithms that know no hierarchy: closed forms over a placement, or over one of its levels.
#pragma once

#include "monet/cluster/collectives.hpp"

namespace monet {

/// Nanoseconds as they come out, and bytes a rank sends over each level of the placement.
struct RawCost {
  double nanoseconds = 0;
  std::int64_t chunks = 1;
  std::array<double, kMaxTiers> bytes{};
};

/// ring, tree, halving-doubling and direct: what they need of the topology and the collective.
bool does_flat(const GroupPlacement& placement, Collective collective,
               CollectiveAlgorithm algorithm);
/// Only what does_flat() allows.
RawCost flat_cost(const GroupPlacement& placement, Collective collective,
                  CollectiveAlgorithm algorithm, double bytes, std::int64_t chunks);

/// The most pieces that are tried.
inline constexpr std::int64_t kMaxChunks = 64;

} // namespace monet
