// The order in which changes of a plan are proposed.
#include "optimise/fusion/moves.hpp"
#include "schedule/random_networks.hpp"
#include "schedule/random_systems.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace monet {
namespace {

using testing::Random;

/// The same groups, one of them in other slices.
bool is_sliced_anew(const FusionPlan& plan, const FusionPlan& changed) {
  return changed.stacks == plan.stacks && changed.slices != plan.slices;
}

/// Groups that gain on their own are many more than a brief search has schedules.
TEST(FusionMoves, other_slices_are_proposed_among_groups_that_gain) {
  int sliced = 0;
  int steps = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const TrainingGraph step = testing::random_step(random, {.operators = 16, .training = true});
    const Chip chip = testing::random_chip(random, {.cores = 4});
    CoreCostCache costs;
    const FusionProblem problem{step, chip, costs, {}, {}};
    const FusionEvaluator evaluator(problem);
    const FusionOrder order(step.graph);
    FusionOptions options;
    options.group_evaluations = 200;
    FusionSegments segments(problem, evaluator, options, order);
    const FusionWeights latency{1, 0, 0};
    const FusionWeights dram{0, 0, 1};
    const std::vector<FusionWeights> weights{latency, dram};
    segments.evaluate(weights, {});
    const FusionPlan plan = plan_of(segments.cover(latency));
    if (segments.offers(latency).size() < 20 || plan.stacks.empty())
      continue;
    ++steps;
    FusionMoves moves(problem, options, order, segments, weights);
    std::vector<FusionPlan> batch;
    moves.next(plan, 16, {key_of(plan)}, batch);
    sliced += std::ranges::any_of(batch, [&](const auto& to) { return is_sliced_anew(plan, to); });
  }
  EXPECT_GT(steps, 5);
  EXPECT_EQ(sliced, steps);
}

} // namespace
} // namespace monet
