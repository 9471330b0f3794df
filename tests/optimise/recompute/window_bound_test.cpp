#include "base/shared/rng.hpp"
#include "optimise/recompute/bounds/rerun_cut.hpp"
#include "optimise/recompute/recompute_cases.hpp"
#include "optimise/shared/window_bound.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace monet {
namespace {

TEST(CutNetwork, MeetsAllCutsOfSmallNetworks) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    RandomStream random(seed);
    CutNetwork network;
    const auto nodes = static_cast<std::uint32_t>(2 + random.below(7));
    for (std::uint32_t i = 0; i < nodes; ++i)
      network.add_node();
    struct Edge {
      std::uint32_t from, to;
      std::int64_t capacity;
    };
    std::vector<Edge> edges;
    for (std::uint64_t i = random.below(20); i-- > 0;) {
      const auto from = static_cast<std::uint32_t>(random.below(nodes));
      const auto to = static_cast<std::uint32_t>(random.below(nodes));
      if (from == to)
        continue;
      edges.push_back({from, to, static_cast<std::int64_t>(random.below(9))});
      network.add_edge(from, to, edges.back().capacity);
    }
    const auto cost = [&](auto&& with_source) {
      std::int64_t sum = 0;
      for (const Edge& edge : edges)
        sum += with_source(edge.from) && !with_source(edge.to) ? edge.capacity : 0;
      return sum;
    };
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t side = 0; side < 1U << nodes; ++side)
      if ((side & 1) != 0 && (side >> 1 & 1) == 0) // source 0, sink 1
        least = std::min(least, cost([&](std::uint32_t node) { return (side >> node & 1) != 0; }));
    ASSERT_EQ(network.solve(0, 1), least) << seed;
    EXPECT_EQ(cost([&](std::uint32_t node) { return network.on_source_side(node); }), least);
    ASSERT_EQ(network.solve(0, 1), least) << seed; // nothing is used up
  }
}

/// What making again costs when the wanted buffers that are not in `held` are made from those that
/// are; nullopt when more than the room is held, or something runs again that must not.
std::optional<std::int64_t> cost_of(const RecomputeProblem& p, std::uint32_t wanted,
                                    std::uint32_t held, std::int64_t room) {
  std::int64_t cost = 0;
  std::uint32_t again = 0;
  for (std::uint32_t b = 0; b < p.buffers.size(); ++b)
    room -= (held >> b & 1) != 0 ? p.buffers[b].bytes : 0;
  if (room < 0)
    return std::nullopt;
  for (auto b = static_cast<std::uint32_t>(p.buffers.size()); b-- > 0;) { // readers come later
    if ((wanted >> b & 1) == 0 || (held >> b & 1) != 0 || !p.buffers[b].producer)
      continue;
    const std::uint32_t producer = *p.buffers[b].producer;
    if (!p.ops[producer].repeatable)
      return std::nullopt;
    cost += (again >> producer & 1) != 0 ? 0 : p.ops[producer].cost;
    again |= 1U << producer;
    for (const std::uint32_t read : p.ops[producer].reads)
      wanted |= 1U << read;
  }
  return cost;
}

