// Places a group of ranks on the tiers of a cluster. The collective algorithms read the placement.
#include "cluster/shared/collectives.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/units.hpp"

#include <algorithm>

namespace monet {

namespace {

/// Sets the bandwidths of a level from its tier. If the group has only some units of a ring tier,
/// the ring is open, and a collective uses only one of the two directions between neighbours. In a
/// fully connected tier a device has a link to each other unit.
void set_bandwidths(const Tier& tier, GroupPlacement::Level& level) {
  const double whole = tier.share_gb_per_s();
  level.bandwidth = whole;
  level.link_bandwidth = whole;
  const auto others = static_cast<double>(tier.size - 1);
  if (tier.topology == TierTopology::ring && tier.size > 2) {
    level.link_bandwidth = whole / 2;
    level.bandwidth = level.fan == tier.size ? whole : whole / 2;
  } else if (tier.topology == TierTopology::fully_connected && tier.size > 2) {
    level.link_bandwidth = whole / others;
    level.bandwidth = whole * static_cast<double>(level.fan - 1) / others;
  }
}

/// Adds a level with `fan` units, unless the group has only one; the levels below have
/// placement.slots ranks.
void add_level(const Cluster& cluster, std::size_t tier, std::int64_t fan,
               GroupPlacement& placement) {
  if (fan <= 1)
    return;
  GroupPlacement::Level& level = placement.levels[placement.count++];
  level.tier = tier;
  level.fan = fan;
  level.below = placement.slots;
  placement.slots *= fan;
  level.latency = cluster.tiers[tier].latency_ns;
  level.topology = cluster.tiers[tier].topology;
  level.table = cluster.tiers[tier].table.empty() ? nullptr : &cluster.tiers[tier].table;
  set_bandwidths(cluster.tiers[tier], level);
}

/// Maximum number of the group's ranks in a unit of `unit` devices.
std::int64_t ranks_within(std::span<const GroupAxis> axes, std::int64_t unit) {
  std::int64_t ranks = 1;
  for (const GroupAxis& axis : axes)
    ranks *= axis.stride >= unit ? 1 : std::min(axis.count, ceil_div(unit, axis.stride));
  return ranks;
}

} // namespace

GroupPlacement place(const Cluster& cluster, std::span<const GroupAxis> axes) {
  internal_check(axes.size() <= kMaxGroupAxes, "a group has too many axes");
  GroupPlacement placement;
  placement.algorithms = cluster.algorithms;
  std::int64_t last = 0;
  for (const GroupAxis& axis : axes) {
    internal_check(axis.stride >= 1 && axis.count >= 1 && axis.count <= kMaxDevices &&
                       axis.stride <= kMaxDevices,
                   "an axis of a mesh is invalid");
    placement.ranks *= axis.count;
    last += axis.stride * (axis.count - 1);
    internal_check(last < cluster.devices && placement.ranks <= cluster.devices,
                   "a group is larger than its cluster");
  }
  std::int64_t unit = 1;
  for (std::size_t t = 0; t < cluster.tiers.size(); ++t) {
    unit *= cluster.tiers[t].size;
    const std::int64_t within = std::min(placement.ranks, ranks_within(axes, unit));
    const std::int64_t fan = std::min(ceil_div(within, placement.slots), cluster.tiers[t].size);
    add_level(cluster, t, fan, placement);
  }
  return placement;
}

GroupPlacement place(const Cluster& cluster, std::span<const std::int64_t> devices) {
  GroupPlacement placement;
  placement.algorithms = cluster.algorithms;
  placement.ranks = static_cast<std::int64_t>(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    internal_check(devices[i] > (i == 0 ? -1 : devices[i - 1]) && devices[i] < cluster.devices,
                   "a group's devices are not ascending, or not in the cluster");
  }
  std::int64_t inner = 1;
  for (std::size_t t = 0; t < cluster.tiers.size(); ++t) {
    const std::int64_t unit = inner * cluster.tiers[t].size;
    std::int64_t fan = 0;
    std::int64_t parts = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const bool same_unit = i > 0 && devices[i] / unit == devices[i - 1] / unit;
      const bool same_part = i > 0 && devices[i] / inner == devices[i - 1] / inner;
      parts = same_unit ? parts + (same_part ? 0 : 1) : 1;
      fan = std::max(fan, parts);
    }
    inner = unit;
    add_level(cluster, t, fan, placement);
  }
  return placement;
}

} // namespace monet
