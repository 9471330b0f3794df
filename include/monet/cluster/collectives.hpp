// What collectives cost on a cluster: where a group's ranks stand on its tiers, and the closed
// forms of each algorithm. docs/explanation/collectives.md has the formulas with their sources.
// Functions here do not allocate, so that a planner may call them millions of times.
#pragma once

#include "monet/cluster/cluster.hpp"
#include "monet/cluster/duration.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace monet {

/// One axis of a mesh of devices: `count` ranks, `stride` device numbers apart. A group is the
/// product of its axes: with 8 tensor ranks innermost and 4 data ranks next, the tensor group is
/// {{1, 8}}, the data group {{8, 4}}, and both together {{1, 8}, {8, 4}}.
struct GroupAxis {
  std::int64_t stride = 1;
  std::int64_t count = 1;
};
inline constexpr std::size_t kMaxGroupAxes = 8;

/// Where the ranks of a group stand: only tiers that join some of them, innermost first. All
/// sibling groups, which the mesh has on its other devices, run at once: no tier lends a group more
/// than the share of the group's own devices.
struct GroupPlacement {
  struct Level {
    std::size_t tier = 0;
    std::int64_t fan = 1;      ///< parts of the group that meet here
    std::int64_t below = 1;    ///< ranks in the fullest part: the product of the inner fans
    double bandwidth = 0;      ///< GB/s per rank, when it uses all of the tier's links it can
    double link_bandwidth = 0; ///< GB/s per rank towards one other rank
    double latency = 0;        ///< ns
    TierTopology topology = TierTopology::switched;
    const CollectiveTable* table = nullptr; ///< of the cluster that the placement was made from
  };
  std::int64_t ranks = 1;
  std::size_t count = 0; ///< levels in use
  std::array<Level, kMaxTiers> levels{};
  std::uint32_t algorithms = 0; ///< as of the cluster
  std::int64_t slots = 1;       ///< the product of the fans

  /// Every part of a level has as many ranks.
  bool is_even() const { return slots == ranks; }
};

/// Of the group that begins at device 0. Axes with strides that do not nest in the tiers' units
/// count as their fullest unit holds them. InternalError for more axes than kMaxGroupAxes and for
/// devices beyond the cluster. The cluster must outlive the placement.
GroupPlacement place(const Cluster& cluster, std::span<const GroupAxis> axes);
/// The same of a list of device numbers, ascending.
GroupPlacement place(const Cluster& cluster, std::span<const std::int64_t> devices);

struct CollectiveOptions {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::best;
  /// Pieces that a hierarchical collective is cut into, so that the tiers work at once, and that a
  /// broadcast over a ring is cut into; 0 = 1, 2, 4, ... up to 64 while that is cheaper.
  std::int64_t chunks = 0;
};

struct CollectiveCost {
  Nanoseconds time = 0;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring; ///< the one taken
  std::int64_t chunks = 1;
  /// Bytes that a rank sends over each level of the placement, the mean over the ranks; of a
  /// message from point to point, what its sender sends.
  std::array<double, kMaxTiers> bytes{};
};

/// Whether the algorithm does the collective there; `best` always does.
bool does(const GroupPlacement& placement, Collective collective, CollectiveAlgorithm algorithm);

/// `best` is the table where a table covers the collective, and the cheapest of the algorithms that
/// the cluster has and that apply where not. No ranks or no bytes take no time. InfeasibleError
/// where the algorithm does not do the collective there, and where it takes centuries;
/// InternalError for bytes below 0.
CollectiveCost collective_cost(const GroupPlacement& placement, Collective collective, double bytes,
                               const CollectiveOptions& options = {});

} // namespace monet