TEST(RerunCut, BoundsAllChoicesAndGivesOne) {
  int exact = 0;
  int infeasible = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const RecomputeProblem p = random_recompute_problem(seed);
    std::vector<std::uint32_t> wanted;
    std::vector<std::uint8_t> there(p.buffers.size(), 0);
    std::uint32_t mask = 0;
    std::int64_t all = 0;
    for (std::uint32_t b = 0; b < p.buffers.size(); ++b) {
      there[b] = p.buffers[b].producer ? 0 : 1;
      if (there[b] == 0 && random_bits(seed + 7, b) % 2 == 0) {
        wanted.push_back(b);
        mask |= 1U << b;
        all += p.buffers[b].bytes;
      }
    }
    const std::int64_t room = all * static_cast<std::int64_t>(random_bits(seed, 99) % 5) / 4;
    RerunCut cut(p, wanted, there);
    const RerunCut::Answer answer = cut.least(room);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t held = 0; held < 1U << p.buffers.size(); ++held)
      if (const auto cost = cost_of(p, mask, held, room))
        least = std::min(least, *cost);
    infeasible += answer.infeasible ? 1 : 0;
    ASSERT_EQ(answer.infeasible, least == std::numeric_limits<std::int64_t>::max()) << seed;
    if (answer.infeasible)
      continue;
    ASSERT_LE(answer.bound, least) << seed;
    ASSERT_GE(answer.cost, least) << seed;
    std::uint32_t held = 0;
    for (std::uint32_t b = 0; b < answer.held.size(); ++b)
      held |= answer.held[b] != 0 ? 1U << b : 0;
    const auto cost = cost_of(p, mask, held, room);
    ASSERT_TRUE(cost) << seed;
    ASSERT_LE(*cost, answer.cost) << seed;
    exact += answer.bound == least ? 1 : 0;
  }
  EXPECT_GT(infeasible, 20);
  EXPECT_GT(exact, 1000); // where the least is on the hull of all choices
}

TEST(RerunCut, LargeNumbersBoundAsSmallOnesDo) {
  int bounded = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RecomputeProblem small = random_recompute_problem(seed);
    RecomputeProblem large = small; // nanoseconds of a second, bytes of gigabytes
    for (RecomputeProblem::Op& op : large.ops)
      op.cost *= 1'000'000'007;
    for (RecomputeProblem::Buffer& buffer : large.buffers)
      buffer.bytes *= 1'000'000'009;
    large.buffers.front().bytes += 1; // no large common divisor
    large.buffers.push_back({"odd", 1, std::nullopt, false});
    std::vector<std::uint32_t> wanted;
    std::vector<std::uint8_t> there(large.buffers.size(), 0);
    std::int64_t all = 0;
    for (std::uint32_t b = 0; b < large.buffers.size(); ++b) {
      there[b] = large.buffers[b].producer ? 0 : 1;
      if (there[b] == 0) {
        if (large.buffers[b].bytes > 0)
          large.buffers[b].bytes += b % 2; // nor here
        wanted.push_back(b);
        all += large.buffers[b].bytes;
      }
    }
    const RerunCut::Answer answer = RerunCut(large, wanted, there).least(all / 2);
    if (answer.infeasible || answer.cost == 0)
      continue;
    const RerunCut::Answer of_small =
        RerunCut(small, wanted, std::span(there).first(small.buffers.size()))
            .least(all / 2 / 1'000'000'009 + 10);
    // Bounds are rounded up to whole costs, which are smaller here.
    EXPECT_GT(answer.bound, (of_small.bound - 1) * 1'000'000'007) << seed;
    bounded += answer.bound > 0 ? 1 : 0;
  }
  EXPECT_GT(bounded, 100);
}

TEST(WindowBound, NoPlanIsBelowIt) {
  int reached = 0;
  int above_base = 0;
  int infeasible = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const RecomputeProblem p = random_recompute_problem(seed, 9);
    const std::int64_t most = replay(p, store_everything(p)).peak_bytes;
    const std::int64_t min_peak = peak_bound(p);
    for (std::int64_t budget = std::max<std::int64_t>(0, min_peak - 1); budget < most;
         budget += 1 + (most - min_peak) / 4) {
      const auto least = brute_force_cost(p, budget);
      const WindowBound bound = window_bound(p, budget, {}, 1 + seed % 6);
      if (!least) {
        infeasible += bound.infeasible ? 1 : 0;
        continue;
      }
      ASSERT_FALSE(bound.infeasible) << seed << " " << budget;
      ASSERT_LE(bound.cost, *least) << seed << " " << budget;
      reached += bound.cost == *least ? 1 : 0;
      above_base += bound.cost > p.base_cost() ? 1 : 0;
    }
  }
  EXPECT_GT(reached, 500);
  EXPECT_GT(above_base, 500);
  EXPECT_GT(infeasible, 100);
}

} // namespace
} // namespace monet
