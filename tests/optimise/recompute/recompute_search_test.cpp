#include "optimise/recompute/recompute_cases.hpp"

#include "monet/optimise/recompute_heuristics.hpp"
#include "monet/optimise/recompute_search.hpp"

// The state is an inner part, but its bookkeeping deserves tests of its own.
#include "optimise/recompute/state.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

TEST(RecomputeState, KeepsCostAndPeakThroughChanges) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RecomputeProblem p = random_recompute_problem(seed, 10);
    RandomStream random(seed);
    RecomputeState state(p, 20);
    for (int i = 0; i < 40; ++i) {
      const auto t = static_cast<std::uint32_t>(1 + random.below(p.ops.size()));
      const auto v = static_cast<std::uint32_t>(random.below(t));
      if (!p.ops[v].repeatable)
        continue;
      if (state.runs_in(v, t))
        state.remove(t, v);
      else
        state.add(t, v);
      const RecomputeOutcome outcome = replay(p, state.plan());
      ASSERT_EQ(state.cost(), outcome.cost) << seed;
      ASSERT_EQ(state.peak_bytes(), outcome.peak_bytes) << seed << ' ' << i;
      RecomputeState fresh(p, 20);
      fresh.assign(state.plan());
      ASSERT_EQ(fresh.overflow(), state.overflow()) << seed;
    }
  }
}

TEST(RecomputeSearch, NeverBelowTheOptimumAndAlmostAlwaysAtIt) {
  int optimal = 0;
  int feasible = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RecomputeProblem p = random_recompute_problem(seed);
    const std::int64_t all = replay(p, store_everything(p)).peak_bytes;
    for (const std::int64_t budget : {all, all * 9 / 10, all * 7 / 10, all / 2}) {
      RecomputeSearchOptions options;
      options.effort = 100'000;
      const RecomputeResult found = search_recompute(p, budget, options, {});
      const std::optional<std::int64_t> optimum = brute_force_cost(p, budget);
      EXPECT_FALSE(found.infeasible && optimum) << seed;
      feasible += optimum ? 1 : 0;
      if (!found.plan)
        continue;
      const RecomputeOutcome outcome = replay(p, *found.plan);
      EXPECT_EQ(outcome.cost, found.outcome.cost);
      EXPECT_LE(outcome.peak_bytes, budget) << seed;
      ASSERT_TRUE(optimum) << seed;
      EXPECT_GE(outcome.cost, *optimum) << seed;
      EXPECT_GE(static_cast<double>(outcome.cost), found.bound);
      optimal += outcome.cost == *optimum ? 1 : 0;
      for (const RecomputeHeuristic heuristic : kRecomputeHeuristics) {
        const HeuristicPlan other = run_heuristic(p, budget, heuristic);
        EXPECT_TRUE(!other.plan || other.outcome.cost >= outcome.cost) << seed;
      }
    }
  }
  EXPECT_GT(feasible, 200);
  EXPECT_GE(optimal, feasible * 98 / 100) << feasible;
}

TEST(RecomputeSearch, TheSameOnOneThreadAndTwo) {
  const RecomputeProblem p = random_recompute_problem(7, 30);
  const std::int64_t budget = replay(p, store_everything(p)).peak_bytes * 6 / 10;
  RecomputeSearchOptions options;
  options.effort = 200'000;
  options.chains = 3;
  SearchControl control;
  const RecomputeResult one = search_recompute(p, budget, options, control);
  control.jobs = 2;
  const RecomputeResult two = search_recompute(p, budget, options, control);
  EXPECT_EQ(one.plan, two.plan);
  EXPECT_EQ(one.outcome.cost, two.outcome.cost);
}

TEST(RecomputeSearch, StoppedAtOnceItHasTheStarts) {
  const RecomputeProblem p = random_recompute_problem(3, 30);
  const std::int64_t all = replay(p, store_everything(p)).peak_bytes;
  const std::atomic<bool> stop = true;
  SearchControl control;
  control.stop = &stop;
  RecomputeSearchOptions options;
  const RecomputeResult found = search_recompute(p, all, options, control);
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(found.method, "store everything");
}

} // namespace
} // namespace monet
