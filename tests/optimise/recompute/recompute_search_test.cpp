#include "optimise/recompute/recompute_cases.hpp"
#include "optimise/shared/recompute_search.hpp"

#include "monet/optimise/log_search.hpp"

// The state is an inner part, but its bookkeeping deserves tests of its own.
#include "optimise/recompute/heuristics/state.hpp"

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

OperatorLog random_log(std::uint64_t seed) {
  OperatorLog log;
  log.problem = random_recompute_problem(seed);
  log.recorded_peak_bytes = replay(log.problem, store_everything(log.problem)).peak_bytes;
  log.released.assign(log.problem.buffers.size(),
                      static_cast<std::uint32_t>(log.problem.ops.size()));
  return log;
}

TEST(LogSearch, EveryBudgetOfASweepHasItsOptimum) {
  int rows = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const OperatorLog log = random_log(seed);
    std::int64_t cost = 0;
    for (const LogRow& row : sweep_log(log, 20, 0, {}, {})) {
      verify(log.problem, row.found);
      ASSERT_TRUE(row.found.plan);
      EXPECT_LE(row.found.outcome.peak_bytes, row.budget);
      EXPECT_EQ(row.found.outcome.cost, brute_force_cost(log.problem, row.budget)) << seed;
      EXPECT_EQ(row.certificate().gap(), 0) << seed;
      EXPECT_GE(row.found.outcome.cost, cost);
      cost = row.found.outcome.cost;
      ++rows;
    }
  }
  EXPECT_GT(rows, 300);
}

TEST(LogSearch, OfHeuristicsTheBestOrTheOneAskedFor) {
  const OperatorLog log = random_log(4);
  const std::int64_t budget = log.recorded_peak_bytes;
  const LogRow best = solve_log(log, budget, {LogMethod::heuristics, {}}, {});
  ASSERT_EQ(best.heuristics.size(), kRecomputeHeuristics.size());
  for (std::size_t i = 0; i < kRecomputeHeuristics.size(); ++i) {
    const RecomputeHeuristic only = kRecomputeHeuristics[i];
    const LogRow row = solve_log(log, budget, {LogMethod::heuristics, only}, {});
    EXPECT_EQ(row.found.plan.has_value(), best.heuristics[i].plan.has_value());
    if (!row.found.plan)
      continue;
    EXPECT_EQ(row.found.method, to_string(only));
    EXPECT_EQ(row.found.outcome.cost, best.heuristics[i].outcome.cost);
    EXPECT_LE(best.found.outcome.cost, row.found.outcome.cost);
  }
}

} // namespace
} // namespace monet
