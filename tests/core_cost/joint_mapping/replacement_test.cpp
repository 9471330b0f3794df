// Static retention against LRU and Belady, and the bounds below all of them.
#include "core_cost/joint_mapping/random_pairs.hpp"
#include "core_cost/joint_mapping/replacement.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

using namespace joint_mapping;

/// Both products in any order of the space.
const Structure& random_structure(RandomStream& random, const std::vector<Structure>& structures) {
  return structures[random.below(structures.size())];
}

Tile random_tile(RandomStream& random, const PairProblem& problem) {
  Tile tile{};
  for (std::size_t d = 0; d < 3; ++d)
    tile[d] = from_to(random, 1, problem.size[d]);
  return tile;
}

// Belady's replacement fetches least often (Belady 1966; Mattson et al. 1970): neither what LRU
// keeps nor what a structure keeps needs fewer.
TEST(JointReplacement, BeladyFetchesNoMoreThanStaticRetentionOrLru) {
  RandomStream random(30);
  int fewer_than_static = 0;
  for (int i = 0; i < 10'000; ++i) {
    const RandomQuestion q = random_question(random, 6);
    const PairProblem p = make_problem(q.pair, q.machine, q.options, false);
    const std::vector<Structure> structures = joint_structures(p);
    const Structure& s = random_structure(random, structures);
    const Tile tile = random_tile(random, p);
    const SimulatedRun held = StaticSimulator(p, s, tile).run();
    const std::vector<TileProduct> order = tile_products(s, parts_of(p, tile));
    const auto room = static_cast<std::size_t>(std::max<std::int64_t>(held.peak_tiles, 3));
    const CachedRun lru = TileCache(p, tile, order, room, Replacement::lru).run();
    const CachedRun belady = TileCache(p, tile, order, room, Replacement::belady).run();
    ASSERT_LE(belady.fetches, held.fetches) << i;
    ASSERT_LE(belady.fetches, lru.fetches) << i;
    fewer_than_static += belady.fetches < held.fetches ? 1 : 0;
  }
  EXPECT_GT(fewer_than_static, 100);
}

// Not only in orders of the space: products of tiles in any sequence whatever.
TEST(JointReplacement, BoundsAreBelowEveryReplacement) {
  RandomStream random(31);
  double nearest = 0;
  int pebbles = 0;
  for (int i = 0; i < 2'000; ++i) {
    RandomQuestion q = random_question(random, 8);
    q.options.im2col = Im2col::expanded;
    q.machine.double_buffered = false;
    const PairProblem p = make_problem(q.pair, q.machine, q.options, false);
    const std::vector<Structure> structures = joint_structures(p);
    const Structure& s = random_structure(random, structures);
    const Tile tile = random.chance(0.7) ? Tile{1, 1, 1} : random_tile(random, p);
    std::vector<TileProduct> order = tile_products(s, parts_of(p, tile));
    if (random.chance(0.3)) {
      for (std::size_t at = order.size() - 1; at > 0; --at)
        std::swap(order[at], order[random.below(at + 1)]);
    }
    const auto tiles = static_cast<std::size_t>(from_to(random, 3, 12));
    const std::int64_t largest =
        std::max({tile[0] * tile[1], tile[1] * tile[2], tile[0] * tile[2]});
    q.machine.buffer_bits = static_cast<std::int64_t>(tiles) * largest *
                            std::max(q.options.element_bits, q.options.partial_bits);
    const BackwardBound bound = backward_bound(q.pair, q.machine, q.options);
    for (const Replacement policy : {Replacement::lru, Replacement::belady}) {
      const CachedRun run = TileCache(p, tile, order, tiles, policy).run();
      ASSERT_LE(bound.dram_bits * kFine, run.moved) << i;
      nearest = std::max(nearest, static_cast<double>(bound.dram_bits * kFine) /
                                      static_cast<double>(run.moved));
    }
    pebbles += bound.pebble_bits > bound.compulsory_bits ? 1 : 0;
  }
  // It says something: it is met where everything fits, and the second of the two bounds counts.
  EXPECT_EQ(nearest, 1);
  EXPECT_GT(pebbles, 100);
}

// The space's own traffic, with and without raw feature maps; and the bound of time.
TEST(JointReplacement, BoundsAreBelowThePlansOfEveryTechnique) {
  RandomStream random(32);
  for (int i = 0; i < 100; ++i) {
    RandomQuestion q = random_question(random, 24);
    q.pair.has_dx = !random.chance(0.2);
    q.pair.repeats = from_to(random, 1, 3);
    q.machine.buffer_bits *= 4;
    q.options.tiles = random.chance(0.5) ? TilePolicy::array : TilePolicy::searched;
    const BackwardBound bound = backward_bound(q.pair, q.machine, q.options);
    std::int64_t joint = 0;
    for (int t = kTechniques - 2; t >= 0; --t) {
      const auto technique = static_cast<Technique>(t);
      try {
        const BackwardCost cost = backward_cost(q.pair, q.machine, technique, q.options);
        ASSERT_LE(bound.dram_bits, cost.traffic.bits()) << i << " " << name_of(technique);
        ASSERT_LE(bound.latency_cycles, cost.latency_cycles) << i << " " << name_of(technique);
        ASSERT_GE(cost.latency_cycles, std::max(cost.compute_cycles, cost.transfer_cycles));
        if (technique == Technique::joint)
          joint = cost.latency_cycles;
        ASSERT_LE(joint, cost.latency_cycles) << i << " " << name_of(technique);
      } catch (const InfeasibleError&) {
        ASSERT_TRUE(technique != Technique::joint || q.options.tiles == TilePolicy::array ||
                    q.machine.buffer_bits < 6 * q.options.partial_bits)
            << i;
      }
    }
  }
}

} // namespace
} // namespace monet::test
