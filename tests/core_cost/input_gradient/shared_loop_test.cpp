// Both gradients of a layer, part by part of a shared loop: what moves is each operand once.
#include "core_cost/cores.hpp"
#include "core_cost/input_gradient/pairs.hpp"
#include "core_cost/input_gradient/separate.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

namespace monet::core_cost_detail {
namespace {

using test::gradient_pair;

CoreProblem streamed(std::int64_t m, std::int64_t k, std::int64_t n) {
  CoreProblem problem = gradient_pair(m, k, n);
  for (ProblemOperand& operand : problem.operands)
    operand.offchip = true;
  return problem;
}

Core with_memory(std::int64_t bits) {
  Core core = test::tpu_like(false);
  for (Memory& memory : core.memories) {
    if (&memory == core.top(MemoryOperand::I1))
      memory.size.value = bits;
  }
  return core;
}

std::optional<CoreCost> in_parts(const CoreProblem& problem, std::uint32_t dim, const Core& core) {
  return cost_in_parts(problem, dim, core, {}, test::solve_alone);
}

std::int64_t moved(const CoreCost& cost, std::size_t i) {
  return cost.offchip[i].read.value + cost.offchip[i].write.value;
}

/// Whichever loop is cut, into parts that divide it or not.
TEST(SharedLoop, EveryOperandCrossesOnce) {
  for (const std::int64_t m : {96, 100}) {
    const CoreProblem problem = streamed(m, 48, 80);
    const Core core = with_memory(8 * 40000);
    for (std::uint32_t dim = 0; dim < 3; ++dim) {
      const auto cost = in_parts(problem, dim, core);
      ASSERT_TRUE(cost) << dim;
      const std::int64_t elements[]{m * 48, 48 * 80, m * 80, m * 48, 48 * 80};
      for (std::size_t i = 0; i < 5; ++i)
        EXPECT_EQ(moved(*cost, i), 8 * elements[i]) << dim << ' ' << i;
      EXPECT_EQ(cost->macs_executed, 2 * m * 48 * 80);
      std::int64_t resident = 0;
      for (const Bits bits : cost->resident)
        resident += bits.value;
      EXPECT_LE(resident, 8 * 40000) << dim;
      double levels = 0;
      for (const LevelEnergy& level : cost->levels)
        levels += level.energy.value;
      EXPECT_NEAR(levels, cost->memory_energy.value, 1e-9 * levels);
    }
  }
}

/// By hand: rows are cut, dW (32 bits each) and W stay, slices of dX (32), dY and X are there
/// twice.
TEST(SharedLoop, AsManyPartsAsRoomAsksFor) {
  const std::int64_t stays = 16 * 24 * (32 + 8);
  const std::int64_t row = 2 * (16 * 32 + 24 * 8 + 16 * 8);
  const CoreProblem problem = streamed(64, 16, 24);
  const auto parts = [&](std::int64_t bits) {
    const auto cost = in_parts(problem, 0, with_memory(bits));
    return cost ? cost->variant : "";
  };
  EXPECT_EQ(parts(stays + 63 * row), "joint over D in 2");
  EXPECT_EQ(parts(stays + 32 * row), "joint over D in 2");
  EXPECT_EQ(parts(stays + 32 * row - 1), "joint over D in 3");
  EXPECT_EQ(parts(stays + 8 * row), "joint over D in 8");
  EXPECT_EQ(parts(stays + row - 1), "");
}

/// The time of a part is that of both products on what it holds.
TEST(SharedLoop, PartsTakeWhatTheyTakeAlone) {
  const CoreProblem problem = streamed(64, 16, 24);
  const std::int64_t stays = 16 * 24 * (32 + 8);
  const std::int64_t row = 2 * (16 * 32 + 24 * 8 + 16 * 8);
  const auto cost = in_parts(problem, 0, with_memory(stays + 32 * row));
  ASSERT_TRUE(cost);
  const CoreCost part = core_cost(gradient_pair(32, 16, 24), test::tpu_like(false), {});
  EXPECT_EQ(cost->ideal.value, 2 * part.ideal.value);
  EXPECT_DOUBLE_EQ(cost->parts.ideal_temporal, 2 * part.parts.ideal_temporal);
  EXPECT_DOUBLE_EQ(cost->compute_energy.value, 2 * part.compute_energy.value);
}

TEST(SharedLoop, IsNoneWhereNothingPassesOrResultsOverlap) {
  const Core core = test::tpu_like(false);
  EXPECT_FALSE(in_parts(gradient_pair(64, 16, 24), 0, core));
  CoreProblem windows = streamed(64, 16, 24);
  windows.operands[0].axes[0].terms.push_back({2, 1}); // dX is added to by several rows
  windows.operands[0].mode = AccessMode::accumulate;
  EXPECT_FALSE(in_parts(windows, 0, core));
  CoreProblem looked_up = streamed(64, 16, 24);
  looked_up.operands[2].axes[0].data_dependent = true;
  EXPECT_FALSE(in_parts(looked_up, 1, core));
}

/// Never worse than one product after the other.
TEST(SharedLoop, TheBestIsTaken) {
  CoreCostOptions options;
  options.offchip = {.read_bits_per_cycle = 4, .write_bits_per_cycle = 4, .shared = true};
  for (const std::int64_t bits : {8 * 4000, 8 * 16000, 8 * 64000}) {
    const Core core = with_memory(bits);
    const CoreProblem problem = streamed(96, 48, 80);
    const double best = priced(core_cost(problem, core, options), options.offchip).latency;
    const double apart =
        priced(cost_apart(problem, core, options, test::solve_alone), options.offchip).latency;
    EXPECT_LE(best, apart) << bits;
  }
}

} // namespace
} // namespace monet::core_cost_detail
