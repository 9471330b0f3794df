// The forms of a scattering problem: what each costs, and which one is taken.
#include "core_cost/cores.hpp"
#include "core_cost/input_gradient/input_gradient.hpp"
#include "core_cost/random_problems.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace monet {
namespace {

using core_cost_detail::decompose;
using core_cost_detail::find_transposed;
using core_cost_detail::priced;
using core_cost_detail::SubConvolution;
using test::convolution;
using test::ConvProduct;
using test::ConvSizes;
using test::tpu_like;

/// dX of a 3x3 convolution with stride 2 and padding 1: dY 8x8, dX 16x16.
CoreProblem strided(std::int64_t k = 32, std::int64_t c = 32) {
  return convolution({.k = k,
                      .ox = 8,
                      .oy = 8,
                      .c = c,
                      .fx = 3,
                      .fy = 3,
                      .stride = 2,
                      .padding = 1,
                      .ix = 16,
                      .iy = 16},
                     ConvProduct::input_gradient);
}

CoreCost cost_of(const CoreProblem& problem, const Core& core, InputGradient form,
                 Objective objective = Objective::latency) {
  CoreCostOptions options;
  options.objective = objective;
  options.input_gradient = form;
  return core_cost(problem, core, options);
}

// 8x8 positions x 9 taps x 32 x 32. With zeros: 16x16 elements x 9 taps.
TEST(InputGradient, CountsTheMacsOfEveryForm) {
  const std::int64_t real = 64 * 9 * 1024;
  const CoreCost scatter = cost_of(strided(), tpu_like(true), InputGradient::scatter);
  const CoreCost parts = cost_of(strided(), tpu_like(true), InputGradient::decomposed);
  const CoreCost zeros = cost_of(strided(), tpu_like(true), InputGradient::zero_inserted);
  EXPECT_EQ(scatter.macs_executed, real);
  EXPECT_EQ(parts.macs_executed, real);
  EXPECT_EQ(zeros.macs_executed, 4 * real);
  EXPECT_DOUBLE_EQ(parts.compute_energy.value, 0.04 * static_cast<double>(real));
  EXPECT_DOUBLE_EQ(zeros.compute_energy.value, 0.16 * static_cast<double>(real));
  EXPECT_EQ(scatter.variant, "scatter");
  EXPECT_EQ(parts.variant, "decomposed");
  EXPECT_EQ(zeros.variant, "zero-inserted");
  EXPECT_GE(zeros.parts.ideal_temporal, 4 * 64 * 9);
  EXPECT_DOUBLE_EQ(parts.parts.ideal_temporal, 64 * 9);
}

TEST(InputGradient, DecomposedIsTheSumOfItsConvolutions) {
  const CoreProblem problem = strided();
  const CoreCost all = cost_of(problem, tpu_like(true), InputGradient::decomposed);
  CoreCost sum;
  std::int64_t accesses = 0;
  for (const SubConvolution& sub : decompose(problem, find_transposed(problem).value())) {
    const CoreCost part = core_cost(sub.problem, tpu_like(true));
    EXPECT_TRUE(part.variant.empty());
    sum.parts.ideal_temporal += part.parts.total();
    sum.memory_energy += part.memory_energy;
    for (const LevelEnergy& level : part.levels)
      accesses += level.accesses[1];
  }
  EXPECT_DOUBLE_EQ(all.parts.total(), sum.parts.ideal_temporal);
  EXPECT_NEAR(all.memory_energy.value, sum.memory_energy.value, 1e-9 * sum.memory_energy.value);
  double by_level = 0;
  std::int64_t all_accesses = 0;
  for (const LevelEnergy& level : all.levels) {
    by_level += level.energy.value;
    all_accesses += level.accesses[1];
  }
  EXPECT_NEAR(by_level, all.memory_energy.value, 1e-9 * by_level);
  EXPECT_EQ(all_accesses, accesses);
  EXPECT_EQ(all.resident[0].value, 32 * 16 * 16 * 8); // dX whole, not a class of it
}

TEST(InputGradient, TheBestFormIsTaken) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    test::Dice dice(seed);
    const std::int64_t taps = dice.number(1, 3);
    ConvSizes s{.k = dice.number(1, 8),
                .ox = dice.number(2, 5),
                .oy = dice.number(1, 3),
                .c = dice.number(1, 8),
                .fx = taps,
                .fy = taps,
                .stride = dice.number(1, 3),
                .padding = taps / 2};
    s.ix = std::max<std::int64_t>(1, s.stride * (s.ox - 1) + taps - 2 * s.padding);
    s.iy = std::max<std::int64_t>(1, s.stride * (s.oy - 1) + taps - 2 * s.padding);
    const CoreProblem problem = convolution(s, ConvProduct::input_gradient);
    if (!find_transposed(problem))
      continue;
    const Core core = tpu_like(dice.chance(50));
    for (const Objective objective : {Objective::latency, Objective::energy, Objective::edp}) {
      const CoreCost best = cost_of(problem, core, InputGradient::best, objective);
      const auto merit_of = [&](const CoreCost& cost) {
        return merit(objective, cost.parts.total(), cost.energy().value);
      };
      bool found = false;
      for (const InputGradient form :
           {InputGradient::scatter, InputGradient::decomposed, InputGradient::zero_inserted}) {
        const CoreCost cost = cost_of(problem, core, form, objective);
        EXPECT_LE(merit_of(best), merit_of(cost)) << "seed " << seed;
        if (!found && merit_of(best) == merit_of(cost)) {
          found = true;
          EXPECT_EQ(best.variant, cost.variant) << "seed " << seed;
        }
      }
      EXPECT_TRUE(found) << "seed " << seed;
    }
  }
}

