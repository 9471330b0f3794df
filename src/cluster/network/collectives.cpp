// Chooses the algorithm of a collective, and models the hierarchical one, which runs a flat
// algorithm on each level in turn, on chunks of the message. Called by the cost models of a step.
#include "cluster/shared/collectives.hpp"

#include "cluster/network/flat_algorithms.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::array kFlat{CollectiveAlgorithm::ring, CollectiveAlgorithm::tree,
                           CollectiveAlgorithm::halving_doubling, CollectiveAlgorithm::direct};

bool library_has(const GroupPlacement& placement, CollectiveAlgorithm algorithm) {
  return ((placement.algorithms >> static_cast<unsigned>(algorithm)) & 1U) != 0;
}

bool covered(const GroupPlacement& placement, Collective collective) {
  const GroupPlacement::Level& level = placement.levels[0];
  return placement.count == 1 && level.table != nullptr && level.fan == placement.ranks &&
         level.table->covers(collective, placement.ranks);
}

struct Choice {
  RawCost cost;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
};

/// The measured time of a collective. Tables lack traffic, so the bytes sent are those of a ring.
Choice table_choice(const GroupPlacement& placement, Collective collective, double bytes) {
  Choice choice{{}, CollectiveAlgorithm::table};
  choice.cost = flat_cost(placement, collective, CollectiveAlgorithm::ring, bytes, 1);
  choice.cost.nanoseconds =
      placement.levels[0].table->nanoseconds(collective, placement.ranks, bytes);
  choice.cost.chunks = 1;
  return choice;
}

/// The table if it covers the collective, else the cheapest flat algorithm. Every cluster has the
/// ring, which supports every collective.
Choice best_flat(const GroupPlacement& placement, Collective collective, double bytes,
                 std::int64_t chunks) {
  if (covered(placement, collective) && library_has(placement, CollectiveAlgorithm::table))
    return table_choice(placement, collective, bytes);
  Choice best;
  bool found = false;
  for (const CollectiveAlgorithm algorithm : kFlat) {
    if (!library_has(placement, algorithm) || !does_flat(placement, collective, algorithm))
      continue;
    const RawCost cost = flat_cost(placement, collective, algorithm, bytes, chunks);
    if (!found || cost.nanoseconds < best.cost.nanoseconds)
      best = {cost, algorithm};
    found = true;
  }
  internal_check(found, "no algorithm does a collective");
  return best;
}

/// The placement of a group that spans only the level `index`.
GroupPlacement alone(const GroupPlacement& placement, std::size_t index) {
  GroupPlacement one;
  one.algorithms = placement.algorithms;
  one.count = 1;
  one.levels[0] = placement.levels[index];
  one.levels[0].below = 1;
  one.ranks = one.levels[0].fan;
  one.slots = one.ranks;
  return one;
}

/// Time and bytes of one chunk at each level.
struct Phases {
  std::array<double, kMaxTiers> nanoseconds{};
  std::array<double, kMaxTiers> bytes{};

  void add(std::size_t level, const RawCost& cost) {
    nanoseconds[level] += cost.nanoseconds;
    bytes[level] += cost.bytes[0];
  }
};

/// The phases of a hierarchical collective. An all-reduce is a reduce-scatter outward and an
/// all-gather inward around one all-reduce on the outermost level. Each level handles the share
/// left by the inner levels, except that all-to-all and broadcast move all bytes on every level. A
/// broadcast starts on the outermost level.
Phases phases_of(const GroupPlacement& placement, Collective collective, double bytes) {
  Phases phases;
  double left = bytes;
  for (std::size_t i = 0; i < placement.count; ++i) {
    const GroupPlacement one = alone(placement, i);
    if (collective == Collective::all_reduce && i + 1 < placement.count) {
      phases.add(i, best_flat(one, Collective::reduce_scatter, left, 1).cost);
      phases.add(i, best_flat(one, Collective::all_gather, left, 1).cost);
    } else {
      phases.add(i, best_flat(one, collective, left, 1).cost);
    }
    if (collective != Collective::all_to_all && collective != Collective::broadcast)
      left /= static_cast<double>(placement.levels[i].fan);
  }
  return phases;
}

