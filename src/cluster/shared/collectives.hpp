// Cost of collectives on a cluster: the placement of a group's ranks on its tiers, and closed forms
// for each algorithm. docs/explanation/collectives.md has the formulas with their sources. These
// functions do not allocate, so that a planner may call them millions of times.
#pragma once

#include "monet/cluster/cluster.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace monet {

/// One axis of a mesh of devices: `count` ranks whose device numbers differ by `stride`. A group is
/// the product of its axes. With 8 tensor ranks innermost and 4 data ranks next, the tensor group
/// is {{1, 8}}, the data group {{8, 4}}, and both together {{1, 8}, {8, 4}}.
struct GroupAxis {
  std::int64_t stride = 1;
  std::int64_t count = 1;
};
inline constexpr std::size_t kMaxGroupAxes = 8;

/// Placement of a group's ranks on the tiers of a cluster, innermost first; only tiers that join
/// some of its ranks are listed. All sibling groups of the mesh are assumed to run at once, so on
/// each tier a group has the bandwidth of its devices only.
struct GroupPlacement {
  struct Level {
    std::size_t tier = 0;
    std::int64_t fan = 1;      ///< parts of the group that meet on this tier
    std::int64_t below = 1;    ///< ranks in the fullest part: the product of the inner fans
    double bandwidth = 0;      ///< GB/s per rank, over all usable links of the tier
    double link_bandwidth = 0; ///< GB/s per rank to one other rank
    double latency = 0;        ///< ns
    TierTopology topology = TierTopology::switched;
    const CollectiveTable* table = nullptr; ///< table of the placement's cluster, or null
  };
  std::int64_t ranks = 1;
  std::size_t count = 0; ///< levels in use
  std::array<Level, kMaxTiers> levels{};
  std::uint32_t algorithms = 0; ///< bit mask, as in the cluster
  std::int64_t slots = 1;       ///< product of the fans

  /// Whether all parts of a level have equally many ranks.
  bool is_even() const { return slots == ranks; }
};

/// Places the group that begins at device 0. If the stride of an axis does not nest in the tiers'
/// units, the fullest unit determines the fans. Throws InternalError for more axes than
/// kMaxGroupAxes and for devices beyond the cluster. The cluster must outlive the placement.
GroupPlacement place(const Cluster& cluster, std::span<const GroupAxis> axes);
/// Places a group given as ascending device numbers. Throws InternalError if they do not ascend or
/// lie beyond the cluster, which must outlive the placement.
GroupPlacement place(const Cluster& cluster, std::span<const std::int64_t> devices);

struct CollectiveOptions {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::best;
  /// Number of pieces that a hierarchical collective is cut into, so that the tiers work at once,
  /// or a broadcast over a ring. 0 = the best of 1, 2, 4, ... up to 64.
  std::int64_t chunks = 0;
};

/// Cost of one collective, with the selected algorithm.
struct CollectiveCost {
  Nanoseconds time = 0;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring; ///< the selected one
  std::int64_t chunks = 1;
  /// Bytes that a rank sends over each level of the placement, averaged over the ranks; for a
  /// point-to-point message, the bytes that its sender sends.
  std::array<double, kMaxTiers> bytes{};
};

/// Whether the algorithm supports the collective on this placement; always true for `best`.
bool does(const GroupPlacement& placement, Collective collective, CollectiveAlgorithm algorithm);

/// Cost of a collective. `best` uses a table if one covers the collective, and otherwise the
/// cheapest applicable algorithm of the cluster. Without ranks or bytes the time is 0. Throws
/// InfeasibleError if the algorithm does not support the collective here or the time overflows
/// (centuries); InternalError for negative bytes.
CollectiveCost collective_cost(const GroupPlacement& placement, Collective collective, double bytes,
                               const CollectiveOptions& options = {});

} // namespace monet
