// The closed forms against step lists of sends and receives: what arrives, when, and that it does.
#include "base/shared/rng.hpp"
#include "cluster/cluster_of.hpp"
#include "cluster/collective_simulation.hpp"
#include "level.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace monet {
namespace {

using test::cluster_of;
using test::simulate;
using test::Simulated;
using test::SimulationOptions;
using test::TierOf;

constexpr auto kRing = CollectiveAlgorithm::ring;
constexpr auto kTree = CollectiveAlgorithm::tree;
constexpr auto kHalving = CollectiveAlgorithm::halving_doubling;
constexpr auto kDirect = CollectiveAlgorithm::direct;
constexpr auto kHierarchical = CollectiveAlgorithm::hierarchical;
constexpr std::array kFlat{kRing, kTree, kHalving, kDirect};

std::vector<std::int64_t> first_devices(std::int64_t count) {
  std::vector<std::int64_t> devices(static_cast<std::size_t>(count));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

bool is_pipelined_tree(Collective collective, CollectiveAlgorithm algorithm) {
  return collective == Collective::all_reduce && algorithm == kTree;
}

std::string label(Collective collective, CollectiveAlgorithm algorithm, std::int64_t ranks) {
  return std::string(name_of(collective)) + " by " + std::string(name_of(algorithm)) + ", " +
         std::to_string(ranks) + " ranks";
}

TEST(CollectiveSimulation, TakesTheClosedFormsTimeOnEqualLinks) {
  std::size_t compared = 0;
  for (const std::int64_t ranks : {2, 3, 4, 5, 6, 7, 8, 11, 12, 15, 16, 21, 32}) {
    const Cluster cluster = cluster_of({{ranks, 10, 100}});
    const auto devices = first_devices(ranks);
    const GroupPlacement placement = place(cluster, devices);
    const double bytes = 1e4 * static_cast<double>(ranks);
    for (std::size_t c = 0; c < kCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      for (const CollectiveAlgorithm algorithm : kFlat) {
        if (!does(placement, collective, algorithm) || is_pipelined_tree(collective, algorithm))
          continue;
        SCOPED_TRACE(label(collective, algorithm, ranks));
        const std::int64_t chunks =
            collective == Collective::broadcast && algorithm == kRing ? 5 : 1;
        const CollectiveCost cost =
            collective_cost(placement, collective, bytes, {algorithm, chunks});
        const Simulated run = simulate(cluster, devices, collective, algorithm, bytes, {chunks});
        EXPECT_TRUE(run.finished);
        EXPECT_EQ(run.wrong, "");
        EXPECT_NEAR(run.nanoseconds, static_cast<double>(cost.time), 1.0);
        const bool one_sends = collective == Collective::point_to_point;
        EXPECT_NEAR(run.bytes_per_tier[0] * (one_sends ? static_cast<double>(ranks) : 1),
                    cost.bytes[0], 1e-6 * bytes);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 150U);
}

// The closed form is that of pieces without end and without waiting for ports: a lower bound that
// the steps come close to where bytes count, and meet but for a piece's way where latency does.
TEST(CollectiveSimulation, ComesCloseToTheClosedFormOfDoubleTrees) {
  for (const std::int64_t ranks : {2, 3, 4, 7, 8, 13, 16, 31, 32, 64}) {
    SCOPED_TRACE(ranks);
    const Cluster cluster = cluster_of({{ranks, 10, 100}});
    const auto devices = first_devices(ranks);
    const GroupPlacement placement = place(cluster, devices);
    const auto ratio = [&](double bytes, std::int64_t chunks) {
      const CollectiveCost cost =
          collective_cost(placement, Collective::all_reduce, bytes, {kTree, 0});
      const Simulated run =
          simulate(cluster, devices, Collective::all_reduce, kTree, bytes, {chunks});
      EXPECT_TRUE(run.finished);
      EXPECT_EQ(run.wrong, "");
      return run.nanoseconds / static_cast<double>(cost.time);
    };
    const double small = ratio(1, 1);
    EXPECT_GE(small, 0.49); // a tree of two ranks is one step each way
    EXPECT_LE(small, 1.35);
    const double large = ratio(1e7, 64);
    std::printf("%d ranks: %.3f of the formula for 1 byte, %.3f for 10 MB\n",
                static_cast<int>(ranks), small, large);
    EXPECT_GE(large, 0.49);
    EXPECT_LE(large, 1.35);
  }
}

TEST(CollectiveSimulation, TakesTheClosedFormsTimeOnTwoAndThreeTiers) {
  const std::vector<std::vector<TierOf>> clusters{{{4, 100, 10}, {2, 10, 100}},
                                                  {{2, 50, 10}, {4, 20, 30}, {2, 5, 100}},
                                                  {{8, 30, 20}, {4, 30, 20}}};
  for (const auto& tiers : clusters) {
    Cluster cluster = cluster_of(tiers);
    const auto devices = first_devices(cluster.devices);
    const double bytes = 1e4 * static_cast<double>(cluster.devices);
    for (const CollectiveAlgorithm inside : {kRing, kHalving, kDirect}) {
      cluster.algorithms =
          (1U << static_cast<unsigned>(inside)) | (1U << static_cast<unsigned>(kHierarchical));
      const GroupPlacement placement = place(cluster, devices);
      for (const Collective collective :
           {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
        SCOPED_TRACE(label(collective, inside, cluster.devices));
        const CollectiveCost cost =
            collective_cost(placement, collective, bytes, {kHierarchical, 1});
        const Simulated run =
            simulate(cluster, devices, collective, kHierarchical, bytes, {1, inside});
        EXPECT_EQ(run.wrong, "");
        EXPECT_NEAR(run.nanoseconds, static_cast<double>(cost.time), 1.0);
        for (std::size_t t = 0; t < tiers.size(); ++t)
          EXPECT_NEAR(run.bytes_per_tier[t], cost.bytes[t], 1e-6 * bytes);
        if (inside != kHalving)
          continue;
        const CollectiveCost flat = collective_cost(placement, collective, bytes, {inside, 1});
        EXPECT_NEAR(simulate(cluster, devices, collective, inside, bytes).nanoseconds,
                    static_cast<double>(flat.time), 1.0);
      }
      if (inside == kHalving)
        continue;
      const CollectiveCost cost =
          collective_cost(placement, Collective::all_to_all, bytes, {inside, 1});
      const double run =
          simulate(cluster, devices, Collective::all_to_all, inside, bytes).nanoseconds;
      // At once, the tier with the longest latency need not be the one with the most to do.
      EXPECT_LE(run, static_cast<double>(cost.time) + 1);
      EXPECT_GE(run, static_cast<double>(cost.time) - (inside == kDirect ? 100 : 1));
    }
  }
}

// Chunks: never longer than the longest tier and the fill, never shorter than the longest tier or
// one chunk alone.
TEST(CollectiveSimulation, OfChunksHidesAllButTheLongestTier) {
  for (const double outer : {2.0, 10.0, 25.0, 100.0}) {
    Cluster cluster = cluster_of({{4, 100, 0}, {2, outer, 0}});
    cluster.algorithms = 0b10001; // ring, hierarchical
    const auto devices = first_devices(8);
    const GroupPlacement placement = place(cluster, devices);
    const double bytes = 8e6;
    const double inside = 2 * 0.75 * bytes / 100;
    const double between = 2 * 0.5 * (bytes / 4) / outer;
    for (const std::int64_t chunks : {1, 2, 4, 8, 16}) {
      SCOPED_TRACE(testing::Message() << outer << " GB/s, " << chunks << " chunks");
      const CollectiveCost cost =
          collective_cost(placement, Collective::all_reduce, bytes, {kHierarchical, chunks});
      const Simulated run =
          simulate(cluster, devices, Collective::all_reduce, kHierarchical, bytes, {chunks, kRing});
      EXPECT_EQ(run.wrong, "");
      EXPECT_LE(run.nanoseconds, static_cast<double>(cost.time) * 1.0001);
      EXPECT_GE(
          run.nanoseconds * 1.0001,
          std::max(std::max(inside, between), (inside + between) / static_cast<double>(chunks)));
      EXPECT_NEAR(
          static_cast<double>(cost.time),
          std::max(inside, between) + std::min(inside, between) / static_cast<double>(chunks), 2);
    }
  }
}

std::vector<TierOf> random_tiers(RandomStream& random) {
  std::vector<TierOf> tiers(1 + random.below(4));
  for (TierOf& tier : tiers) {
    tier.size = 1 + static_cast<std::int64_t>(random.below(8));
    tier.bandwidth = 1 + static_cast<double>(random.below(100));
    tier.latency = static_cast<double>(random.below(100));
    tier.oversubscription = random.chance(0.3) ? 2 : 1;
  }
  return tiers;
}

/// Any devices, every so many-th, or all of some tiers that lie one above the other.
std::vector<std::int64_t> random_group(const Cluster& cluster, RandomStream& random) {
  const std::int64_t most = std::min<std::int64_t>(cluster.devices, random.chance(0.05) ? 16 : 8);
  const auto below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
  };
  std::vector<std::int64_t> group;
  const std::int64_t kind = below(3);
  if (kind == 0) {
    for (std::int64_t i = 0; i < most; ++i)
      group.push_back(below(cluster.devices));
    std::ranges::sort(group);
    group.erase(std::unique(group.begin(), group.end()), group.end());
  } else if (kind == 1) {
    const std::int64_t stride = 1 + below(cluster.devices);
    for (std::int64_t d = 0; d < cluster.devices && std::ssize(group) < most; d += stride)
      group.push_back(d);
  } else {
    const std::int64_t limit = random.chance(0.03) ? 32 : 10;
    const std::int64_t skipped = below(std::ssize(cluster.tiers));
    std::int64_t stride = 1;
    std::int64_t count = 1;
    for (std::int64_t t = 0; t < std::ssize(cluster.tiers); ++t) {
      const std::int64_t size = cluster.tiers[static_cast<std::size_t>(t)].size;
      stride *= t < skipped ? size : 1;
      count *= t >= skipped && count * size <= limit ? size : 1;
    }
    for (std::int64_t i = 0; i < count; ++i)
      group.push_back(i * stride);
  }
  return group;
}

TEST(CollectiveSimulation, NeverDeadlocksOnRandomTopologiesAndGroups) {
  std::size_t runs = 0;
  std::size_t nested = 0;
  const auto groups = static_cast<std::uint64_t>(test::cases(1000, 10'000, 10'000));
  for (std::uint64_t seed = 0; seed < groups; ++seed) {
    RandomStream random(seed);
    const Cluster cluster = cluster_of(random_tiers(random));
    const auto devices = random_group(cluster, random);
    if (devices.size() < 2)
      continue;
    const GroupPlacement placement = place(cluster, devices);
    for (std::size_t c = 0; c < kCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      for (const CollectiveAlgorithm algorithm : {kRing, kTree, kHalving, kDirect, kHierarchical}) {
        if (!does(placement, collective, algorithm))
          continue;
        const SimulationOptions options{1 + static_cast<std::int64_t>(random.below(3)),
                                        std::array{kRing, kHalving, kDirect}[random.below(3)]};
        const Simulated run = simulate(cluster, devices, collective, algorithm, 1000, options);
        nested += algorithm == kHierarchical ? 1 : 0;
        ++runs;
        if (run.finished && run.wrong.empty())
          continue;
        ADD_FAILURE() << "seed " << seed << ", " << label(collective, algorithm, placement.ranks)
                      << ": " << run.wrong;
        return;
      }
    }
  }
  EXPECT_GT(runs, 8 * groups);
  EXPECT_GT(nested, groups / 4);
}

} // namespace
} // namespace monet
