// NSGA-II and what it is made of, against counting and brute force.
#include "base/random_points.hpp"
#include "optimise/shared/nsga2.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>
#include <thread>

namespace monet {
namespace {

using test::random_points;

TEST(Nsga2, RanksFrontsAndPutsViolationsLast) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RandomStream random(seed);
    std::vector<Evaluation> all;
    for (const Objectives& point : random_points(seed, 30, 2 + seed % 3, 5))
      all.push_back({point, random.chance(0.3) ? 1.0 + double(random.below(3)) : 0.0});
    const std::vector<std::uint32_t> rank = front_ranks(all);
    const auto better = [&](std::size_t a, std::size_t b) {
      if (all[a].violation == 0 && all[b].violation == 0)
        return dominates(all[a].objectives, all[b].objectives);
      return all[a].violation < all[b].violation;
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::uint32_t expected = 0; // one more than the worst of those that are better
      for (std::size_t j = 0; j < all.size(); ++j)
        if (better(j, i))
          expected = std::max(expected, rank[j] + 1);
      EXPECT_EQ(rank[i], expected) << seed;
    }
  }
}

GenomeShape mixed_shape() {
  return {{3, 1, 5}, 11};
}

/// Conflicting sums over genes of both kinds, and a constraint on the first bits.
Evaluation mixed(const Genome& genome) {
  constexpr std::size_t kBound = 4;
  double a = 0;
  double b = 0;
  for (const std::uint32_t choice : genome.choices)
    a += choice, b += 4.0 - choice;
  for (std::size_t i = kBound; i < genome.bits.size(); ++i)
    (genome.bits[i] != 0 ? a : b) += static_cast<double>(i + 1);
  const auto set = std::accumulate(genome.bits.begin(), genome.bits.begin() + kBound, 0.0);
  return {{a, b + kBound - set}, std::max(0.0, 2 - set)};
}

Nsga2Problem mixed_problem() {
  Nsga2Problem problem;
  problem.shape = mixed_shape();
  problem.evaluate = mixed;
  return problem;
}

bool same(const Nsga2Result& a, const Nsga2Result& b) {
  const auto equal = [](const std::vector<Individual>& x, const std::vector<Individual>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& p, const auto& q) {
      return p.genome == q.genome && p.evaluation.objectives == q.evaluation.objectives;
    });
  };
  return equal(a.front, b.front) && a.evaluations == b.evaluations && a.reference == b.reference &&
         a.trace.back().hypervolume == b.trace.back().hypervolume;
}

TEST(Nsga2, SameSeedSameFrontWithAnyNumberOfThreads) {
  Nsga2Options options;
  options.population = 30;
  options.generations = 12;
  SearchControl control;
  control.seed = 7;
  const Nsga2Problem problem = mixed_problem();
  const Nsga2Result one = nsga2(problem, options, control);
  for (const int jobs : {2, 4}) {
    control.jobs = jobs;
    EXPECT_TRUE(same(nsga2(problem, options, control), one));
  }
  control.seed = 8;
  EXPECT_FALSE(same(nsga2(problem, options, control), one));
}

TEST(Nsga2, EvaluatesEachGenomeOnceAndItsHypervolumeRises) {
  std::set<Genome> seen;
  Nsga2Problem problem = mixed_problem();
  problem.evaluate = [&](const Genome& genome) {
    EXPECT_TRUE(fits(mixed_shape(), genome));
    EXPECT_TRUE(seen.insert(genome).second);
    return mixed(genome);
  };
  Nsga2Options options;
  options.population = 40;
  options.generations = 30;
  const Nsga2Result result = nsga2(problem, options, {});
  EXPECT_EQ(result.evaluations, seen.size());
  EXPECT_EQ(result.evaluations, 40U * 31U);
  EXPECT_TRUE(result.feasible);
  for (std::size_t g = 1; g < result.trace.size(); ++g)
    EXPECT_GE(result.trace[g].hypervolume, result.trace[g - 1].hypervolume);
  std::vector<Objectives> points;
  for (const Individual& individual : result.front) {
    EXPECT_EQ(individual.evaluation.violation, 0);
    points.push_back(individual.evaluation.objectives);
  }
  EXPECT_EQ(non_dominated(points).size(), points.size());
  EXPECT_EQ(hypervolume(points, result.reference), result.trace.back().hypervolume);
}

TEST(Nsga2, FindsTheWholeFrontOfASmallProblemAndThenStops) {
  Nsga2Problem problem;
  problem.shape = {{3, 2}, 6}; // 384 genomes
  problem.evaluate = mixed;
  Nsga2Options options;
  options.population = 60;
  options.generations = 200;
  const Nsga2Result result = nsga2(problem, options, {});
  EXPECT_TRUE(result.exhausted);
  std::vector<Objectives> all;
  std::set<Genome> genomes;
  RandomStream random(3);
  while (genomes.size() < 384U)
    genomes.insert(random_genome(problem.shape, random));
  for (const Genome& genome : genomes)
    if (const Evaluation value = mixed(genome); value.violation == 0)
      all.push_back(value.objectives);
  std::vector<Objectives> front;
  for (const std::size_t i : non_dominated(all))
    front.push_back(all[i]);
  std::vector<Objectives> found;
  for (const Individual& individual : result.front)
    found.push_back(individual.evaluation.objectives);
  EXPECT_EQ(found, front);
}

TEST(Nsga2, BeginsWithWhatItIsGiven) {
  Nsga2Problem problem = mixed_problem();
  Nsga2Options options;
  options.population = 4;
  options.generations = 0;
  Genome best = first_genome(problem.shape);
  std::fill_n(best.bits.begin(), 4, std::uint8_t{1});
  options.initial = {best, best};
  const Nsga2Result result = nsga2(problem, options, {});
  EXPECT_EQ(result.evaluations, 4U);
  EXPECT_EQ(result.front.front().genome, best); // least of the first objective
}

TEST(Nsga2, WithoutAnythingFeasibleTheLeastViolationIsLeft) {
  Nsga2Problem problem = mixed_problem();
  problem.evaluate = [](const Genome& genome) {
    return Evaluation{{}, 1.0 + std::accumulate(genome.bits.begin(), genome.bits.end(), 0.0)};
  };
  Nsga2Options options;
  options.population = 20;
  const Nsga2Result result = nsga2(problem, options, {});
  EXPECT_FALSE(result.feasible);
  ASSERT_EQ(result.front.size(), 1U);
  EXPECT_EQ(result.front.front().evaluation.violation, 1.0);
}

TEST(Nsga2, InterruptedAtAnyEvaluationItHasAFront) {
  for (int at = 0; at < 200; at += 23)
    for (const int jobs : {1, 2}) {
      std::atomic<bool> stop{at == 0};
      std::atomic<int> count{0};
      Nsga2Problem problem = mixed_problem();
      problem.evaluate = [&](const Genome& genome) {
        const int now = ++count;
        if (now == at)
          stop = true;
        while (now > at && !stop) // the thread that stops the search may be held up
          std::this_thread::yield();
        Evaluation value = mixed(genome);
        value.violation = 0;
        return value;
      };
      SearchControl control;
      control.stop = &stop;
      control.jobs = jobs;
      Nsga2Options options;
      options.population = 30;
      const Nsga2Result result = nsga2(problem, options, control);
      EXPECT_TRUE(result.interrupted);
      EXPECT_FALSE(result.front.empty());
      EXPECT_LE(result.evaluations, static_cast<std::size_t>(std::max(1, at + jobs)));
    }
}

} // namespace
} // namespace monet
