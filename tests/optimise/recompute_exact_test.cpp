#include "optimise/recompute_cases.hpp"

#include "monet/optimise/recompute_exact.hpp"

#include <gtest/gtest.h>

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

TEST(SolveRecompute, MeetsBruteForceOverAllPlans) {
  int proven = 0;
  int all = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    const RecomputeProblem p = random_recompute_problem(seed);
    for (const std::int64_t budget : budgets(p)) {
      const std::optional<std::int64_t> best = brute_force_cost(p, budget);
      const RecomputeResult found = solve_recompute(p, budget);
      const std::string where =
          "seed " + std::to_string(seed) + " budget " + std::to_string(budget);
      ASSERT_EQ(recompute_bound(p, budget).infeasible && best, false) << where;
      ++all;
      if (!best) {
        EXPECT_FALSE(found.plan) << where;
        proven += found.infeasible ? 1 : 0;
        continue;
      }
      ASSERT_FALSE(found.infeasible) << where;
      ASSERT_LE(found.bound, static_cast<double>(*best)) << where;
      ASSERT_LE(recompute_bound(p, budget).cost, static_cast<double>(*best)) << where;
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

} // namespace
} // namespace monet
