#include "schedule/hand_tiles.hpp"
#include "schedule/schedule_alone.hpp"
#include "schedule/small_steps.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/schedule/schedule.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

using testing::make_chip;
using testing::StepBuilder;

/// A 3-tap convolution over 8 positions with padding 1: ix = ox + fx - 1.
StepBuilder convolution() {
  StepBuilder builder;
  const TensorId x = builder.source("x", {8}, TensorKind::input);
  const TensorId w = builder.source("w", {3});
  const TensorId out = builder.elementwise("o", {x});
  Operator& op = builder.graph().op(OpId(0));
  op.inputs = {x, w};
  builder.graph().tensor(w).consumers = {OpId(0)};
  op.nest.compute = ComputeKind::mac;
  op.nest.dims = {{"OX", 8}, {"FX", 3}};
  op.nest.operands = {{out, AccessMode::write, "O", {{{{0, 1}}}}},
                      {x, AccessMode::read, "I", {{{{0, 1}, {1, 1}}, -1}}},
                      {w, AccessMode::read, "W", {{{{1, 1}}}}}};
  return builder;
}

constexpr Tile kTile{OpId(0), CoreId(0)};

std::vector<Interval> tile_of(Interval ox) {
  return {ox, {0, 3}};
}

TEST(CoreProblem, tiles_that_differ_in_place_only_are_equal) {
  const StepBuilder builder = convolution();
  const Chip chip = make_chip({});
  const CoreProblem second = core_problem(kTile, tile_of({2, 4}), builder.step(), chip);
  const CoreProblem third = core_problem(kTile, tile_of({4, 6}), builder.step(), chip);
  EXPECT_EQ(second, third);
  // Rows 1 to 4 of x: two outputs and a halo of one on each side, counted from the region's first
  // row.
  EXPECT_EQ(second.operands[1].extents, std::vector<std::int64_t>{4});
  EXPECT_EQ(second.operands[1].axes[0].offset, 0);
  // The first tile lacks a row: it is padding.
  const CoreProblem first = core_problem(kTile, tile_of({0, 2}), builder.step(), chip);
  EXPECT_EQ(first.operands[1].extents, std::vector<std::int64_t>{3});
  EXPECT_EQ(first.operands[1].axes[0].offset, -1);
  EXPECT_NE(first, second);
}

TEST(CoreProblem, links_operands_to_memories) {
  const StepBuilder builder = convolution();
  Chip chip = make_chip({});
  const CoreProblem problem = core_problem(kTile, tile_of({0, 8}), builder.step(), chip);
  EXPECT_EQ(problem.operands[0].memory, MemoryOperand::O);
  EXPECT_EQ(problem.operands[1].memory, MemoryOperand::I1);
  EXPECT_EQ(problem.operands[2].memory, MemoryOperand::I2);
  EXPECT_EQ(problem.operands[0].partial_bits, 32);
  // A core that holds no weights takes them as activations.
  chip.cores[0].memories[0].operands = {MemoryOperand::I1, MemoryOperand::O};
  EXPECT_EQ(core_problem(kTile, tile_of({0, 8}), builder.step(), chip).operands[2].memory,
            MemoryOperand::I1);
}

TEST(CoreProblem, partial_sums_are_as_wide_as_the_step_accumulates) {
  StepBuilder builder = convolution();
  for (const std::size_t t : {0U, 1U, 2U})
    builder.graph().tensor(TensorId(t)).type = ElementType::bf16;
  TrainingGraph step = builder.step();
  const Chip chip = make_chip({});
  EXPECT_EQ(core_problem(kTile, tile_of({0, 8}), step, chip).operands[0].partial_bits, 32);
  step.accumulate = ElementType::bf16;
  EXPECT_EQ(core_problem(kTile, tile_of({0, 8}), step, chip).operands[0].partial_bits, 16);
}

/// tokens [2, 3] -> table [64, 4] -> Tanh, descending on a sparse gradient.
TrainingGraph step_of_rows() {
  TinyNetwork n;
  const TensorId tokens = n.input("tokens", {2, 3}, ElementType::int64);
  const TensorId x = n.op("Gather", {n.parameter("table", {64, 4}), tokens}, {2, 3, 4});
  n.output(n.op("Tanh", {x}, {2, 3, 4}));
  TrainingOptions options;
  options.loss = Mse{};
  options.update.optimizer = Sgd{};
  options.sparse_gradients = {"table"};
  return fold_views(make_training_graph(n.graph, options));
}

TEST(CoreProblem, tables_of_which_rows_are_overwritten_stay_off_chip) {
  const TrainingGraph step = step_of_rows();
  const Chip chip = make_chip({});
  const OpId update(step.graph.operators().size() - 1);
  ASSERT_EQ(step.graph.op(update).op_type, "SparseSgdUpdate");
  const CoreProblem problem =
      core_problem({update, CoreId(0)}, full_tile(step.graph.op(update).nest), step, chip);
  for (const ProblemOperand& operand : problem.operands) {
    const bool table = operand.extents.size() == 2 && operand.extents[0] == 64;
    EXPECT_EQ(operand.offchip, table);
  }
  const TileGraph tiles =
      testing::whole_tiles(step, std::vector<std::size_t>(step.graph.operators().size(), 0));
  CoreCostCache costs;
  const Timeline timeline = testing::schedule_alone(tiles, step, chip, costs);
  verify(timeline, tiles, step, chip);
  std::int64_t written = 0;
  for (const Transfer& transfer : timeline.transfers) {
    if (step.graph.tensor(transfer.tensor).name == "table.updated")
      written += timeline.bits_of(transfer).value;
  }
  EXPECT_EQ(written, 6 * 4 * 32); // six indices, not 64 rows
}

