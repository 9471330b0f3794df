#include "schedule/random_networks.hpp"
#include "schedule/small_steps.hpp"

#include "monet/hardware/read_hardware.hpp"
#include "monet/tiling/stacks_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace monet {
namespace MONET_TEST_FILE {

using ::testing::HasSubstr;
using testing::StepBuilder;
using Ids = std::vector<std::vector<OpId>>;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

/// op_a, op_b, op_c in a row.
StepBuilder chain() {
  StepBuilder builder;
  TensorId at = builder.source("x", {8}, TensorKind::input);
  for (const char* name : {"a", "b", "c"})
    at = builder.elementwise(name, {at});
  builder.output(at);
  return builder;
}

Ids resolve(const std::string& text) {
  const StepBuilder builder = chain();
  const Graph& graph = builder.step().graph;
  return resolve_stacks(parse_stacks(text, "s.yaml"), graph, graph).stacks;
}

TEST(StacksFile, names_and_places) {
  EXPECT_EQ(resolve("stacks: [[op_c, op_a], [1]]"), (Ids{{OpId(0), OpId(2)}, {OpId(1)}}));
  EXPECT_EQ(resolve("[[0, 1]]"), (Ids{{OpId(0), OpId(1)}}));
  EXPECT_EQ(resolve("stacks: []"), Ids{});
  EXPECT_EQ(resolve("stacks: [[]]"), Ids{});
}

TEST(StacksFile, says_who_is_unknown_or_named_twice) {
  const std::string message = message_of([] { resolve("stacks:\n- [op_a, op_bb]\n- [0, 3, -1]"); });
  EXPECT_THAT(message, HasSubstr("s.yaml:2:10: there is no operator 'op_bb'"));
  EXPECT_THAT(message, HasSubstr("did you mean 'op_b'?"));
  EXPECT_THAT(message, HasSubstr("s.yaml:3:4: operator 'op_a' is in a stack already"));
  EXPECT_THAT(message, HasSubstr("s.yaml:3:7: there is no node 3: the network has 3, from 0"));
  EXPECT_THAT(message, HasSubstr("there is no node -1"));
}

TEST(StacksFile, NamesIdleCores) {
  const StepBuilder builder = chain();
  const Chip chip = read_chip(MONET_SOURCE_DIR "/data/hardware/tpu_like_quad_core.yaml");
  const auto idle = [&](const std::string& text) {
    return idle_cores_of(parse_stacks(text, "s.yaml"), chip);
  };
  EXPECT_TRUE(idle("stacks: []").empty());
  std::vector<bool> expected(chip.cores.size(), false);
  expected[1] = expected[3] = true;
  EXPECT_EQ(idle("idle_cores: [3, 1]\nstacks: []"), expected);
  FusionPlan plan;
  plan.idle = expected;
  EXPECT_EQ(stacks_yaml(plan, builder.step().graph), "idle_cores: [1, 3]\nstacks: []\n");
  plan.idle.assign(chip.cores.size(), false);
  EXPECT_EQ(stacks_yaml(plan, builder.step().graph), "stacks: []\n");
  const std::string message = message_of([&] { idle("stacks: []\nidle_cores: [0, -1, 6]"); });
  EXPECT_THAT(message, HasSubstr("s.yaml:2:17: there is no compute core -1"));
  EXPECT_THAT(message, HasSubstr("s.yaml:2:21: there is no compute core 6"));
  EXPECT_THAT(message_of([&] { idle("stacks: []\nidle_cores: 1"); }),
              HasSubstr("'idle_cores' must be a list"));
  EXPECT_THAT(message_of([&] { idle("stacks: []\nidle_cores: [pe]"); }), HasSubstr("s.yaml:2:14"));
}

/// Idle cores run nothing that another core may run.
TEST(StacksFile, IdleCoresHaveNoTiles) {
  const Chip chip = read_chip(MONET_SOURCE_DIR "/data/hardware/tpu_like_quad_core.yaml");
  int spread = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    testing::Random random(seed);
    const TrainingGraph step = testing::random_step(random, {.operators = 6});
    FusionPlan plan;
    plan.idle.assign(chip.cores.size(), false);
    const auto is_used = [&](std::uint32_t core) {
      const auto tiles = make_tiles(step, chip, TilingOptions{}.with(plan)).tiles;
      return std::ranges::any_of(tiles, [&](const Tile& tile) { return tile.core.value == core; });
    };
    if (!is_used(0) || !is_used(1)) // two cores that are the same
      continue;
    ++spread;
    plan.idle[0] = true;
    EXPECT_FALSE(is_used(0)) << seed;
    EXPECT_TRUE(is_used(1)) << seed;
  }
  EXPECT_GT(spread, 2);
}

