// Steps image by image: which operators can take turns, the step that one turn is, and the order of
// tiles.
#include "schedule/random_cases.hpp"
#include "schedule/small_steps.hpp"
#include "tiling/shared/turns.hpp"

#include "monet/tiling/tiling.hpp"

#include <gtest/gtest.h>

#include <map>

namespace monet {
namespace {

using testing::Random;
using testing::StepBuilder;

/// x [4, 8] -> a = x w -> b = f(a) -> c = b v, and the update of w by a gradient that sums over
/// images.
struct Trained {
  StepBuilder builder;
  TensorId x, w, v;

  Trained() {
    x = builder.source("x", {4, 8}, TensorKind::input);
    w = builder.source("w", {8, 8});
    v = builder.source("v", {8, 8});
    const TensorId a = builder.product("a", x, w);
    const TensorId b = builder.elementwise("b", {a});
    builder.output(builder.product("c", b, v));
    builder.output(builder.update(w, gradient("dw", x, b)));
  }

  /// dw[c][k] = sum_b x[b][c] * g[b][k]
  TensorId gradient(const std::string& name, TensorId read, TensorId g) {
    const TensorId dw = builder.product(name, read, w, Phase::backward);
    Operator& op = builder.graph().op(*builder.graph().tensor(dw).producer);
    builder.graph().tensor(dw).shape = {8, 8};
    builder.graph().replace_input(*builder.graph().tensor(dw).producer, 1, g);
    op.nest.dims = {{"C", 8}, {"K", 8}, {"B", 4}};
    const auto axis = [](std::uint32_t d) { return AxisExpr{{{d, 1}}}; };
    op.nest.operands = {{dw, AccessMode::write, "O", {axis(0), axis(1)}},
                        {read, AccessMode::read, "I", {axis(2), axis(0)}},
                        {g, AccessMode::read, "W", {axis(2), axis(1)}}};
    return dw;
  }

