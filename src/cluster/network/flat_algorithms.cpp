// Closed-form costs of the flat algorithms: ring, tree, halving-doubling and direct. Called by
// collectives.cpp. Sources: docs/explanation/collectives.md.
#include "cluster/network/flat_algorithms.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <bit>

namespace monet {

namespace {

using Level = GroupPlacement::Level;

double number(std::int64_t value) {
  return static_cast<double>(value);
}

/// ceil(log2(value)), value >= 1.
std::int64_t rounds_of(std::int64_t value) {
  return std::bit_width(static_cast<std::uint64_t>(value - 1));
}

bool is_power_of_two(std::int64_t value) {
  return std::has_single_bit(static_cast<std::uint64_t>(value));
}

std::span<const Level> levels_of(const GroupPlacement& placement) {
  return {placement.levels.data(), placement.count};
}

double longest_latency(const GroupPlacement& placement) {
  double latency = 0;
  for (const Level& level : levels_of(placement))
    latency = std::max(latency, level.latency);
  return latency;
}

/// The mean link latency, in ns, of a ring over all ranks. The ring crosses one outer link for each
/// run of inner links. An uneven placement uses the longest latency instead.
double mean_latency(const GroupPlacement& placement) {
  if (!placement.is_even())
    return longest_latency(placement);
  double latency = 0;
  for (std::size_t i = 0; i < placement.count; ++i) {
    const Level& level = placement.levels[i];
    const double outward = i + 1 < placement.count ? 1 / number(level.below * level.fan) : 0;
    latency += level.latency * (1 / number(level.below) - outward);
  }
  return latency;
}

/// GB/s of the narrowest level on a path that crosses each level once. The `below` ranks under a
/// level share the message and pool their links. An uneven placement counts one rank per level.
double narrowest(const GroupPlacement& placement, double Level::*bandwidth) {
  double least = 0;
  for (const Level& level : levels_of(placement)) {
    const double pooled = level.*bandwidth * number(placement.is_even() ? level.below : 1);
    least = least == 0 ? pooled : std::min(least, pooled);
  }
  return least;
}

/// Number of peers of a rank whose innermost common level is this one.
double peers_at(const Level& level) {
  return number(level.below * (level.fan - 1));
}

/// Mean number of links that a message crosses at this level if all pairs of ranks exchange one.
double hops_at(const Level& level) {
  if (level.topology != TierTopology::ring || level.fan <= 3)
    return 1;
  return number(level.fan * level.fan / 4) / number(level.fan - 1);
}

/// Passes over the data: two for an all-reduce (reduce-scatter and all-gather), else one.
double passes_of(Collective collective) {
  return collective == Collective::all_reduce ? 2 : 1;
}

/// Sets the bytes at each level for a path that visits all ranks in order with `volume` bytes sent
/// by each rank.
void spread_along(const GroupPlacement& placement, double volume, RawCost& cost) {
  for (std::size_t i = 0; i < placement.count; ++i) {
    const Level& level = placement.levels[i];
    const double outward = i + 1 < placement.count ? 1 / number(level.below * level.fan) : 0;
    cost.bytes[i] = volume * (1 / number(level.below) - outward);
  }
}

void spread_over_peers(const GroupPlacement& placement, double each, RawCost& cost) {
  for (std::size_t i = 0; i < placement.count; ++i)
    cost.bytes[i] = each * peers_at(placement.levels[i]);
}

/// Pipelined broadcast along a chain of p ranks with c chunks: (p - 2 + c) (alpha + n/c beta).
RawCost chain_broadcast(const GroupPlacement& placement, double bytes, std::int64_t chunks) {
  RawCost cost;
  const double alpha = longest_latency(placement);
  const double time = bytes / narrowest(placement, &Level::link_bandwidth);
  const double hops = number(placement.ranks - 2);
  const auto with = [&](std::int64_t c) { return (hops + number(c)) * (alpha + time / number(c)); };
  cost.chunks = std::max<std::int64_t>(chunks, 1);
  for (std::int64_t c = 2; chunks == 0 && c <= kMaxChunks; c *= 2) {
    if (with(c) < with(cost.chunks))
      cost.chunks = c;
  }
  cost.nanoseconds = with(cost.chunks);
  spread_along(placement, bytes * number(placement.ranks - 1) / number(placement.ranks), cost);
  return cost;
}

/// All-to-all by pairwise exchange: p - 1 rounds, each with one partner.
RawCost exchange_pairwise(const GroupPlacement& placement, double bytes) {
  RawCost cost;
  const double each = bytes / number(placement.ranks);
  for (const Level& level : levels_of(placement))
    cost.nanoseconds += peers_at(level) * (level.latency + each * hops_at(level) / level.bandwidth);
  spread_over_peers(placement, each, cost);
  return cost;
}

RawCost ring_cost(const GroupPlacement& placement, Collective collective, double bytes,
                  std::int64_t chunks) {
  if (collective == Collective::broadcast)
    return chain_broadcast(placement, bytes, chunks);
  if (collective == Collective::all_to_all)
    return exchange_pairwise(placement, bytes);
  RawCost cost;
  const double passes = passes_of(collective);
  const double steps = number(placement.ranks - 1);
  const double volume = passes * steps / number(placement.ranks) * bytes;
  cost.nanoseconds =
      passes * steps * mean_latency(placement) + volume / narrowest(placement, &Level::bandwidth);
  spread_along(placement, volume, cost);
  return cost;
}

/// Cost of double binary trees for all-reduce, and of a binomial tree for broadcast.
RawCost tree_cost(const GroupPlacement& placement, Collective collective, double bytes) {
  RawCost cost;
  const bool both_ways = collective == Collective::all_reduce;
  for (std::size_t i = 0; i < placement.count; ++i) {
    const Level& level = placement.levels[i];
    const double rounds = number(rounds_of(level.fan));
    cost.nanoseconds +=
        both_ways ? 2 * rounds * level.latency
                  : rounds * (level.latency + bytes / (level.link_bandwidth * number(level.below)));
    cost.bytes[i] =
        (both_ways ? 2 : 1) * bytes * number(level.fan - 1) / number(level.below * level.fan);
  }
  if (both_ways)
    cost.nanoseconds += 2 * bytes / narrowest(placement, &Level::link_bandwidth);
  return cost;
}

/// Halving-doubling over levels whose fans are all powers of two, from the innermost outward. Each
/// step halves the remaining bytes.
RawCost halving_of_powers(const GroupPlacement& placement, Collective collective, double bytes) {
  RawCost cost;
  const double passes = passes_of(collective);
  for (std::size_t i = 0; i < placement.count; ++i) {
    const Level& level = placement.levels[i];
    cost.bytes[i] =
        passes * bytes * number(level.fan - 1) / number(level.fan) / number(level.below);
    cost.nanoseconds += passes * number(rounds_of(level.fan)) * level.latency +
                        cost.bytes[i] / level.link_bandwidth;
  }
  return cost;
}

/// Bytes that a rank sends in Bruck's all-to-all: round i sends the blocks whose distance has bit i
/// set.
double bruck_bytes(std::int64_t ranks, double bytes) {
  std::int64_t blocks = 0;
  for (std::int64_t bit = 1; bit < ranks; bit *= 2) {
    const std::int64_t whole = ranks / (2 * bit) * bit;
    blocks += whole + std::max<std::int64_t>(0, ranks % (2 * bit) - bit);
  }
  return bytes * number(blocks) / number(ranks);
}

/// Halving-doubling for any number of ranks, with every round at the pace of the slowest level.
/// Ranks beyond a power of two need two extra steps: they send their bytes to a partner first and
/// receive the result from it at the end.
RawCost halving_of_any(const GroupPlacement& placement, Collective collective, double bytes) {
  const std::int64_t ranks = placement.ranks;
  const auto core = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(ranks)));
  const std::int64_t extra = ranks - core;
  double rounds = number(rounds_of(core));
  double sent = 0; // bytes on the longest path
  if (collective == Collective::all_to_all) {
    rounds = number(rounds_of(ranks));
    sent = bruck_bytes(ranks, bytes);
  } else if (collective == Collective::all_reduce) {
    sent = 2 * number(core - 1) / number(core) * bytes;
    rounds = 2 * rounds + (extra > 0 ? 2 : 0);
    sent += extra > 0 ? 2 * bytes : 0;
  } else {
    for (std::int64_t half = core / 2; half >= 1; half /= 2)
      sent += number(half + std::min(half, extra)) / number(ranks) * bytes;
    rounds += extra > 0 ? 2 : 0;
    sent += extra > 0 ? bytes + bytes / number(ranks) : 0;
  }
  double slowest = 0;
  for (const Level& level : levels_of(placement))
    slowest = slowest == 0 ? level.link_bandwidth : std::min(slowest, level.link_bandwidth);
  RawCost cost;
  cost.nanoseconds = rounds * longest_latency(placement) + sent / slowest;
  if (collective == Collective::all_to_all) {
    spread_over_peers(placement, sent / number(ranks - 1), cost);
    return cost;
  }
  // The largest exchanges are between neighbours, as are the extra steps.
  const double core_sent = passes_of(collective) * number(core - 1) / number(ranks) * bytes;
  spread_along(placement, core_sent, cost);
  const double handed = collective == Collective::all_reduce ? 2.0 : 1 + 1 / number(ranks);
  cost.bytes[0] += handed * number(extra) / number(ranks) * bytes;
  return cost;
}

