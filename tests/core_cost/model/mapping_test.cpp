// The parts of the array model, against brute force.
#include "core_cost/cores.hpp"
#include "core_cost/model/candidate.hpp"
#include "core_cost/order_walk.hpp"
#include "core_cost/search/spatial_choice.hpp"
#include "core_cost/search/temporal_order.hpp"
#include "core_cost/simulated_walk.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace monet::core_cost_detail {
namespace MONET_TEST_FILE {

using test::convolution;
using test::ConvProduct;
using test::prepare;
using test::Prepared;
using test::product;
using test::simulated_fetches;
using test::tpu_like;

RC_GTEST_PROP(DataMovement, EqualsSimulatedFetches, ()) {
  const auto size = [](int low, int high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  test::ConvSizes s{.b = size(1, 2),
                    .k = size(1, 4),
                    .ox = size(1, 4),
                    .oy = size(1, 3),
                    .c = size(1, 4),
                    .fx = size(1, 3),
                    .fy = size(1, 3),
                    .stride = size(1, 2)};
  s.ix = s.stride * s.ox + s.fx;
  s.iy = s.stride * s.oy + s.fy;
  const auto which = *rc::gen::element(ConvProduct::forward, ConvProduct::input_gradient,
                                       ConvProduct::weight_gradient);
  Core core = tpu_like(true);
  core.memories[0].size = {8 * size(1, 16)};
  core.memories[1].size = {16 * size(1, 8)};
  core.memories[2].size = {8 * size(24, 200)};
  const Prepared p = prepare(convolution(s, which), core);
  OrderWalk walk(p.model, temporal_factors(p.spatial.temporal, 6));
  Candidate candidate;
  candidate.size = walk.size();
  for (std::int64_t skip = size(0, 40); skip >= 0 && walk.next(candidate.loops.data()); --skip) {
  }
  RC_PRE(evaluate(p.model, p.hierarchy, p.spatial, candidate));
  for (std::size_t i = 0; i < p.model.operands.size(); ++i) {
    const bool output = p.model.operands[i].output;
    for (std::size_t l = 0; l + 1 < p.hierarchy.levels[i].size(); ++l) {
      const Movement& m =
          candidate.exact[i].levels[l][index_of(output ? Direction::th : Direction::fh)];
      RC_ASSERT(m.amount * m.count ==
                simulated_fetches(p.problem, i, candidate.order(), candidate.allocation.cut[i][l]));
    }
  }
}

RC_GTEST_PROP(MemoryAllocation, EveryLevelHoldsWhatItIsGiven, ()) {
  const auto size = [](int low, int high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  Core core = tpu_like(true);
  core.memories[0].size = {8 * size(1, 32)};
  core.memories[2].size = {size(64, 4096)};
  const Prepared p = prepare(product(size(1, 24), size(1, 24), size(1, 24)), core);
  OrderWalk walk(p.model, temporal_factors(p.spatial.temporal, 6));
  Candidate candidate;
  candidate.size = walk.size();
  std::int64_t feasible = 0;
  while (walk.next(candidate.loops.data())) {
    if (!evaluate(p.model, p.hierarchy, p.spatial, candidate))
      continue;
    ++feasible;
    for (const Node& node : p.hierarchy.nodes) {
      double bits = 0;
      for (const NodeUse& use : node.uses) {
        const OperandMovement& moved = candidate.exact[use.operand];
        bits += static_cast<double>(moved.held_bits[use.level + 1]);
        RC_ASSERT(use.top == (candidate.allocation.cut[use.operand][use.level] == candidate.size) ||
                  !use.top);
      }
      RC_ASSERT(bits <= node.size_bits);
    }
    RC_ASSERT(candidate.latency.stall >= 0);
  }
  RC_ASSERT(feasible > 0);
}

RC_GTEST_PROP(Latency, MoreBandwidthNeverStallsMore, ()) {
  const auto size = [](int low, int high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  const CoreProblem problem = product(size(2, 24), size(2, 24), size(2, 24));
  const Prepared slow = prepare(problem, tpu_like(true));
  Core faster = tpu_like(true);
  for (Memory& memory : faster.memories) {
    for (MemoryPort& port : memory.ports)
      port.bandwidth_max *= size(1, 4);
  }
  const Prepared fast = prepare(problem, faster);
  OrderWalk walk(slow.model, temporal_factors(slow.spatial.temporal, 6));
  Candidate a;
  a.size = walk.size();
  for (std::int64_t skip = size(0, 40); skip >= 0 && walk.next(a.loops.data()); --skip) {
  }
  Candidate b = a;
  RC_PRE(evaluate(slow.model, slow.hierarchy, slow.spatial, a));
  RC_ASSERT(evaluate(fast.model, fast.hierarchy, fast.spatial, b));
  RC_ASSERT(b.latency.stall <= a.latency.stall);
}

std::vector<std::string> all_orders(OrderWalk& walk, const NestModel& model) {
  std::vector<std::string> orders;
  std::vector<Loop> loops(walk.size());
  while (walk.next(loops.data())) {
    std::string text;
    for (const Loop& loop : loops)
      text += model.dims[loop.dim].name + std::to_string(static_cast<int>(loop.size)) + " ";
    orders.push_back(text);
  }
  return orders;
}

// C=4 as 2x2 and K=3: three arrangements of C C K. Williams' walk starts with the descending one.
TEST(TemporalOrder, WalksDistinctOrdersOnce) {
  const NestModel model = make_nest_model(product(4, 1, 3));
  OrderWalk walk(model, temporal_factors({4, 1, 3}, 6));
  EXPECT_EQ(all_orders(walk, model),
            (std::vector<std::string>{"K3 C2 C2 ", "C2 K3 C2 ", "C2 C2 K3 "}));
}

// 768/32 = 24 = 2.2.2.3, 128 = 2^7, 3072/32 = 96 = 2^5.3, down to four factors: C 24, D 128, K 6
// and 16 (the order in which ZigZag merges them).
TEST(TemporalOrder, MergesFactorsOfTheLongestDim) {
  std::multiset<std::pair<std::uint32_t, int>> found;
  for (const Loop& loop : temporal_factors({24, 128, 96}, 4))
    found.insert({loop.dim, static_cast<int>(loop.size)});
  EXPECT_EQ(found,
            (std::multiset<std::pair<std::uint32_t, int>>{{0, 24}, {1, 128}, {2, 6}, {2, 16}}));
}

TEST(TemporalOrder, NothingLeftIsNoLoop) {
  EXPECT_TRUE(temporal_factors({1, 1, 1}, 6).empty());
}

std::vector<std::pair<std::uint32_t, double>> sorted(const std::vector<Loop>& loops) {
  std::vector<std::pair<std::uint32_t, double>> all;
  for (const Loop& loop : loops)
    all.emplace_back(loop.dim, loop.size);
  std::sort(all.begin(), all.end());
  return all;
}

// D 128 as 4 and what is left of it merged beside, K of any size second, C outermost.
TEST(TemporalOrder, KeepsToWhatTheUserWants) {
  const NestModel model = make_nest_model(product(24, 128, 96));
  const std::vector<OrderedLoop> wanted{{"D", 4}, {"K", {}}, {"absent", 3}, {"*", {}}, {"C", {}}};
  const TemporalSpace space = temporal_space(model, {24, 128, 96}, 4, wanted, false);
  EXPECT_EQ(sorted(space.factors),
            (std::vector<std::pair<std::uint32_t, double>>{{0, 24}, {1, 4}, {1, 32}, {2, 96}}));
  ASSERT_EQ(space.inner.size(), 2U);
  ASSERT_EQ(space.outer.size(), 1U);
  EXPECT_TRUE(space.allows({1, 4}, 0));
  EXPECT_FALSE(space.allows({1, 32}, 0));
  EXPECT_TRUE(space.allows({2, 96}, 1));
  EXPECT_FALSE(space.allows({1, 32}, 3));
  EXPECT_TRUE(space.allows({0, 24}, 3));
  // ZigZag drops the star: all places count from inside.
  EXPECT_TRUE(temporal_space(model, {24, 128, 96}, 4, wanted, true).allows({0, 24}, 2));
  EXPECT_THROW(temporal_space(model, {24, 128, 96}, 4, {{"D", 3}}, false), InfeasibleError);
}

// A complete order is one order, whatever the limit on factors.
TEST(TemporalOrder, CompleteOrderIsTheOnlyOne) {
  CoreCostOptions options;
  options.lpf_limit = 3;
  options.fixed_dataflow = true;
  options.temporal_order = {{"D", 8}, {"C", 24}, {"K", 96}, {"D", 16}};
  const CoreCost cost = core_cost(product(768, 128, 3072), tpu_like(true), options);
  ASSERT_EQ(cost.temporal.order.size(), 4U);
  EXPECT_EQ(cost.temporal.order[0].size, 8);
  EXPECT_EQ(cost.temporal.order[1].size, 24);
  EXPECT_EQ(cost.temporal.order[2].size, 96);
  EXPECT_EQ(cost.temporal.order[3].size, 16);
  EXPECT_EQ(cost.effort.visited, 1);
}

// 3x3 windows: 2 outputs of stride 1 touch 4 inputs, of stride 2 touch 5, of stride 4 touch 6 (two
// separate windows).
TEST(Footprint, CountsOverlapAndGaps) {
  for (const auto& [stride, touched] : {std::pair{1, 4}, std::pair{2, 5}, std::pair{4, 6}}) {
    const CoreProblem problem = convolution(
        {.ox = 2, .fx = 3, .stride = stride, .ix = 100, .iy = 100}, ConvProduct::forward);
    const NestModel model = make_nest_model(problem);
    Footprint footprint(model.operands[2]);
    footprint.multiply({3, 2});
    footprint.multiply({6, 3});
    EXPECT_EQ(footprint.elements(), touched);
    EXPECT_DOUBLE_EQ(footprint.overlap(), 6.0 / touched);
  }
}

TEST(Footprint, IsClippedToTheTensor) {
  const CoreProblem problem =
      convolution({.ox = 8, .fx = 3, .padding = 1, .ix = 8, .iy = 8}, ConvProduct::forward);
  const NestModel model = make_nest_model(problem);
  Footprint footprint(model.operands[2]);
  footprint.multiply({3, 8});
  footprint.multiply({6, 3});
  EXPECT_EQ(footprint.elements(), 8); // not 10: the rest is padding
}

// K=1000 on 32 lanes: 32 steps of 31.25 lanes. Most steps are 32 wide, which latency sees (31 in
// ZigZag).
TEST(SpatialMapping, FractionalWhereItDoesNotDivide) {
  const Core core = tpu_like(true);
  const CoreProblem problem = product(64, 4, 1000);
  for (const bool widest : {true, false}) {
    ModelChoices choices;
    choices.widest_step = widest;
    const NestModel model = make_nest_model(problem, choices);
    const Hierarchy hierarchy = make_hierarchy(problem, model, core);
    const ArrayUnrolling unrolling =
        from_dataflow(model, hierarchy, unroll_caps(model, hierarchy), core.dataflow);
    const SpatialModel spatial = make_spatial_model(model, hierarchy, unrolling);
    EXPECT_FALSE(spatial.same);
    EXPECT_DOUBLE_EQ(spatial.exact.loops[0][0].size, 31.25);
    EXPECT_DOUBLE_EQ(spatial.truncated.loops[0][0].size, widest ? 32 : 31);
    EXPECT_EQ(spatial.temporal, (std::vector<std::int64_t>{2, 4, 32}));
  }
}

TEST(SpatialChoice, MixesSmallLoopsOnOneArrayDim) {
  const Core core = tpu_like(true);
  const CoreProblem problem =
      convolution({.k = 32, .ox = 5, .oy = 5, .c = 3, .fx = 3, .fy = 3, .ix = 7, .iy = 7},
                  ConvProduct::forward);
  const NestModel model = make_nest_model(problem);
  const Hierarchy hierarchy = make_hierarchy(problem, model, core);
  const auto best = fill_array(model, hierarchy, unroll_caps(model, hierarchy), 1);
  ASSERT_EQ(best.size(), 1U);
  // 3 x 3 x 3 of 32 lanes is the most that C, FX, FY give; K takes all 32.
  EXPECT_GE(utilisation(model, hierarchy, best[0]), 27.0 / 32);
}

} // namespace MONET_TEST_FILE
} // namespace monet::core_cost_detail