// With a stride of 1 nothing is decomposed and no zero is inserted: both are the gather.
TEST(InputGradient, WithoutStrideThereIsOneGather) {
  const CoreProblem problem = convolution(
      {.k = 4, .ox = 8, .oy = 8, .c = 4, .fx = 3, .fy = 3, .padding = 1, .ix = 8, .iy = 8},
      ConvProduct::input_gradient);
  const CoreCost a = cost_of(problem, tpu_like(true), InputGradient::decomposed);
  const CoreCost b = cost_of(problem, tpu_like(true), InputGradient::zero_inserted);
  EXPECT_EQ(a.variant, "gather");
  EXPECT_EQ(b.variant, "gather");
  EXPECT_DOUBLE_EQ(a.parts.total(), b.parts.total());
  EXPECT_DOUBLE_EQ(a.energy().value, b.energy().value);
}

// dY is streamed with its zeros left behind: what crosses is 8x8 of 15x15 positions of the expanded
// dY, once each when dX stays whole.
TEST(InputGradient, InsertedZerosDoNotCrossTheChip) {
  CoreProblem problem = strided(4, 4);
  problem.operands[2].offchip = true;
  const CoreCost cost = cost_of(problem, tpu_like(false), InputGradient::zero_inserted);
  EXPECT_EQ(cost.offchip[2].read.value, 4 * 64 * 8);
}

// A dY that stays is expanded first: 15 x 15 - 64 zeros of each of 4 channels, 8 bits each, take 3
// words of the 2048-bit port, at 378.4 pJ.
TEST(InputGradient, ZerosAreWrittenOnce) {
  const CoreProblem problem = strided(4, 4);
  const Core core = tpu_like(false);
  const CoreCost gather =
      core_cost(core_cost_detail::zero_inserted(problem, find_transposed(problem).value()), core);
  const CoreCost cost = cost_of(problem, core, InputGradient::zero_inserted);
  EXPECT_NEAR(cost.energy().value - gather.energy().value, 3 * 378.4, 1e-6);
  EXPECT_DOUBLE_EQ(cost.parts.onload - gather.parts.onload, 3);
  EXPECT_EQ(cost.resident[2].value, 4 * 15 * 15 * 8);
}