RawCost halving_cost(const GroupPlacement& placement, Collective collective, double bytes) {
  std::int64_t product = 1;
  bool powers = collective != Collective::all_to_all;
  for (const Level& level : levels_of(placement)) {
    powers = powers && is_power_of_two(level.fan);
    product *= level.fan;
  }
  return powers && product == placement.ranks ? halving_of_powers(placement, collective, bytes)
                                              : halving_of_any(placement, collective, bytes);
}

/// Cost of the direct algorithm: all ranks send to all others at once, and all levels work
/// concurrently.
RawCost direct_cost(const GroupPlacement& placement, Collective collective, double bytes) {
  RawCost cost;
  const double passes = passes_of(collective);
  const bool from_one = collective == Collective::broadcast;
  const double each = from_one ? bytes : bytes / number(placement.ranks);
  double longest = 0;
  for (const Level& level : levels_of(placement))
    longest = std::max(longest, passes * each * peers_at(level) * hops_at(level) / level.bandwidth);
  cost.nanoseconds = passes * longest_latency(placement) + longest;
  spread_over_peers(placement, passes * each / (from_one ? number(placement.ranks) : 1), cost);
  return cost;
}

bool has_open_ways(const GroupPlacement& placement) {
  return std::ranges::none_of(levels_of(placement), [](const Level& level) {
    return level.topology == TierTopology::ring && level.fan > 3;
  });
}

} // namespace