RawCost pipelined(const GroupPlacement& placement, Collective collective, double bytes,
                  std::int64_t chunks) {
  const auto count = static_cast<double>(chunks);
  const Phases phases = phases_of(placement, collective, bytes / count);
  RawCost cost;
  cost.chunks = chunks;
  double longest = 0;
  for (std::size_t i = 0; i < placement.count; ++i) {
    cost.nanoseconds += phases.nanoseconds[i];
    longest = std::max(longest, phases.nanoseconds[i]);
    cost.bytes[i] = phases.bytes[i] * count;
  }
  cost.nanoseconds += (count - 1) * longest;
  return cost;
}

RawCost hierarchical_cost(const GroupPlacement& placement, Collective collective, double bytes,
                          std::int64_t chunks) {
  if (chunks > 0)
    return pipelined(placement, collective, bytes, chunks);
  RawCost best = pipelined(placement, collective, bytes, 1);
  for (std::int64_t c = 2; c <= kMaxChunks; c *= 2) {
    const RawCost cost = pipelined(placement, collective, bytes, c);
    if (cost.nanoseconds >= best.nanoseconds)
      break;
    best = cost;
  }
  return best;
}

Choice best_choice(const GroupPlacement& placement, Collective collective, double bytes,
                   std::int64_t chunks) {
  Choice best = best_flat(placement, collective, bytes, chunks);
  if (best.algorithm != CollectiveAlgorithm::table &&
      library_has(placement, CollectiveAlgorithm::hierarchical) &&
      does(placement, collective, CollectiveAlgorithm::hierarchical)) {
    const RawCost cost = hierarchical_cost(placement, collective, bytes, chunks);
    if (cost.nanoseconds < best.cost.nanoseconds)
      best = {cost, CollectiveAlgorithm::hierarchical};
  }
  return best;
}

Choice chosen(const GroupPlacement& placement, Collective collective, double bytes,
              const CollectiveOptions& options) {
  switch (options.algorithm) {
  case CollectiveAlgorithm::best:
    return best_choice(placement, collective, bytes, options.chunks);
  case CollectiveAlgorithm::table:
    return table_choice(placement, collective, bytes);
  case CollectiveAlgorithm::hierarchical:
    return {hierarchical_cost(placement, collective, bytes, options.chunks), options.algorithm};
  default:
    return {flat_cost(placement, collective, options.algorithm, bytes, options.chunks),
            options.algorithm};
  }
}

} // namespace

bool does(const GroupPlacement& placement, Collective collective, CollectiveAlgorithm algorithm) {
  switch (algorithm) {
  case CollectiveAlgorithm::best:
    return true;
  case CollectiveAlgorithm::table:
    return covered(placement, collective);
  case CollectiveAlgorithm::hierarchical:
    return placement.count > 1 && placement.is_even() && collective != Collective::point_to_point;
  default:
    return does_flat(placement, collective, algorithm);
  }
}

CollectiveCost collective_cost(const GroupPlacement& placement, Collective collective, double bytes,
                               const CollectiveOptions& options) {
  internal_check(bytes >= 0, "a collective has fewer than no bytes");
  CollectiveCost result;
  if (placement.count == 0 || bytes == 0)
    return result;
  if (!does(placement, collective, options.algorithm))
    throw InfeasibleError(fmt::format("no {} by '{}' between these {} ranks on {} tiers",
                                      name_of(collective), name_of(options.algorithm),
                                      placement.ranks, placement.count));
  const Choice choice = chosen(placement, collective, bytes, options);
  constexpr double kLongest = 9e18;
  if (!(choice.cost.nanoseconds < kLongest))
    throw InfeasibleError(fmt::format("{} of {:g} bytes between {} ranks takes centuries",
                                      name_of(collective), bytes, placement.ranks));
  result.time = whole_nanoseconds(choice.cost.nanoseconds);
  result.algorithm = choice.algorithm;
  result.chunks = choice.cost.chunks;
  result.bytes = choice.cost.bytes;
  return result;
}

} // namespace monet