TEST(CoreProblem, streams_the_largest_operands_until_the_rest_fits) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {8, 16}, TensorKind::input); // 4096 bits
  const TensorId w = builder.source("w", {16, 32});                   // 16384 bits
  builder.product("o", x, w);                                         // 8 x 32: 8192 bits
  const std::vector<Interval> tile{{0, 8}, {0, 32}, {0, 16}};
  const auto streamed = [&](std::int64_t bits) {
    const Chip chip = make_chip({.core_bits = bits});
    std::vector<bool> flags;
    for (const ProblemOperand& operand : core_problem(kTile, tile, builder.step(), chip).operands) {
      flags.push_back(operand.offchip);
    }
    return flags; // O, I, W
  };
  EXPECT_EQ(streamed(28672), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(streamed(28671), (std::vector<bool>{false, false, true}));
  // An eighth stays free for the streamed weights: 14043 - 1755 = 12288 = O + I; one bit less and O
  // goes too.
  EXPECT_EQ(streamed(14043), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(streamed(14042), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(streamed(100), (std::vector<bool>{true, true, true}));
}

/// Squares of 8 x 8 have a scale of 8 bits each: 8 of them beside 512 numbers.
TEST(CoreProblem, scales_beside_the_elements_take_room) {
  StepBuilder builder;
  builder.elementwise("o", {builder.source("x", {8, 64}, TensorKind::input)});
  for (std::size_t i = 0; i < builder.graph().tensors().size(); ++i)
    builder.graph().tensor(TensorId(i)).type = *element_type_named("mxfp8_e4m3_8x8");
  const std::int64_t both = 2 * (512 * 8 + 8 * 8);
  const std::vector<Interval> tile{{0, 8}, {0, 64}};
  for (const std::int64_t bits : {both, both - 1}) {
    const CoreProblem problem =
        core_problem(kTile, tile, builder.step(), make_chip({.core_bits = bits}));
    EXPECT_EQ(problem.operands[0].offchip || problem.operands[1].offchip, bits < both);
  }
}

TEST(CoreProblem, other_operands_may_be_streamed_instead) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {8, 16}, TensorKind::input); // 4096 bits
  const TensorId w = builder.source("w", {16, 32});                   // 16384 bits
  builder.product("o", x, w);                                         // 8192 bits
  const std::vector<Interval> tile{{0, 8}, {0, 32}, {0, 16}};
  const auto choices = [&](std::int64_t bits) {
    std::vector<std::string> sets;
    for (const CoreProblem& problem :
         streaming_choices(kTile, tile, builder.step(), make_chip({.core_bits = bits}))) {
      std::string& set = sets.emplace_back();
      for (std::size_t i = 0; i < 3; ++i)
        set += problem.operands[i].offchip ? "OIW"[i] : '-';
    }
    return sets;
  };
  using Sets = std::vector<std::string>;
  EXPECT_EQ(choices(28672), (Sets{"---"}));
  // 7/8 of 27000 are 23625 bits: without O there remain 20480, without I 24576, without W 12288.
  EXPECT_EQ(choices(27000), (Sets{"--W", "O--", "OIW"}));
  // 7/8 of 20000 are 17500 bits: W alone stays, or the two others.
  EXPECT_EQ(choices(20000), (Sets{"--W", "OI-", "OIW"}));
  EXPECT_EQ(choices(100), (Sets{"OIW"}));
}

TEST(OffchipRate, is_shared_by_the_cores_that_stream) {
  Chip chip = make_chip({.cores = 3, .dram_bandwidth = 60});
  const OffchipRate alone = offchip_rate(chip, CoreId(1), {CoreId(1)});
  EXPECT_DOUBLE_EQ(alone.read_bits_per_cycle, 60);
  EXPECT_DOUBLE_EQ(alone.write_bits_per_cycle, 60);
  EXPECT_TRUE(alone.shared);
  // 8 and 16 pJ for a word of 60 bits, and 2 pJ per cycle of the link.
  EXPECT_DOUBLE_EQ(alone.read_pj_per_bit, 10.0 / 60);
  EXPECT_DOUBLE_EQ(alone.write_pj_per_bit, 18.0 / 60);
  const std::vector<CoreId> all{CoreId(0), CoreId(1), CoreId(2)};
  EXPECT_DOUBLE_EQ(offchip_rate(chip, CoreId(1), all).read_bits_per_cycle, 20);
  // The way to the memory is narrower than the port.
  chip.links.back().bandwidth_bits_per_cycle = 30;
  EXPECT_DOUBLE_EQ(offchip_rate(chip, CoreId(1), all).read_bits_per_cycle, 10);
  chip.offchip.reset();
  EXPECT_DOUBLE_EQ(offchip_rate(chip, CoreId(1), all).read_bits_per_cycle, 0);
}

} // namespace
} // namespace monet
