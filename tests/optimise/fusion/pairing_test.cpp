// Which products pair their gradients: by brute force over every set of them.
#include "level.hpp"
#include "optimise/shared/pairing.hpp"
#include "schedule/random_systems.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace monet {
namespace {

using testing::Random;

/// Products of different sizes one after another; the first has no gradient of its input.
Graph products_of(Random& random) {
  TinyNetwork n;
  std::int64_t width = random.between(1, 24);
  const std::int64_t rows = random.between(1, 24);
  TensorId x = n.input("x", {rows, width});
  for (int i = 0; i < 4; ++i) {
    const std::int64_t next = random.between(1, 24);
    x = n.op("MatMul", {x, n.parameter(fmt::format("w{}", i), {width, next})}, {rows, next});
    x = n.op("Relu", {x}, {rows, next});
    width = next;
  }
  n.output(x);
  return n.graph;
}

class Pairing {
public:
  explicit Pairing(std::uint64_t seed) : random_(seed), network_(products_of(random_)) {
    chip_ = testing::random_chip(random_, {.cores = 3, .max_bits = 1 << 15});
  }

  TrainingGraph step(const std::vector<std::string>& paired) const {
    TrainingOptions options;
    options.loss = Mse{};
    options.paired_gradients = paired;
    return fold_views(make_training_graph(network_, options));
  }
  double value(const std::vector<std::string>& paired, Objective objective) {
    try {
      const TrainingGraph made = step(paired);
      return choose_step(made, chip_, {}, {StepMode::automatic, objective}, costs_)
          .figures.value(objective);
    } catch (const InfeasibleError&) {
      return std::numeric_limits<double>::infinity();
    }
  }
  PairingResult choose(Objective objective, std::int64_t evaluations, int jobs = 1) {
    PairingOptions options;
    options.objective = objective;
    options.evaluations = evaluations;
    SearchControl control;
    control.jobs = jobs;
    const PairedStepMaker make = [&](const auto& paired) { return step(paired); };
    const std::vector<std::string> products = step({"*"}).paired;
    return choose_pairs({make, products, chip_, {}, costs_}, options, control);
  }

private:
  Random random_;
  Graph network_;
  Chip chip_;
  CoreCostCache costs_;
};

TEST(Pairing, IsNeverWorseThanNoneAndAllAndMostlyTheBestOfAllSets) {
  MONET_FROM_LEVEL(full);
  const int pairings = test::cases(3, 3, 8);
  int none = 0, all = 0, mixed = 0, best_of_all = 0, cases = 0;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(pairings); ++i) {
    const std::uint64_t seed = 21 + (i + 1) % 8; // the first three pair some, all and none
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Pairing pairing(seed);
    const std::vector<std::string> products = pairing.step({"*"}).paired;
    const auto objective = static_cast<Objective>(seed % 3);
    PairingResult found;
    try {
      found = pairing.choose(objective, 1000);
    } catch (const InfeasibleError&) {
      continue;
    }
    ++cases;
    EXPECT_EQ(products.size(), 3U);
    const double value = found.figures.value(objective);
    EXPECT_EQ(pairing.value(found.paired, objective), value);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t set = 0; set < std::size_t{1} << products.size(); ++set) {
      std::vector<std::string> paired;
      for (std::size_t p = 0; p < products.size(); ++p) {
        if ((set >> p & 1U) != 0)
          paired.push_back(products[p]);
      }
      const double other = pairing.value(paired, objective);
      least = std::min(least, other);
      if (paired.empty() || paired == products) {
        EXPECT_LE(value, other);
      }
    }
    best_of_all += value <= least ? 1 : 0;
    none += found.paired.empty() ? 1 : 0;
    all += found.paired == products ? 1 : 0;
    mixed += !found.paired.empty() && found.paired != products ? 1 : 0;
  }
  EXPECT_GT(cases, pairings * 3 / 4);
  EXPECT_GE(best_of_all * 10, cases * 9);
  EXPECT_GT(none, 0); // all of these happen
  EXPECT_GT(all, 0);
  EXPECT_GT(mixed, 0);
}

TEST(Pairing, IsTheSameForAnyNumberOfThreadsAndKeepsToItsEvaluations) {
  const int most = test::cases(1, 3, 3);
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(most); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Pairing one(seed);
    Pairing two(seed);
    try {
      const PairingResult a = one.choose(Objective::latency, 5);
      const PairingResult b = two.choose(Objective::latency, 5, 2);
      EXPECT_EQ(a.paired, b.paired);
      EXPECT_EQ(a.figures, b.figures);
      EXPECT_LE(a.trials.size(), 5U);
    } catch (const InfeasibleError&) {
      EXPECT_THROW(two.choose(Objective::latency, 5, 2), InfeasibleError);
    }
  }
}

TEST(Pairing, WithoutProductsIsTheStepAsItIs) {
  Pairing pairing(1);
  const PairingResult found = pairing.choose(Objective::latency, 1);
  EXPECT_TRUE(found.paired.empty());
  EXPECT_EQ(found.trials.size(), 1U);
}

} // namespace
} // namespace monet
