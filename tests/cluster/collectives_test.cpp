// Collectives against their closed forms (docs/explanation/collectives.md), with numbers worked
// out by hand, and tables against their points.
#include "cluster/cluster_of.hpp"
#include "cluster/shared/collectives.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace monet {
namespace MONET_TEST_FILE {

using test::cluster_of;
using test::TierOf;

constexpr auto kBest = CollectiveAlgorithm::best;
constexpr auto kRing = CollectiveAlgorithm::ring;
constexpr auto kTree = CollectiveAlgorithm::tree;
constexpr auto kHalving = CollectiveAlgorithm::halving_doubling;
constexpr auto kDirect = CollectiveAlgorithm::direct;
constexpr auto kHierarchical = CollectiveAlgorithm::hierarchical;
constexpr auto kTable = CollectiveAlgorithm::table;

GroupPlacement whole(const Cluster& cluster) {
  const GroupAxis all{1, cluster.devices};
  return place(cluster, {&all, 1});
}

Nanoseconds time_of(const GroupPlacement& placement, Collective collective,
                    CollectiveAlgorithm algorithm, double bytes, std::int64_t chunks = 0) {
  return collective_cost(placement, collective, bytes, {algorithm, chunks}).time;
}

// 8 ranks, 100 ns, 10 GB/s, 8,000 bytes: 800 ns for all of them, 700 ns for 7/8.
TEST(Collectives, OnOneSwitchAreTheClosedForms) {
  const Cluster cluster = cluster_of({{8, 10, 100}});
  const GroupPlacement p = whole(cluster);
  const auto at = [&](Collective c, CollectiveAlgorithm a) { return time_of(p, c, a, 8000); };
  EXPECT_EQ(at(Collective::all_reduce, kRing), 14 * 100 + 1400);
  EXPECT_EQ(at(Collective::reduce_scatter, kRing), 7 * 100 + 700);
  EXPECT_EQ(at(Collective::all_gather, kRing), 7 * 100 + 700);
  EXPECT_EQ(at(Collective::all_to_all, kRing), 7 * 100 + 700);
  EXPECT_EQ(at(Collective::all_reduce, kTree), 6 * 100 + 1600);
  EXPECT_EQ(at(Collective::broadcast, kTree), 3 * (100 + 800));
  EXPECT_EQ(at(Collective::all_reduce, kHalving), 6 * 100 + 1400);
  EXPECT_EQ(at(Collective::reduce_scatter, kHalving), 3 * 100 + 700);
  EXPECT_EQ(at(Collective::all_gather, kHalving), 3 * 100 + 700);
  EXPECT_EQ(at(Collective::all_to_all, kHalving), 3 * 100 + 1200); // 4 of 8 blocks a round
  EXPECT_EQ(at(Collective::all_reduce, kDirect), 2 * 100 + 1400);
  EXPECT_EQ(at(Collective::reduce_scatter, kDirect), 100 + 700);
  EXPECT_EQ(at(Collective::all_to_all, kDirect), 100 + 700);
  EXPECT_EQ(at(Collective::broadcast, kDirect), 100 + 7 * 800);
  EXPECT_EQ(at(Collective::point_to_point, kRing), 100 + 800);
  // A chain with 8 pieces: 6 + 8 steps of 100 + 100.
  EXPECT_EQ(time_of(p, Collective::broadcast, kRing, 8000, 8), 14 * 200);
  EXPECT_EQ(at(Collective::all_reduce, kBest), 2 * 100 + 1400);
}

TEST(Collectives, TakeWhatTheLibraryHas) {
  Cluster cluster = cluster_of({{8, 10, 100}});
  cluster.algorithms = 0b11; // ring and tree
  const GroupPlacement p = whole(cluster);
  const CollectiveCost small = collective_cost(p, Collective::all_reduce, 80);
  EXPECT_EQ(small.algorithm, kTree);
  EXPECT_EQ(small.time, 600 + 16);
  const CollectiveCost large = collective_cost(p, Collective::all_reduce, 80'000);
  EXPECT_EQ(large.algorithm, kRing);
  EXPECT_EQ(large.time, 1400 + 14'000);
}

TEST(Collectives, RoundUpToNanoseconds) {
  const Cluster cluster = cluster_of({{2, 3, 0.5}});
  EXPECT_EQ(time_of(whole(cluster), Collective::point_to_point, kRing, 10), 4); // 0.5 + 3.33
}

TEST(Collectives, OfOneRankOrNothingTakeNoTime) {
  const Cluster cluster = cluster_of({{8, 10, 100}});
  EXPECT_EQ(
      time_of(place(cluster, std::span<const GroupAxis>{}), Collective::all_reduce, kBest, 1e9), 0);
  EXPECT_EQ(time_of(whole(cluster), Collective::all_reduce, kRing, 0), 0);
  EXPECT_THROW(time_of(whole(cluster), Collective::all_reduce, kRing, -1), InternalError);
}

// 6 ranks are 4 and 2 more. All-reduce: an extra step to hand over all 6,000 bytes and one to get
// them back, 2 x (100 + 600), and between 4 ranks 4 x 100 + 2 x 3/4 x 600. Reduce-scatter: the
// halves of (2, 2, 1, 1) blocks of 1,000 bytes, 4 and then 2 of them, all before and one behind.
TEST(Collectives, OfOtherNumbersThanPowersOfTwoTakeExtraSteps) {
  const Cluster cluster = cluster_of({{6, 10, 100}});
  const GroupPlacement p = whole(cluster);
  EXPECT_EQ(time_of(p, Collective::all_reduce, kHalving, 6000), 2 * 700 + 4 * 100 + 900);
  EXPECT_EQ(time_of(p, Collective::reduce_scatter, kHalving, 6000),
            700 + (100 + 400) + (100 + 200) + (100 + 100));
  EXPECT_EQ(time_of(p, Collective::all_to_all, kHalving, 6000), 3 * 100 + 3 * 100 + 200 + 200);
}

// 4 a node at 100 GB/s and 10 ns; 2 nodes at 10 GB/s and 100 ns; 8,000 bytes.
TEST(Collectives, OverTwoTiersAddTheirPhases) {
  const Cluster cluster = cluster_of({{4, 100, 10}, {2, 10, 100}});
  const GroupPlacement p = whole(cluster);
  ASSERT_EQ(p.count, 2U);
  // Direct inside: 10 + 3/4 x 80 = 70 each way; between the nodes 2,000 bytes: 2 x 100 + 200.
  EXPECT_EQ(time_of(p, Collective::all_reduce, kHierarchical, 8000, 1), 70 + 400 + 70);
  // In two chunks: 40 + 300 + 40, and the longest tier once more.
  EXPECT_EQ(time_of(p, Collective::all_reduce, kHierarchical, 8000, 2), 380 + 300);
  EXPECT_EQ(time_of(p, Collective::all_reduce, kHierarchical, 8000), 540);
  // 100 MB: the tier between nodes takes 2.5 ms, and hides what is inside but for one chunk.
  const CollectiveCost large = collective_cost(p, Collective::all_reduce, 1e8, {kHierarchical, 0});
  EXPECT_EQ(large.chunks, 64);
  EXPECT_NEAR(static_cast<double>(large.time), 2.5e6 + 64 * 200 + 1.5e6 / 64 + 20, 2);
  // Four rings cross both nodes, each over a link of its own: 4 x 10 GB/s. Of its eight links six
  // are inside: 14 steps of 32.5 ns.
  EXPECT_EQ(time_of(p, Collective::all_reduce, kRing, 8000), 455 + 14'000 / 40);
  // 3 peers inside, 4 in the other node, 1,000 bytes each.
  EXPECT_EQ(time_of(p, Collective::all_to_all, kRing, 8000), 3 * (10 + 10) + 4 * (100 + 100));
  EXPECT_EQ(time_of(p, Collective::all_to_all, kDirect, 8000), 100 + 400);
  // Each moves all of its 8,000 bytes but its own part on each tier: 60 + 400.
  EXPECT_EQ(time_of(p, Collective::all_to_all, kHierarchical, 8000, 1), (10 + 60) + (100 + 400));
}

TEST(Collectives, SendWhatTheySayOnEachTier) {
  const Cluster cluster = cluster_of({{4, 100, 10}, {2, 10, 100}});
  const GroupPlacement p = whole(cluster);
  const CollectiveCost nested =
      collective_cost(p, Collective::all_reduce, 8000, {kHierarchical, 4});
  EXPECT_DOUBLE_EQ(nested.bytes[0], 2 * 6000.0);
  EXPECT_DOUBLE_EQ(nested.bytes[1], 2 * 1000.0);
  const CollectiveCost ring = collective_cost(p, Collective::all_reduce, 8000, {kRing, 0});
  EXPECT_DOUBLE_EQ(ring.bytes[0] + ring.bytes[1], 14'000);
  EXPECT_DOUBLE_EQ(ring.bytes[1], 14'000 / 4.0);
  const CollectiveCost all = collective_cost(p, Collective::all_to_all, 8000, {kDirect, 0});
  EXPECT_DOUBLE_EQ(all.bytes[0], 3000);
  EXPECT_DOUBLE_EQ(all.bytes[1], 4000);
}

TEST(Collectives, OnARingGoOnlyRound) {
  const Cluster cluster = cluster_of({{8, 10, 100, TierTopology::ring}});
  const GroupPlacement p = whole(cluster);
  EXPECT_TRUE(does(p, Collective::all_reduce, kRing));
  EXPECT_FALSE(does(p, Collective::all_reduce, kTree));
  EXPECT_FALSE(does(p, Collective::all_reduce, kHalving));
  EXPECT_FALSE(does(p, Collective::all_reduce, kDirect));
  EXPECT_THROW(time_of(p, Collective::all_reduce, kDirect, 1), InfeasibleError);
  // 1,000 bytes to 7 others, 16 links in all: 1,600 ns.
  EXPECT_EQ(time_of(p, Collective::all_to_all, kDirect, 8000), 100 + 1600);
  // Four of the eight are a line: one way only, half of the bandwidth.
  const GroupAxis half{1, 4};
  EXPECT_EQ(time_of(place(cluster, {&half, 1}), Collective::all_gather, kRing, 8000),
            3 * 100 + 6000 / 5);
}

TEST(Collectives, OfFewInAFullyConnectedTierUseTheLinksBetweenThem) {
  const Cluster cluster = cluster_of({{8, 70, 100, TierTopology::fully_connected}});
  const GroupAxis two{1, 2};
  const GroupPlacement p = place(cluster, {&two, 1});
  EXPECT_EQ(time_of(p, Collective::all_reduce, kRing, 8000), 2 * 100 + 800); // 10 GB/s of 70
  EXPECT_EQ(time_of(whole(cluster), Collective::all_gather, kDirect, 8000), 100 + 100);
  EXPECT_EQ(time_of(whole(cluster), Collective::all_gather, kHalving, 8000), 3 * 100 + 700);
}

TEST(Placements, CountTheRanksOfEachTier) {
  const Cluster cluster = cluster_of({{8, 100, 10}, {16, 25, 100, TierTopology::switched, 2}});
  const GroupAxis tensor{1, 4};
  const GroupAxis data{4, 8};
  const GroupAxis pipeline{32, 4};
  const GroupPlacement t = place(cluster, {&tensor, 1});
  ASSERT_EQ(t.count, 1U);
  EXPECT_EQ(t.levels[0].tier, 0U);
  EXPECT_EQ(t.levels[0].fan, 4);
  const GroupPlacement d = place(cluster, {&data, 1}); // two in each of four nodes
  ASSERT_EQ(d.count, 2U);
  EXPECT_EQ(d.levels[0].fan, 2);
  EXPECT_EQ(d.levels[1].fan, 4);
  EXPECT_EQ(d.levels[1].below, 2);
  EXPECT_EQ(d.levels[1].bandwidth, 12.5);
  const GroupPlacement p = place(cluster, {&pipeline, 1});
  ASSERT_EQ(p.count, 1U);
  EXPECT_EQ(p.levels[0].tier, 1U);
  EXPECT_EQ(p.levels[0].fan, 4);
  const std::array both{tensor, data};
  const GroupPlacement b = place(cluster, both);
  EXPECT_EQ(b.ranks, 32);
  EXPECT_EQ(b.levels[0].fan, 8);
  EXPECT_EQ(b.levels[1].fan, 4);
  EXPECT_TRUE(b.is_even());
}

TEST(Placements, OfMeshesAreThoseOfTheirDevices) {
  const Cluster cluster = cluster_of({{2, 1, 1}, {4, 1, 1}, {3, 1, 1}, {2, 1, 1}}); // 48
  for (const std::int64_t stride : {1, 2, 4, 8, 24}) {
    for (std::int64_t count = 1; stride * count <= 48; ++count) {
      const std::int64_t unit = stride * count;
      if (48 % unit != 0 || (unit > 2 && unit % 2 != 0) || (unit > 8 && unit % 8 != 0))
        continue;
      SCOPED_TRACE(testing::Message() << stride << " x " << count);
      std::vector<std::int64_t> devices;
      for (std::int64_t i = 0; i < count; ++i)
        devices.push_back(i * stride);
      const GroupAxis axis{stride, count};
      const GroupPlacement mesh = place(cluster, {&axis, 1});
      const GroupPlacement list = place(cluster, devices);
      EXPECT_EQ(mesh.ranks, list.ranks);
      ASSERT_EQ(mesh.count, list.count);
      for (std::size_t i = 0; i < list.count; ++i) {
        EXPECT_EQ(mesh.levels[i].tier, list.levels[i].tier);
        EXPECT_EQ(mesh.levels[i].fan, list.levels[i].fan);
        EXPECT_EQ(mesh.levels[i].below, list.levels[i].below);
      }
    }
  }
}

TEST(Placements, ThatAreUnevenShareNothing) {
  const Cluster cluster = cluster_of({{4, 100, 0}, {2, 10, 0}});
  const std::array<std::int64_t, 5> devices{0, 1, 2, 3, 4};
  const GroupPlacement p = place(cluster, devices);
  EXPECT_FALSE(p.is_even());
  EXPECT_FALSE(does(p, Collective::all_reduce, kHierarchical));
  EXPECT_EQ(time_of(p, Collective::all_reduce, kRing, 5000), 8 * 1000 / 10);
  EXPECT_THROW(place(cluster, std::array<std::int64_t, 2>{1, 1}), InternalError);
  EXPECT_THROW(place(cluster, std::array<std::int64_t, 2>{1, 8}), InternalError);
  const GroupAxis long_axis{2, 5};
  EXPECT_THROW(place(cluster, {&long_axis, 1}), InternalError);
}

TEST(CollectiveTables, EqualTheirPoints) {
  const Cluster cluster =
      read_cluster(std::string(MONET_SOURCE_DIR) + "/data/cluster/dgx_a100.yaml");
  std::size_t points = 0;
  for (const CollectiveTable::Curve& curve : cluster.tiers[0].table.curves()) {
    const GroupAxis axis{1, curve.ranks};
    const GroupPlacement p = place(cluster, {&axis, 1});
    for (const CollectiveTable::Point& point : curve.points) {
      EXPECT_EQ(time_of(p, curve.collective, kBest, point.bytes),
                static_cast<Nanoseconds>(point.nanoseconds));
      ++points;
    }
  }
  EXPECT_EQ(points, 108U);
  // As published: 1 MiB between 8 takes 92.8 us, 1 GiB 8.19 ms, 1 MiB between 2 44.2 us.
  const GroupPlacement eight = whole(cluster);
  EXPECT_EQ(time_of(eight, Collective::all_reduce, kTable, 1 << 20), 92'790);
  EXPECT_EQ(time_of(eight, Collective::all_reduce, kTable, 1 << 30), 8'193'000);
  EXPECT_EQ(time_of(eight, Collective::reduce_scatter, kTable, 1 << 30), 4'096'500);
  EXPECT_FALSE(does(eight, Collective::all_to_all, kTable));
}

TEST(CollectiveTables, AreStraightBetweenPointsAndBeyond) {
  const CollectiveTable table({{Collective::all_reduce, 2, {{1000, 500}, {3000, 700}}},
                               {Collective::all_reduce, 8, {{1000, 1500}, {3000, 1300}}}});
  const auto at = [&](std::int64_t ranks, double bytes) {
    return table.nanoseconds(Collective::all_reduce, ranks, bytes);
  };
  EXPECT_DOUBLE_EQ(at(2, 2000), 600);
  EXPECT_DOUBLE_EQ(at(2, 6000), 1400);
  EXPECT_DOUBLE_EQ(at(2, 500), 450);
  EXPECT_DOUBLE_EQ(at(8, 500), 1500);  // never more than the first point
  EXPECT_DOUBLE_EQ(at(4, 1000), 1000); // half way between 2 and 8 ranks
  EXPECT_FALSE(table.covers(Collective::all_reduce, 16));
  EXPECT_FALSE(table.covers(Collective::broadcast, 2));
  EXPECT_THROW(table.nanoseconds(Collective::broadcast, 2, 1), InternalError);
}

} // namespace MONET_TEST_FILE
} // namespace monet
