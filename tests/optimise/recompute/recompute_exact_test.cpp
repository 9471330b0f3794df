#include "base/shared/rng.hpp"
#include "optimise/recompute/exact/state_search.hpp"
#include "optimise/recompute/recompute_cases.hpp"
#include "optimise/shared/chain_dp.hpp"
#include "optimise/shared/recompute_exact.hpp"
#include "optimise/shared/window_bound.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace monet {
namespace {

/// Every budget at which something may change, a few of them.
std::vector<std::int64_t> budgets(const RecomputeProblem& p) {
  const std::int64_t most = replay(p, store_everything(p)).peak_bytes;
  const std::int64_t least = peak_bound(p);
  std::vector<std::int64_t> list;
  for (std::int64_t b = least - 1; b <= most; b += std::max<std::int64_t>(1, (most - least) / 4))
    list.push_back(b);
  return list;
}

/// What is small is not solved state by state.
RecomputeExactOptions programs() {
  RecomputeExactOptions options;
  options.states = 0;
  return options;
}

TEST(SearchStates, MeetsBruteForce) {
  int given_up = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const RecomputeProblem p = random_recompute_problem(seed, 9);
    for (const std::int64_t budget : budgets(p)) {
      const std::string where =
          "seed " + std::to_string(seed) + " budget " + std::to_string(budget);
      const std::optional<std::int64_t> best = brute_force_cost(p, budget);
      const WindowBound windows = window_bound(p, budget, {});
      StateSearchOptions options;
      if (!windows.infeasible && seed % 2 == 0)
        options.later = windows.later;
      const StateSearch found = search_states(p, budget, {}, options);
      ASSERT_TRUE(found.complete) << where;
      ASSERT_EQ(found.plan.has_value(), best.has_value()) << where;
      options.states = 20;
      const StateSearch few = search_states(p, budget, {}, options);
      given_up += few.complete ? 0 : 1;
      if (!best)
        continue;
      const RecomputeOutcome outcome = replay(p, *found.plan);
      ASSERT_EQ(outcome.cost, *best) << where;
      ASSERT_LE(outcome.peak_bytes, budget) << where;
      if (few.complete) {
        ASSERT_EQ(few.plan, found.plan) << where;
      }
      options.states = 100'000;
      options.below = *best - p.base_cost();
      const StateSearch none = search_states(p, budget, {}, options);
      ASSERT_TRUE(none.complete && !none.plan) << where;
    }
  }
  EXPECT_GT(given_up, 100);
}

TEST(SolveRecompute, MeetsBruteForceOverAllPlans) {
  int proven = 0;
  int all = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    const RecomputeProblem p = random_recompute_problem(seed);
    for (const std::int64_t budget : budgets(p)) {
      const std::optional<std::int64_t> best = brute_force_cost(p, budget);
      const RecomputeResult found = solve_recompute(p, budget, {}, programs());
      const std::string where =
          "seed " + std::to_string(seed) + " budget " + std::to_string(budget);
      ++all;
      if (!best) {
        EXPECT_FALSE(found.plan) << where;
        proven += found.infeasible ? 1 : 0;
        continue;
      }
      ASSERT_FALSE(found.infeasible) << where;
      ASSERT_LE(found.bound, static_cast<double>(*best)) << where;
      if (!found.plan)
        continue;
      const RecomputeOutcome outcome = replay(p, *found.plan);
      EXPECT_EQ(outcome.cost, found.outcome.cost) << where;
      EXPECT_LE(outcome.peak_bytes, budget) << where;
      EXPECT_GE(outcome.cost, *best) << where;
      proven += static_cast<double>(outcome.cost) == found.bound ? 1 : 0;
    }
  }
  EXPECT_GE(proven * 100, all * 95); // the order of runs within a stage is not modelled
}

TEST(SolveRecompute, MeetsBruteForceOnShortChains) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    std::uint64_t counter = 0;
    const auto draw = [&](std::uint64_t below) {
      return static_cast<std::int64_t>(random_bits(seed, counter++) % below);
    };
    std::vector<ChainLayer> layers(2 + static_cast<std::size_t>(draw(3)));
    for (ChainLayer& layer : layers) {
      const std::int64_t size = 1 + (seed % 2 == 0 ? 0 : draw(3));
      layer = {1 + draw(4), 1, size, draw(4) / 3, seed % 4 == 3 ? draw(3) : size};
    }
    const RecomputeProblem p = chain_problem(layers);
    for (const std::int64_t budget : budgets(p)) {
      const std::optional<std::int64_t> best = brute_force_cost(p, budget);
      const RecomputeResult found = solve_recompute(p, budget, {}, programs());
      const std::string where =
          "seed " + std::to_string(seed) + " budget " + std::to_string(budget);
      ASSERT_EQ(found.infeasible && best, false) << where;
      if (!best)
        continue;
      ASSERT_LE(found.bound, static_cast<double>(*best)) << where;
      if (found.plan) {
        ASSERT_GE(found.outcome.cost, *best) << where;
      }
    }
  }
}

TEST(SolveRecompute, KeepsTheOptimumThatPreprocessingCutsOff) {
  const RecomputeProblem p = random_recompute_problem(1235);
  const RecomputeResult found = solve_recompute(p, 17, {}, programs());
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(found.outcome.cost, 51);
  EXPECT_EQ(found.bound, 51);
}

TEST(SolveRecompute, StopsWithAValidBound) {
  std::atomic<bool> stop = true;
  SearchControl control;
  control.stop = &stop;
  const RecomputeProblem p = chain_problem(std::vector<ChainLayer>(12, {5, 7, 3, 0, 3}));
  const RecomputeResult best = solve_recompute(p, 20, {}, programs());
  const RecomputeResult found = solve_recompute(p, 20, control, programs());
  ASSERT_TRUE(best.plan);
  EXPECT_TRUE(found.interrupted);
  EXPECT_FALSE(found.infeasible);
  EXPECT_LE(found.bound, static_cast<double>(best.outcome.cost));
}

TEST(SolveRecompute, ProvesAChainOfSixteenLayers) {
  const std::vector<ChainLayer> layers(16, {1, 1, 1, 0, 1});
  const RecomputeProblem p = chain_problem(layers);
  for (const std::int64_t budget : {5, 6, 7, 9, 13}) {
    RecomputeExactOptions options = budget < 9 ? RecomputeExactOptions{} : programs();
    const RecomputeResult chain = solve_chain(layers, budget, static_cast<std::size_t>(budget));
    ASSERT_TRUE(chain.plan) << budget;
    options.starts = {*chain.plan};
    const RecomputeResult found = solve_recompute(p, budget, {}, options);
    ASSERT_TRUE(found.plan) << budget;
    EXPECT_EQ(found.bound, static_cast<double>(found.outcome.cost)) << budget;
    SearchControl two;
    two.jobs = 2;
    EXPECT_EQ(solve_recompute(p, budget, two, options).plan, found.plan) << budget;
  }
}

} // namespace
} // namespace monet