// Stride 4 and padding 3: of eight positions of dY the first and the last meet nothing; dX reaches
// elements 1 to 27 of the expanded dY, which begin with three zeros. 27 x 27 - 36 zeros of each of
// 16 channels, 8 bits each, take 44 words.
TEST(InputGradient, ExpandedGradientsMayBeginWithZeros) {
  const CoreProblem problem = convolution({.k = 16,
                                           .ox = 8,
                                           .oy = 8,
                                           .c = 4,
                                           .fx = 3,
                                           .fy = 3,
                                           .stride = 4,
                                           .padding = 3,
                                           .ix = 25,
                                           .iy = 25},
                                          ConvProduct::input_gradient);
  const Core core = tpu_like(false);
  const CoreCost gather =
      core_cost(core_cost_detail::zero_inserted(problem, find_transposed(problem).value()), core);
  const CoreCost cost = cost_of(problem, core, InputGradient::zero_inserted);
  EXPECT_EQ(cost.resident[2].value, 16 * 27 * 27 * 8);
  EXPECT_NEAR(cost.energy().value - gather.energy().value, 44 * 378.4, 1e-6);
}

TEST(InputGradient, WhatMustStayHasToFitWhole) {
  Core core = tpu_like(false);
  core.memories[2].size = {32 * 16 * 16 * 8}; // dX alone
  EXPECT_THROW(cost_of(strided(), core, InputGradient::decomposed), InfeasibleError);
  EXPECT_THROW(cost_of(strided(), core, InputGradient::best), InfeasibleError);
}

// A 1x1 kernel with stride 2 reaches a quarter of dX: off the chip the rest is written as zeros.
TEST(InputGradient, UnreachedElementsAreWritten) {
  CoreProblem problem =
      convolution({.k = 4, .ox = 8, .oy = 8, .c = 4, .stride = 2, .ix = 16, .iy = 16},
                  ConvProduct::input_gradient);
  problem.operands[0].offchip = true;
  for (const InputGradient form :
       {InputGradient::scatter, InputGradient::decomposed, InputGradient::zero_inserted}) {
    EXPECT_GE(cost_of(problem, tpu_like(false), form).offchip[0].write.value, 4 * 256 * 8);
  }
}

// Padding of two and a kernel of one: the first and the last of eight positions of dY along each
// axis meet nothing. A tile brings them all the same.
TEST(InputGradient, WhatMeetsNothingIsReadToo) {
  CoreProblem problem =
      convolution({.k = 4, .ox = 8, .oy = 8, .c = 4, .stride = 2, .padding = 2, .ix = 12, .iy = 12},
                  ConvProduct::input_gradient);
  for (ProblemOperand& operand : problem.operands)
    operand.offchip = operand.mode == AccessMode::read;
  for (const InputGradient form :
       {InputGradient::scatter, InputGradient::decomposed, InputGradient::zero_inserted}) {
    const CoreCost cost = cost_of(problem, tpu_like(false), form);
    EXPECT_GE(cost.offchip[1].read.value, 4 * 4 * 8) << cost.variant;
    EXPECT_GE(cost.offchip[2].read.value, 4 * 64 * 8) << cost.variant;
  }
}

TEST(InputGradient, CacheSolvesEqualFormsOnce) {
  CoreCostCache cache;
  const Core core = tpu_like(true);
  const CoreProblem problem = strided();
  std::vector<std::thread> threads;
  std::vector<const CoreCost*> found(4);
  for (std::size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] { found[i] = &cache.get(problem, core, {}); });
  for (std::thread& thread : threads)
    thread.join();
  const CoreCost direct = core_cost(problem, core);
  for (const CoreCost* cost : found) {
    EXPECT_EQ(cost, found[0]);
    EXPECT_EQ(cost->variant, direct.variant);
    EXPECT_EQ(cost->parts.total(), direct.parts.total());
  }
  EXPECT_EQ(cache.asked(), 4U);
  const std::size_t solved = cache.solved();
  CoreCostOptions scatter;
  scatter.input_gradient = InputGradient::scatter;
  cache.get(problem, core, scatter); // one of the forms that were tried
  EXPECT_EQ(cache.solved(), solved);
}

} // namespace
} // namespace monet
