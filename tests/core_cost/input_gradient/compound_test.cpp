// Attention and its gradient: several products over the same loops, with more operands than an
// array knows.
#include "core_cost/cores.hpp"
#include "core_cost/input_gradient/separate.hpp"

#include <gtest/gtest.h>

namespace monet::core_cost_detail {
namespace MONET_TEST_FILE {

enum Loop : std::uint32_t { kHead, kRow, kColumn, kInner };

ProblemOperand operand(const CoreProblem& problem, AccessMode mode, MemoryOperand memory,
                       std::initializer_list<std::uint32_t> loops) {
  ProblemOperand made;
  made.mode = mode;
  made.memory = memory;
  made.bits = made.partial_bits = 8;
  for (const std::uint32_t loop : loops) {
    made.axes.push_back({{{loop, 1}}, 0, false});
    made.extents.push_back(problem.dims[loop].size);
  }
  return made;
}

CoreProblem attention(std::int64_t products) {
  using enum MemoryOperand;
  constexpr AccessMode in = AccessMode::read, out = AccessMode::write;
  CoreProblem problem;
  problem.dims = {{"H", 2}, {"D", 32}, {"C", 64}, {"K", 16}};
  problem.products.resize(static_cast<std::size_t>(products)); // of scores, among others
  const bool backward = products == 5;
  const auto add = [&](AccessMode mode, MemoryOperand memory,
                       std::initializer_list<std::uint32_t> loops) {
    problem.operands.push_back(operand(problem, mode, memory, loops));
  };
  add(out, O, {kHead, kRow, kInner});
  if (backward) {
    add(out, O, {kHead, kColumn, kInner});
    add(out, O, {kHead, kColumn, kInner});
    add(in, I1, {kHead, kRow, kInner}); // dO
  } else {
    add(out, O, {kHead, kRow});
  }
  add(in, I1, {kHead, kRow, kInner});    // Q
  add(in, I2, {kHead, kColumn, kInner}); // K
  add(in, I2, {kHead, kColumn, kInner}); // V
  if (backward) {
    add(in, I2, {kHead, kRow, kInner}); // O
    add(in, I2, {kHead, kRow});         // logarithms
  }
  return problem;
}

TEST(Compound, OperandsThatTheLoopsTouchAlikeBecomeOne) {
  const CoreProblem forward = attention(2);
  const auto one = find_compound(forward);
  ASSERT_TRUE(one);
  ASSERT_EQ(one->problem.operands.size(), 4U); // O, {K, V}, Q, logarithms
  EXPECT_EQ(one->problem.operands[1].extents, (std::vector<std::int64_t>{2, 64, 16, 2}));
  EXPECT_EQ(one->problem.operands[2].extents, (std::vector<std::int64_t>{2, 32, 16}));
  const CoreProblem backward = attention(5);
  const auto five = find_compound(backward);
  ASSERT_TRUE(five);
  ASSERT_EQ(five->problem.operands.size(), 4U); // dQ, {dK, dV, K, V}, {dO, Q, O}, logarithms
  EXPECT_EQ(five->problem.operands[1].extents, (std::vector<std::int64_t>{2, 64, 16, 4}));
  EXPECT_EQ(five->problem.operands[2].extents, (std::vector<std::int64_t>{2, 32, 16, 3}));
}

TEST(Compound, OneProductIsNone) {
  CoreProblem product = attention(2);
  product.operands.resize(3);
  product.operands.erase(product.operands.begin() + 1);
  product.products.clear();
  EXPECT_FALSE(find_compound(product));
}

TEST(Compound, FewOperandsStayAsTheyAre) {
  CoreProblem problem = attention(2);
  problem.operands.erase(problem.operands.begin() + 1); // no logarithms
  const auto compound = find_compound(problem);
  ASSERT_TRUE(compound);
  EXPECT_EQ(compound->problem.operands, problem.operands);
  ASSERT_EQ(compound->problem.dims.size(), 5U);
  EXPECT_EQ(compound->problem.dims.back().size, 2);
}

TEST(Compound, CostsEveryProductAndMovesEveryOperand) {
  const Core core = test::tpu_like(false);
  for (const std::int64_t products : {2, 5}) {
    CoreProblem problem = attention(products);
    for (ProblemOperand& o : problem.operands)
      o.offchip = true;
    const CoreCost cost = core_cost(problem, core, {});
    EXPECT_EQ(cost.macs_executed, 2 * 32 * 64 * 16 * products);
    EXPECT_GE(cost.latency.value, cost.ideal.value);
    ASSERT_EQ(cost.offchip.size(), problem.operands.size());
    ASSERT_EQ(cost.resident.size(), problem.operands.size());
    for (std::size_t i = 0; i < problem.operands.size(); ++i) {
      std::int64_t bits = problem.operands[i].bits;
      for (const std::int64_t extent : problem.operands[i].extents)
        bits *= extent;
      const bool written = problem.operands[i].mode != AccessMode::read;
      EXPECT_GE((written ? cost.offchip[i].write : cost.offchip[i].read).value, bits) << i;
    }
  }
}

TEST(Compound, WhatStaysIsNotStreamed) {
  const CoreProblem problem = attention(2);
  const CoreCost cost = core_cost(problem, test::tpu_like(false), {});
  for (std::size_t i = 0; i < problem.operands.size(); ++i) {
    EXPECT_EQ(cost.offchip[i].read.value + cost.offchip[i].write.value, 0) << i;
    EXPECT_GT(cost.resident[i].value, 0) << i;
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet::core_cost_detail
