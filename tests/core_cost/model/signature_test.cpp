// Problems that are the same to the model are recognised, and only those.
#include "core_cost/cores.hpp"
#include "core_cost/random_problems.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace monet {
namespace {

using test::Dice;
using test::product;
using test::tpu_like;

std::optional<CoreCost> solve(const CoreProblem& problem, const Core& core) {
  try {
    return core_cost(problem, core);
  } catch (const InfeasibleError&) {
    return {};
  }
}

void expect_same(const CoreCost& a, const CoreCost& b, std::uint64_t seed) {
  const auto context = "seed " + std::to_string(seed);
  EXPECT_EQ(a.parts.total(), b.parts.total()) << context;
  EXPECT_EQ(a.energy().value, b.energy().value) << context;
  EXPECT_EQ(a.resident, b.resident) << context;
  ASSERT_EQ(a.levels.size(), b.levels.size()) << context;
  for (std::size_t l = 0; l < a.levels.size(); ++l)
    EXPECT_EQ(a.levels[l].accesses, b.levels[l].accesses) << context;
  for (std::size_t i = 0; i < a.offchip.size(); ++i) {
    EXPECT_EQ(a.offchip[i].read, b.offchip[i].read) << context;
    EXPECT_EQ(a.offchip[i].write, b.offchip[i].write) << context;
  }
  ASSERT_EQ(a.temporal.order.size(), b.temporal.order.size()) << context;
  for (std::size_t i = 0; i < a.temporal.order.size(); ++i) {
    EXPECT_EQ(a.temporal.order[i].dim, b.temporal.order[i].dim) << context;
    EXPECT_EQ(a.temporal.order[i].size, b.temporal.order[i].size) << context;
  }
}

/// Other names in the same alphabetical order, axes somewhere else.
CoreProblem disguised(CoreProblem problem, Dice& dice) {
  for (LoopDim& dim : problem.dims)
    dim.name = "Q" + dim.name + "x";
  for (ProblemOperand& operand : problem.operands) {
    for (std::size_t a = 0; a < operand.axes.size(); ++a) {
      operand.axes[a].offset += dice.number(-3, 3);
      if (operand.axes[a].terms.size() == 1) {
        operand.axes[a].terms[0].coefficient = dice.number(1, 3);
        if (operand.mode == AccessMode::read)
          operand.extents[a] += dice.number(0, 5);
      }
    }
  }
  return problem;
}

TEST(Signature, EqualOnesHaveEqualAnswers) {
  int feasible = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Dice dice(seed);
    const Core core = test::random_core(dice);
    const CoreProblem problem = test::random_problem(dice);
    if (problem.operands[0].mode == AccessMode::accumulate)
      continue; // those are recognised by name only
    const CoreProblem other = disguised(problem, dice);
    ASSERT_EQ(signature(problem, core, {}), signature(other, core, {})) << "seed " << seed;
    const auto a = solve(problem, core);
    const auto b = solve(other, core);
    ASSERT_EQ(a.has_value(), b.has_value()) << "seed " << seed;
    if (!a)
      continue;
    ++feasible;
    expect_same(*a, *b, seed);
  }
  EXPECT_GT(feasible, 50);
}

// The last digit of a slice of a fractional unrolling depends on it, and a tie on that.
TEST(Signature, KeepsTheOrderOfAxes) {
  const CoreProblem problem = test::product(6, 5, 7);
  CoreProblem turned = problem;
  std::swap(turned.operands[1].axes[0], turned.operands[1].axes[1]);
  std::swap(turned.operands[1].extents[0], turned.operands[1].extents[1]);
  const Core core = test::tpu_like(true);
  EXPECT_NE(signature(problem, core, {}), signature(turned, core, {}));
}

// The order of names decides which of several equally good mappings comes first.
TEST(Signature, KeepsTheOrderOfNames) {
  Core free = tpu_like(true);
  free.dataflow.clear();
  CoreProblem renamed = product(8, 8, 8);
  renamed.dims[0].name = "Z";
  EXPECT_NE(signature(product(8, 8, 8), free, {}), signature(renamed, free, {}));
  renamed.dims[0].name = "A";
  EXPECT_EQ(signature(product(8, 8, 8), free, {}), signature(renamed, free, {}));
}

TEST(Signature, KeepsTheNamesThatAreMentioned) {
  CoreProblem renamed = product(8, 8, 8);
  renamed.dims[0].name = "A"; // was C, which the dataflow unrolls
  EXPECT_NE(signature(product(8, 8, 8), tpu_like(true), {}),
            signature(renamed, tpu_like(true), {}));
  Core free = tpu_like(true);
  free.dataflow.clear();
  CoreCostOptions named;
  named.spatial = {{{"A", 8}}, {}};
  EXPECT_NE(signature(product(8, 8, 8), free, named), signature(renamed, free, named));
}

TEST(Signature, KeepsAllNamesWhereTheirHashesDecide) {
  Core free = tpu_like(true);
  free.dataflow.clear();
  CoreCostOptions generated;
  generated.model = ModelChoices::zigzag_3_8();
  CoreProblem renamed = product(8, 8, 8);
  renamed.dims[0].name = "A"; // still the first
  EXPECT_EQ(signature(product(8, 8, 8), free, {}), signature(renamed, free, {}));
  EXPECT_NE(signature(product(8, 8, 8), free, generated), signature(renamed, free, generated));
}

TEST(Signature, TellsOptionsApart) {
  const CoreProblem problem = product(8, 8, 8);
  const Core core = tpu_like(true);
  std::vector<CoreCostOptions> all(10);
  all[1].objective = Objective::energy;
  all[2].lpf_limit = 7;
  all[3].fixed_dataflow = true;
  all[4].model.port_stalls_add = !all[4].model.port_stalls_add;
  all[5].even_allocation = true;
  all[6].temporal_order = {{"C", 2}};
  all[7].temporal_order = {{"C", {}}};
  all[8].free_unrollings = 5;
  all[9].mixed_unrollings = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NE(signature(problem, core, all[i]), signature(problem, core, all[j]))
          << i << " " << j;
  }
}

TEST(Signature, ScatteringIsAskedForOnlyWhereThereIsSome) {
  CoreCostOptions scatter;
  scatter.input_gradient = InputGradient::scatter;
  const CoreProblem gather = product(8, 8, 8);
  EXPECT_EQ(signature(gather, tpu_like(true), {}), signature(gather, tpu_like(true), scatter));
  const CoreProblem problem = test::convolution(
      {.ox = 4, .oy = 4, .fx = 3, .fy = 3, .stride = 2, .padding = 1, .ix = 8, .iy = 8},
      test::ConvProduct::input_gradient);
  EXPECT_NE(signature(problem, tpu_like(true), {}), signature(problem, tpu_like(true), scatter));
  CoreProblem moved = problem; // other taps meet other elements of dX
  moved.operands[0].axes[2].offset = 0;
  EXPECT_NE(signature(problem, tpu_like(true), {}), signature(moved, tpu_like(true), {}));
}

} // namespace
} // namespace monet
