// Both gradients of a layer as one problem: each product costs what it costs alone, and an operand
// that both read is there for both.
#include "core_cost/cores.hpp"
#include "core_cost/input_gradient/pairs.hpp"
#include "core_cost/input_gradient/separate.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

namespace monet::core_cost_detail {
namespace {

enum Operand : std::uint32_t { kDx, kDw, kDy, kX, kW };

using test::gradient_pair;

struct Alone {
  CoreCost dx;
  CoreCost dw;
};
Alone alone(const CoreProblem& problem, const Core& core, const CoreCostOptions& options = {}) {
  const auto parts = products_of(problem, core);
  return {core_cost(parts.at(0).problem, core, options),
          core_cost(parts.at(1).problem, core, options)};
}

TEST(Apart, AProductIsWhatItsOperatorWouldBe) {
  const auto parts = products_of(gradient_pair(32, 16, 64), test::tpu_like(false));
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].operands, (std::vector<std::size_t>{kDx, kDy, kW}));
  EXPECT_EQ(parts[1].operands, (std::vector<std::size_t>{kDw, kX, kDy}));
  for (const ProductPart& part : parts) {
    EXPECT_TRUE(part.problem.products.empty());
    EXPECT_EQ(part.problem.operands[1].memory, MemoryOperand::I1);
    EXPECT_EQ(part.problem.operands[2].memory, MemoryOperand::I2);
  }
}

TEST(Apart, CostsAddUp) {
  const Core core = test::tpu_like(false);
  for (const bool streamed : {false, true}) {
    CoreProblem problem = gradient_pair(64, 48, 32);
    for (ProblemOperand& operand : problem.operands)
      operand.offchip = streamed;
    const CoreCost both = cost_apart(problem, core, {}, test::solve_alone);
    const auto [dx, dw] = alone(problem, core);
    EXPECT_EQ(both.latency.value, static_cast<std::int64_t>(dx.parts.total() + dw.parts.total()));
    EXPECT_EQ(both.ideal.value, dx.ideal.value + dw.ideal.value);
    EXPECT_EQ(both.macs_executed, 2 * 64 * 48 * 32);
    EXPECT_DOUBLE_EQ(both.energy().value, dx.energy().value + dw.energy().value);
    ASSERT_EQ(both.offchip.size(), 5U);
    EXPECT_EQ(both.offchip[kDy].read.value, dx.offchip[1].read.value + dw.offchip[2].read.value);
    EXPECT_EQ(both.offchip[kDx].write.value, dx.offchip[0].write.value);
    EXPECT_EQ(both.offchip[kDw].write.value, dw.offchip[0].write.value);
    EXPECT_EQ(both.offchip[kX].read.value, dw.offchip[1].read.value);
    EXPECT_EQ(both.offchip[kW].read.value, dx.offchip[2].read.value);
    double levels = 0;
    for (const LevelEnergy& level : both.levels)
      levels += level.energy.value;
    EXPECT_NEAR(levels, both.memory_energy.value, 1e-9 * levels);
  }
}

TEST(Apart, WhatStaysIsThereOnce) {
  const CoreProblem problem = gradient_pair(32, 16, 64);
  const CoreCost cost = core_cost(problem, test::tpu_like(false), {});
  for (std::size_t i = 0; i < problem.operands.size(); ++i) {
    EXPECT_EQ(cost.offchip[i].read.value + cost.offchip[i].write.value, 0) << i;
    EXPECT_GT(cost.resident[i].value, 0) << i;
  }
  EXPECT_EQ(cost.resident[kDy].value, 32 * 64 * 8);
}

TEST(Apart, AProductRunsBesideWhatStaysOfTheOther) {
  Core core = test::tpu_like(false);
  const CoreProblem problem = gradient_pair(32, 16, 64);
  for (Memory& memory : core.memories) { // less than X and dW need beside dX's operands
    if (&memory == core.top(MemoryOperand::I1))
      memory.size.value = 32 * 16 * 8;
  }
  EXPECT_THROW(core_cost(problem, core, {}), InfeasibleError);
}

TEST(Apart, SolutionsAreKeptByProducts) {
  CoreProblem one = gradient_pair(32, 16, 64);
  CoreProblem other = one;
  std::swap(other.products[0], other.products[1]);
  EXPECT_NE(signature(one, test::tpu_like(false), {}), signature(other, test::tpu_like(false), {}));
}

} // namespace
} // namespace monet::core_cost_detail