bool does_flat(const GroupPlacement& placement, Collective collective,
               CollectiveAlgorithm algorithm) {
  const bool reduces = collective == Collective::all_reduce;
  const bool is_half =
      collective == Collective::reduce_scatter || collective == Collective::all_gather;
  const bool exchanges = collective == Collective::all_to_all;
  switch (algorithm) {
  case CollectiveAlgorithm::ring:
    return true;
  case CollectiveAlgorithm::tree:
    return has_open_ways(placement) && (reduces || collective == Collective::broadcast);
  case CollectiveAlgorithm::halving_doubling:
    return has_open_ways(placement) && (reduces || is_half || exchanges);
  case CollectiveAlgorithm::direct:
    return exchanges || has_open_ways(placement);
  default:
    return false;
  }
}

RawCost flat_cost(const GroupPlacement& placement, Collective collective,
                  CollectiveAlgorithm algorithm, double bytes, std::int64_t chunks) {
  if (collective == Collective::point_to_point) {
    RawCost cost;
    const Level& level = placement.levels[placement.count - 1];
    cost.nanoseconds = level.latency + bytes / level.link_bandwidth;
    cost.bytes[placement.count - 1] = bytes;
    return cost;
  }
  switch (algorithm) {
  case CollectiveAlgorithm::ring:
    return ring_cost(placement, collective, bytes, chunks);
  case CollectiveAlgorithm::tree:
    return tree_cost(placement, collective, bytes);
  case CollectiveAlgorithm::halving_doubling:
    return halving_cost(placement, collective, bytes);
  case CollectiveAlgorithm::direct:
    return direct_cost(placement, collective, bytes);
  default:
    throw InternalError("an algorithm is not flat");
  }
}

} // namespace monet