  const Graph& graph() const { return builder.step().graph; }
};

TEST(Turns, products_take_turns_and_updates_wait) {
  const Trained trained;
  const auto turns = find_turns(trained.builder.step());
  ASSERT_TRUE(turns.has_value());
  EXPECT_EQ(turns->most, 4);
  const std::vector<std::optional<std::uint32_t>> expected{0, 0, 0, 2, std::nullopt};
  EXPECT_EQ(turns->loops, expected);
}

TEST(Turns, one_turn_is_the_step_of_fewer_images) {
  const Trained trained;
  const auto turns = find_turns(trained.builder.step());
  const TrainingGraph one = one_turn(trained.builder.step(), *turns, 2);
  EXPECT_EQ(one.graph.op(OpId(0)).nest.dims[0].size, 2);
  EXPECT_EQ(one.graph.op(OpId(3)).nest.dims[2].size, 2);
  EXPECT_EQ(one.graph.op(OpId(4)).nest, trained.graph().op(OpId(4)).nest);
  EXPECT_EQ(one.graph.tensor(trained.x).shape, (std::vector<std::int64_t>{2, 8}));
  EXPECT_EQ(one.graph.tensor(trained.w).shape, (std::vector<std::int64_t>{8, 8}));
  for (const Operator& op : one.graph.operators()) {
    for (const Access& access : op.nest.operands) {
      const auto& shape = one.graph.tensor(access.tensor).shape;
      EXPECT_EQ(volume(region(access, full_tile(op.nest), shape)),
                element_count(one.graph.tensor(access.tensor)));
    }
  }
}

TEST(Turns, a_sum_over_images_that_the_rest_needs_allows_none) {
  // b = x - mean over images: the mean is complete only after the last image.
  StepBuilder builder;
  const TensorId x = builder.source("x", {4, 8}, TensorKind::input);
  const TensorId mean = builder.elementwise("mean", {x});
  Operator& sum = builder.graph().op(OpId(0));
  builder.graph().tensor(mean).shape = {8};
  sum.nest.operands.front().axes = {AxisExpr{{{1, 1}}}};
  const TensorId b = builder.elementwise("b", {x});
  Operator& less = builder.graph().op(OpId(1));
  less.inputs.push_back(mean);
  builder.graph().tensor(mean).consumers.push_back(OpId(1));
  less.nest.operands.push_back({mean, AccessMode::read, "mean", {AxisExpr{{{1, 1}}}}});
  builder.output(b);
  EXPECT_FALSE(find_turns(builder.step()).has_value());
}

TEST(Turns, nothing_to_do_takes_none) {
  StepBuilder builder;
  builder.output(builder.source("x", {4, 8}, TensorKind::input));
  EXPECT_FALSE(find_turns(builder.step()).has_value());
}

TEST(Turns, what_interleaves_over_all_images_is_cut_in_none) {
  // y[3 n + r][k] = f(x[n][r][k]): rows of one image lie together, those of all with one r do not.
  StepBuilder builder;
  const TensorId x = builder.source("x", {2, 3, 4}, TensorKind::input);
  const TensorId y = builder.elementwise("y", {x});
  builder.graph().tensor(y).shape = {6, 4};
  Operator& op = builder.graph().op(OpId(0));
  op.nest.operands.front().axes = {AxisExpr{{{0, 3}, {1, 1}}}, AxisExpr{{{2, 1}}}};
  builder.output(y);
  const auto turns = find_turns(builder.step());
  ASSERT_TRUE(turns.has_value());
  ASSERT_TRUE(may_slice(one_turn(builder.step(), *turns, 2).graph.op(OpId(0)).nest, 1));
  FusionPlan plan;
  plan.stacks = {{OpId(0)}};
  plan.slices = {StackSlices{{{OpId(0), 1, 3}}}};
  const FusionPlan whole = in_turns(plan, builder.step(), *turns, 2);
  EXPECT_EQ(whole.slices[0]->cuts, (std::vector<StackSlices::Cut>{{OpId(0), 0, 2}}));
  verify(make_tiles(builder.step(), testing::make_chip({}), TilingOptions{}.with(whole)),
         builder.step());
}

/// Operators of the tiles in the order of their ranks.
std::vector<std::uint32_t> order_of(const TileGraph& tiles) {
  std::vector<std::uint32_t> ops(tiles.tiles.size());
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t)
    ops[tiles.rank[t]] = tiles.tiles[t].op.value;
  return ops;
}

TEST(Turns, stacks_take_turns) {
  const Trained trained;
  const TrainingGraph& step = trained.builder.step();
  const Chip chip = testing::make_chip({});
  const auto turns = find_turns(step);
  FusionPlan plan;
  plan.stacks = {{OpId(0), OpId(1)}, {OpId(3), OpId(4)}};
  plan.slices = {StackSlices{{{OpId(1), 0, 1}}}, StackSlices{{{OpId(3), 1, 2}}}};
  const FusionPlan whole = in_turns(plan, step, *turns, 2);
  ASSERT_EQ(whole.stacks.size(), 3U);
  EXPECT_EQ(whole.slices[0]->cuts, (std::vector<StackSlices::Cut>{{OpId(1), 0, 2}}));
  EXPECT_EQ(whole.slices[1]->cuts,
            (std::vector<StackSlices::Cut>{{OpId(3), 2, 2}, {OpId(3), 1, 2}}));
  EXPECT_EQ(whole.stacks[2], (std::vector<OpId>{OpId(2)}));
  const TileGraph tiles = make_tiles(step, chip, TilingOptions{}.with(whole));
  verify(tiles, step);
  // Two images of all but the update, whose two parts follow the sums that they wait for.
  EXPECT_EQ(order_of(tiles), (std::vector<std::uint32_t>{0, 1, 2, 3, 3, 0, 1, 2, 3, 4, 3, 4}));
}

TEST(Turns, random_plans_in_turns_are_plans) {
  int taken = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    testing::NetworkShape shape;
    shape.training = random.chance(50);
    const TrainingGraph step = testing::random_step(random, shape);
    const Chip chip = testing::random_chip(random, {});
    const auto turns = find_turns(step);
    if (!turns)
      continue;
    for (std::int64_t count = 2; count <= turns->most; ++count) {
      if (turns->most % count != 0)
        continue;
      FusionPlan plan{random_stacks(random, step.graph), {}};
      plan.slices.resize(plan.stacks.size());
      const FusionPlan whole = in_turns(plan, step, *turns, count);
      const TileGraph tiles = make_tiles(step, chip, TilingOptions{}.with(whole));
      verify(tiles, step);
      ++taken;
      // No tile of a turn before the last tile of the turn before it.
      std::map<std::int64_t, std::pair<std::uint32_t, std::uint32_t>> ranks; // first and last
      for (std::size_t i = 0; i < step.graph.operators().size(); ++i) {
        const auto loop = turns->loops[i];
        const OperatorTiling& tiling = tiles.operators[i];
        for (std::uint32_t t = tiling.first; loop && t < tiling.last; ++t) {
          const std::int64_t size = step.graph.op(OpId(i)).nest.dims[*loop].size;
          const std::int64_t turn = tiles.ranges(TileId(t))[*loop].begin * count / size;
          auto& own = ranks.try_emplace(turn, tiles.rank[t], tiles.rank[t]).first->second;
          own = {std::min(own.first, tiles.rank[t]), std::max(own.second, tiles.rank[t])};
        }
      }
      for (std::int64_t turn = 1; turn < count; ++turn)
        EXPECT_GT(ranks.at(turn).first, ranks.at(turn - 1).second);
    }
  }
  EXPECT_GT(taken, 100);
}

} // namespace
} // namespace monet
