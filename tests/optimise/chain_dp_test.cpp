#include "monet/base/rng.hpp"
#include "monet/optimise/chain_dp.hpp"
#include "monet/optimise/recompute_exact.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

std::vector<ChainLayer> uniform(std::size_t layers) {
  return std::vector<ChainLayer>(layers, {1, 2, 1, 0, 1});
}

std::vector<ChainLayer> random_chain(std::uint64_t seed, bool tapes) {
  std::uint64_t counter = 0;
  const auto draw = [&](std::uint64_t below) {
    return static_cast<std::int64_t>(random_bits(seed, counter++) % below);
  };
  std::vector<ChainLayer> layers(2 + static_cast<std::size_t>(draw(5)));
  for (ChainLayer& layer : layers)
    layer = {1 + draw(9), draw(20), 1 + draw(6), tapes ? draw(4) : 0, draw(6)};
  return layers;
}

TEST(SolveChain, ThreeLayersByHand) {
  // All stored: x0, x1, x2 and dx1 at b2; x0, x1, dx1 and dx0 at b1: 4 each.
  const std::vector<ChainLayer> layers = uniform(3);
  EXPECT_EQ(solve_chain(layers, 4, 4).outcome.cost, 9);
  EXPECT_TRUE(solve_chain(layers, 3, 3).infeasible); // b1 alone reads and writes 4
}

TEST(SolveChain, MeetsTheIntegerProgramOnUniformChains) {
  for (std::size_t n = 2; n <= 8; ++n) {
    const std::vector<ChainLayer> layers = uniform(n);
    const RecomputeProblem problem = chain_problem(layers);
    const std::int64_t most = replay(problem, store_everything(problem)).peak_bytes;
    for (std::int64_t budget = peak_bound(problem); budget <= most; ++budget) {
      const RecomputeResult chain = solve_chain(layers, budget, static_cast<std::size_t>(budget));
      RecomputeExactOptions options;
      if (chain.plan)
        options.starts.push_back(*chain.plan);
      const RecomputeResult exact = solve_recompute(problem, budget, {}, options);
      const std::string where = std::to_string(n) + " layers, budget " + std::to_string(budget);
      ASSERT_EQ(chain.plan.has_value(), exact.plan.has_value()) << where;
      if (!chain.plan)
        continue;
      EXPECT_LE(chain.outcome.peak_bytes, budget) << where;
      EXPECT_EQ(chain.outcome.cost, exact.outcome.cost) << where;
    }
  }
}

TEST(SolveChain, PlansHoldAndNeverBeatTheBoundOnRandomChains) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const std::vector<ChainLayer> layers = random_chain(seed, seed % 3 == 0);
    const RecomputeProblem problem = chain_problem(layers);
    const std::int64_t most = replay(problem, store_everything(problem)).peak_bytes;
    const std::int64_t budget = (peak_bound(problem) + most) / 2;
    const RecomputeResult chain = solve_chain(layers, budget, static_cast<std::size_t>(budget));
    const RecomputeBound bound = recompute_bound(problem, budget);
    EXPECT_EQ(solve_chain(layers, most, static_cast<std::size_t>(most)).outcome.cost,
              problem.base_cost())
        << seed;
    if (!chain.plan)
      continue;
    EXPECT_FALSE(bound.infeasible) << seed;
    EXPECT_LE(chain.outcome.peak_bytes, budget) << seed;
    EXPECT_GE(static_cast<double>(chain.outcome.cost), bound.cost) << seed;
    // Coarser parts of memory: another plan, still within the budget, no cheaper.
    const RecomputeResult coarse = solve_chain(layers, budget, 5);
    if (coarse.plan) {
      EXPECT_LE(coarse.outcome.peak_bytes, budget) << seed;
      EXPECT_GE(coarse.outcome.cost, chain.outcome.cost) << seed;
    }
  }
}

} // namespace
} // namespace monet
