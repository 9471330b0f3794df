#include "base/shared/rng.hpp"
#include "optimise/shared/chain_dp.hpp"
#include "optimise/shared/recompute_exact.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

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
      options.states = n % 2 == 0 ? 0 : 200'000; // by programs, or state by state
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
    const RecomputeResult exact = solve_recompute(problem, budget);
    EXPECT_EQ(solve_chain(layers, most, static_cast<std::size_t>(most)).outcome.cost,
              problem.base_cost())
        << seed;
    if (!chain.plan)
      continue;
    EXPECT_FALSE(exact.infeasible) << seed;
    EXPECT_LE(chain.outcome.peak_bytes, budget) << seed;
    EXPECT_GE(static_cast<double>(chain.outcome.cost), exact.bound) << seed;
    // Coarser parts of memory: another plan, still within the budget, no cheaper.
    const RecomputeResult coarse = solve_chain(layers, budget, 5);
    if (coarse.plan) {
      EXPECT_LE(coarse.outcome.peak_bytes, budget) << seed;
      EXPECT_GE(coarse.outcome.cost, chain.outcome.cost) << seed;
    }
  }
}

/// The recurrence as it is written, with all amounts of memory and all places to split: cost beyond
/// running everything once. Sizes are in levels.
class WrittenOut {
public:
  static constexpr std::int64_t kNone = std::int64_t{1} << 60;

  WrittenOut(const std::vector<ChainLayer>& layers, std::int64_t most)
      : layers_(layers), n_(layers.size()), levels_(static_cast<std::size_t>(most) + 1),
        costs_(n_ * n_ * levels_, kNone) {
    for (std::size_t t = 0; t < n_; ++t) {
      for (std::size_t s = t + 1; s-- > 0;) {
        for (std::int64_t m = 0; m <= most; ++m)
          costs_[(s * n_ + t) * levels_ + static_cast<std::size_t>(m)] = least(s, t, m);
      }
    }
  }
  std::int64_t cost(std::size_t s, std::size_t t, std::int64_t m) const {
    return m < 0 ? kNone : costs_[(s * n_ + t) * levels_ + static_cast<std::size_t>(m)];
  }

private:
  std::int64_t gradient(std::size_t made) const { // of the input of layer `made`
    return made == 0 || made == n_ ? 0 : layers_[made - 1].gradient_bytes;
  }
  std::int64_t least(std::size_t s, std::size_t t, std::int64_t m) const {
    const ChainLayer& first = layers_[s];
    const std::int64_t kept = first.bytes + first.tape_bytes;
    const std::int64_t waiting = t + 1 == n_ ? 0 : layers_[t].bytes + gradient(t + 1);
    std::int64_t best = kNone;
    if (m >= kept + gradient(s) + gradient(s + 1) && s == t)
      return 0;
    if (m >= std::max(kept + gradient(s) + gradient(s + 1), kept + waiting) && s < t)
      best = cost(s + 1, t, m - kept);
    std::int64_t way = 0;
    std::int64_t need = 0;
    for (std::size_t k = s + 1; k <= t; ++k) {
      const ChainLayer& before = layers_[k - 1];
      need = std::max(need, (k - 1 > s ? layers_[k - 2].bytes : 0) + before.bytes +
                                before.tape_bytes + waiting);
      if (m < need)
        break;
      const std::int64_t again = way + (before.tape_bytes > 0 ? before.forward_cost : 0);
      best = std::min(best, again + cost(k, t, m - before.bytes) + cost(s, k - 1, m));
      way += before.forward_cost;
    }
    return std::min(best, kNone);
  }

  const std::vector<ChainLayer>& layers_;
  std::size_t n_, levels_;
  std::vector<std::int64_t> costs_;
};

TEST(SolveChain, IsTheRecurrenceOnRandomChains) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::uint64_t counter = std::uint64_t{1} << 32;
    const auto draw = [&](std::uint64_t below) {
      return static_cast<std::int64_t>(random_bits(seed, counter++) % below);
    };
    // Costs of all widths: narrow ones, ones that go beyond them on the way, and wide ones.
    const std::int64_t unit =
        std::array{std::int64_t{1}, std::int64_t{400'000}, std::int64_t{1} << 35}[seed % 3];
    const auto size = static_cast<std::uint64_t>(2 + draw(12));
    std::vector<ChainLayer> layers(2 + static_cast<std::size_t>(draw(30)));
    for (ChainLayer& layer : layers)
      layer = {unit * draw(10), draw(20), draw(size), seed % 2 == 0 ? draw(4) : 0, draw(size)};
    const RecomputeProblem problem = chain_problem(layers);
    const std::int64_t least = peak_bound(problem);
    const std::int64_t most = replay(problem, store_everything(problem)).peak_bytes;
    const std::int64_t budget = std::max<std::int64_t>(1, least + (most - least) * draw(80) / 100);
    const RecomputeResult chain = solve_chain(layers, budget, static_cast<std::size_t>(budget));
    const std::int64_t extra = WrittenOut(layers, budget).cost(0, layers.size() - 1, budget);
    ASSERT_EQ(chain.plan.has_value(), extra < WrittenOut::kNone) << seed;
    if (!chain.plan)
      continue;
    EXPECT_EQ(chain.outcome.cost, problem.base_cost() + extra) << seed;
    EXPECT_LE(chain.outcome.peak_bytes, budget) << seed;
  }
}

TEST(SolveChain, LayersThatTakeNothingAreFree) {
  const std::vector<ChainLayer> layers(20, {3, 4, 0, 0, 0});
  EXPECT_EQ(solve_chain(layers, 0, 500).outcome.cost, 20 * 7);
}

} // namespace
} // namespace monet