TEST(StacksFile, must_be_lists_of_names) {
  EXPECT_THAT(message_of([] { parse_stacks("stacks: op_a", "s.yaml"); }),
              HasSubstr("'stacks' must be a list"));
  EXPECT_THAT(message_of([] { parse_stacks("stacks: [op_a]", "s.yaml"); }),
              HasSubstr("a stack must be a list"));
  EXPECT_THAT(message_of([] { parse_stacks("stacks: [[[a]]]", "s.yaml"); }),
              HasSubstr("an operator is a node's name"));
  EXPECT_THAT(message_of([] { parse_stacks("stack: []", "s.yaml"); }), HasSubstr("stacks"));
}

TEST(StacksFile, turns_are_read_written_and_checked) {
  const StepBuilder builder = chain();
  const Graph& graph = builder.step().graph;
  const std::string text = "stacks:\n"
                           "  - operators: [op_a]\n"
                           "    slices: [{operator: op_a, loop: B, count: 4}]\n"
                           "    turns: 2\n";
  const FusionPlan plan = resolve_stacks(parse_stacks(text, "s.yaml"), graph, graph);
  EXPECT_EQ(plan.slices.at(0)->turns, 2);
  EXPECT_EQ(resolve_stacks(parse_stacks(stacks_yaml(plan, graph), "t.yaml"), graph, graph), plan);
  EXPECT_THAT(message_of([] { parse_stacks("- {operators: [op_a], turns: 2}", "s.yaml"); }),
              HasSubstr("s.yaml:1:30: 'turns' has no effect without 'slices'"));
  EXPECT_THAT(
      message_of([] { parse_stacks("- {operators: [0], slices: [], turns: 0}", "s.yaml"); }),
      HasSubstr("a stack has 1 to 1024 turns"));
  EXPECT_THAT(
      message_of([&] { resolve(text + "  - {operators: [op_b], slices: [], turns: 3}\n"); }),
      HasSubstr("s.yaml:5:44: 3 turns, but 2 in an earlier stack"));
}

TEST(StacksFile, names_of_other_graphs_are_skipped) {
  // The gradient's name is known to the training graph; inference has no use for it.
  const StepBuilder inference = chain();
  StepBuilder training = chain();
  training.elementwise("g", {TensorId(3)}, Phase::backward);
  const Graph* others[] = {&training.step().graph};
  const StacksFile file = parse_stacks("stacks: [[op_c, op_g]]", "s.yaml");
  EXPECT_EQ(resolve_stacks(file, inference.step().graph, inference.step().graph, others).stacks,
            (Ids{{OpId(2)}}));
  EXPECT_EQ(resolve_stacks(file, training.step().graph, inference.step().graph).stacks,
            (Ids{{OpId(2), OpId(3)}}));
}

TEST(StacksFile, slices_are_read_back_as_written) {
  const StepBuilder builder = chain();
  const Graph& graph = builder.step().graph;
  const std::string loop = graph.op(OpId(1)).nest.dims.at(0).name;
  FusionPlan plan;
  plan.stacks = {{OpId(0), OpId(1)}, {OpId(2)}};
  plan.slices = {StackSlices{{{OpId(1), 0, 4}}, Halo::recomputed}, StackSlices{}};
  const std::string text = stacks_yaml(plan, graph);
  EXPECT_EQ(resolve_stacks(parse_stacks(text, "s.yaml"), graph, graph), plan) << text;
  plan.slices = {std::nullopt, StackSlices{}};
  const std::string partly = stacks_yaml(plan, graph);
  EXPECT_EQ(resolve_stacks(parse_stacks(partly, "s.yaml"), graph, graph), plan) << partly;
}

TEST(StacksFile, slices_must_fit_their_stack) {
  const std::string message = message_of([] {
    resolve("stacks:\n"
            "- {operators: [op_a], slices: [{operator: op_b, loop: N, count: 2}]}\n"
            "- {operators: [op_c], slices: [{operator: op_c, loop: XX, count: 2}]}");
  });
  EXPECT_THAT(message, HasSubstr("s.yaml:2:43: operator 'op_b' is not in this stack"));
  EXPECT_THAT(message, HasSubstr("s.yaml:3:32: operator 'op_c' has no loop 'XX': it has "));
  const auto refused = [](const std::string& rest) {
    return message_of([&] { resolve("stacks: [{operators: [op_a], " + rest + "}]"); });
  };
  EXPECT_THAT(refused("slices: [{operator: op_a, loop: N, count: 0}]"), HasSubstr("at least one"));
  EXPECT_THAT(refused("slices: 3"), HasSubstr("'slices' must be a list"));
  EXPECT_THAT(refused("halo: cached"), HasSubstr("has no effect without 'slices'"));
  EXPECT_THAT(refused("slices: [], halo: warm"), HasSubstr("cached or recomputed"));
  EXPECT_THAT(refused("slice: []"), HasSubstr("slice"));
}

} // namespace MONET_TEST_FILE
} // namespace monet
