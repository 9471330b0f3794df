#include "optimise/recompute/recompute_cases.hpp"

#include "monet/optimise/recompute_problem.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

/// Operators that write one buffer of 10 bytes each.
RecomputeProblem
of_tens(const std::vector<std::pair<std::int64_t, std::vector<std::uint32_t>>>& ops) {
  RecomputeProblem p;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    p.buffers.push_back({"b" + std::to_string(i), 10, i, i + 1 == ops.size()});
    p.ops.push_back({"op" + std::to_string(i), ops[i].first, 0, true, ops[i].second, {i}});
  }
  verify(p);
  return p;
}

/// `layers` forward and as many backward, which read their layer's input and the gradient.
RecomputeProblem chain(std::uint32_t layers) {
  std::vector<std::pair<std::int64_t, std::vector<std::uint32_t>>> ops = {{1, {}}};
  for (std::uint32_t i = 1; i < layers; ++i)
    ops.push_back({1, {i - 1}});
  for (std::uint32_t i = layers; i-- > 0;)
    ops.push_back({2, {i, static_cast<std::uint32_t>(ops.size()) - 1}});
  ops[layers].second = {layers - 1};
  return of_tens(ops);
}

using Runs = std::vector<std::uint32_t>;

TEST(RecomputeHeuristics, DtrRunsAsByHand) {
  // Before 3 runs, 0 and 1 may go, unused for 6 and for 5 ns: 10 / (10 * 6) against 1 / (10 * 5).
  // Making 1 again fits; before 4, only 0 can go, and 5 reads it.
  const RecomputeProblem p =
      of_tens({{10, {}}, {1, {0}}, {5, {1}}, {2, {2}}, {3, {1, 3}}, {4, {0, 4}}});
  const HeuristicPlan dtr = run_heuristic(p, 30, RecomputeHeuristic::dtr);
  ASSERT_TRUE(dtr.plan) << dtr.why_not;
  EXPECT_EQ(dtr.plan->runs, (Runs{0, 1, 2, 3, 1, 4, 0, 5}));
  EXPECT_EQ(dtr.outcome.cost, 36);
  const HeuristicPlan lru = run_heuristic(p, 30, RecomputeHeuristic::lru);
  ASSERT_TRUE(lru.plan) << lru.why_not;
  EXPECT_EQ(lru.plan->runs, (Runs{0, 1, 2, 3, 4, 0, 5}));
  const HeuristicPlan none = run_heuristic(p, 29, RecomputeHeuristic::dtr);
  EXPECT_FALSE(none.plan);
  EXPECT_NE(none.why_not.find("out of memory at op1"), std::string::npos) << none.why_not;
}

TEST(RecomputeHeuristics, ReleasesOfTheProgramAreFollowed) {
  const RecomputeProblem p = of_tens({{1, {}}, {1, {}}, {1, {1}}, {1, {2}}});
  EXPECT_TRUE(run_heuristic(p, 20, RecomputeHeuristic::largest).plan);
  // 0 is never dropped, so it is evicted for 2: that is no rerun either.
  const Runs released = {4, 2, 3, 4};
  const HeuristicPlan held = run_heuristic(p, 30, RecomputeHeuristic::largest, {}, released);
  ASSERT_TRUE(held.plan);
  EXPECT_EQ(held.outcome.cost, 4);
}

TEST(RecomputeHeuristics, ChenKeepsARootOfAChain) {
  const RecomputeProblem p = chain(16);
  const std::int64_t all = replay(p, store_everything(p)).peak_bytes;
  const HeuristicPlan sqrt = run_heuristic(p, all, RecomputeHeuristic::chen_sqrt);
  ASSERT_TRUE(sqrt.plan);
  EXPECT_LE(sqrt.outcome.cost, p.base_cost() + 16); // a second forward pass at most
  EXPECT_LT(sqrt.outcome.peak_bytes, all * 6 / 10);
  const HeuristicPlan greedy = run_heuristic(p, all, RecomputeHeuristic::chen_greedy);
  ASSERT_TRUE(greedy.plan);
  EXPECT_EQ(greedy.outcome.cost, p.base_cost()); // one segment
  EXPECT_FALSE(run_heuristic(p, 40, RecomputeHeuristic::chen_sqrt).plan);
}

TEST(RecomputeHeuristics, RandomPlansAreValidAndNeverBelowTheOptimum) {
  int plans = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RecomputeProblem p = random_recompute_problem(seed);
    const std::int64_t all = replay(p, store_everything(p)).peak_bytes;
    for (const std::int64_t budget : {all, all * 8 / 10, all * 6 / 10}) {
      const std::optional<std::int64_t> optimum = brute_force_cost(p, budget);
      for (const RecomputeHeuristic heuristic : kRecomputeHeuristics) {
        const HeuristicPlan found = run_heuristic(p, budget, heuristic);
        EXPECT_EQ(found.plan.has_value(), found.why_not.empty());
        if (!found.plan)
          continue;
        ++plans;
        const RecomputeOutcome outcome = replay(p, *found.plan);
        EXPECT_LE(outcome.peak_bytes, budget) << seed << ' ' << to_string(heuristic);
        ASSERT_TRUE(optimum) << seed << ' ' << to_string(heuristic);
        EXPECT_GE(outcome.cost, *optimum) << seed << ' ' << to_string(heuristic);
      }
    }
  }
  EXPECT_GT(plans, 2000);
}

} // namespace
} // namespace monet
