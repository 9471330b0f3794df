// Our NSGA-II and its parts against pagmo's.
#include "optimise/shared/nsga2.hpp"

#include <gtest/gtest.h>
#include <pagmo/algorithm.hpp>
#include <pagmo/algorithms/nsga2.hpp>
#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/utils/hypervolume.hpp>
#include <pagmo/utils/multi_objective.hpp>

#include <algorithm>
#include <cmath>

namespace monet {
namespace {

std::vector<Objectives> random_points(std::uint64_t seed, std::size_t count,
                                      std::size_t objectives) {
  RandomStream random(seed);
  std::vector<Objectives> points(count, Objectives(objectives));
  for (Objectives& point : points)
    for (double& value : point)
      value = random.unit();
  return points;
}

TEST(Pagmo, RanksCrowdingAndHypervolumeAreTheSame) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::size_t objectives = 2 + seed % 3;
    const auto points = random_points(seed, 40, objectives);
    std::vector<Evaluation> evaluations;
    for (const Objectives& point : points)
      evaluations.push_back({point, 0});
    const std::vector<std::uint32_t> rank = front_ranks(evaluations);
    const auto theirs = std::get<3>(pagmo::fast_non_dominated_sorting(points));
    EXPECT_TRUE(std::equal(rank.begin(), rank.end(), theirs.begin(), theirs.end())) << seed;
    std::vector<Objectives> front;
    for (std::size_t i = 0; i < points.size(); ++i)
      if (rank[i] == 0)
        front.push_back(points[i]);
    if (front.size() > 1) {
      const std::vector<double> crowding = crowding_distances(front);
      const std::vector<double> expected = pagmo::crowding_distance(front);
      for (std::size_t i = 0; i < front.size(); ++i)
        EXPECT_TRUE(crowding[i] == expected[i] || std::abs(crowding[i] - expected[i]) < 1e-12);
    }
    const Objectives reference(objectives, 0.9);
    std::vector<Objectives> inside;
    for (const Objectives& point : points)
      if (std::all_of(point.begin(), point.end(), [](double x) { return x < 0.9; }))
        inside.push_back(point);
    EXPECT_NEAR(hypervolume(points, reference), pagmo::hypervolume(inside).compute(reference),
                1e-12);
  }
}

using Bits = std::vector<double>; // as pagmo has them
using Objective = Objectives (*)(const Bits&);

constexpr std::size_t kWidth = 8;

std::vector<double> unit_numbers(const Bits& bits) {
  std::vector<double> x;
  for (std::size_t i = 0; i < bits.size(); i += kWidth) {
    double value = 0;
    for (std::size_t k = i; k < i + kWidth; ++k)
      value = 2 * value + bits[k];
    x.push_back(value / 255);
  }
  return x;
}

Objectives zdt(const Bits& bits, bool waves) {
  const std::vector<double> x = unit_numbers(bits);
  double g = 0;
  for (std::size_t i = 1; i < x.size(); ++i)
    g += x[i];
  g = 1 + 9 * g / static_cast<double>(x.size() - 1);
  const double ratio = x[0] / g;
  return {x[0], g * (1 - std::sqrt(ratio) -
                     (waves ? ratio * std::sin(10 * 3.141592653589793 * x[0]) : 0))};
}

Objectives zdt1(const Bits& bits) {
  return zdt(bits, false);
}
Objectives zdt3(const Bits& bits) {
  return zdt(bits, true);
}

/// Deceptive: the neighbours of each best group of five look worst (Zitzler, Deb, Thiele 2000).
Objectives zdt5(const Bits& bits) {
  const auto ones = [&](std::size_t first, std::size_t count) {
    double sum = 0;
    for (std::size_t i = first; i < first + count; ++i)
      sum += bits[i];
    return sum;
  };
  const double f = 1 + ones(0, 30);
  double g = 0;
  for (std::size_t i = 30; i < bits.size(); i += 5) {
    const double u = ones(i, 5);
    g += u < 5 ? 2 + u : 1;
  }
  return {f, g / f};
}

Objectives dtlz2(const Bits& bits) {
  const std::vector<double> x = unit_numbers(bits);
  double g = 0;
  for (std::size_t i = 2; i < x.size(); ++i)
    g += (x[i] - 0.5) * (x[i] - 0.5);
  const double a = x[0] * 1.5707963267948966;
  const double b = x[1] * 1.5707963267948966;
  return {(1 + g) * std::cos(a) * std::cos(b), (1 + g) * std::cos(a) * std::sin(b),
          (1 + g) * std::sin(a)};
}

struct Case {
  const char* name;
  Objective objective;
  std::size_t bits;
  Objectives reference;
};

/// The case as pagmo wants it.
struct Adapter {
  Case it{"", zdt1, kWidth, {1, 1}};
  Objectives fitness(const Bits& bits) const { return it.objective(bits); }
  std::pair<Bits, Bits> get_bounds() const { return {Bits(it.bits, 0), Bits(it.bits, 1)}; }
  Bits::size_type get_nobj() const { return it.reference.size(); }
  Bits::size_type get_nix() const { return it.bits; }
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};

TEST(Pagmo, OurFrontsAreNoWorse) {
  const std::vector<Case> cases = {{"zdt1", zdt1, 10 * kWidth, {1.1, 5}},
                                   {"zdt3", zdt3, 10 * kWidth, {1.1, 5}},
                                   {"zdt5", zdt5, 80, {32, 50}},
                                   {"dtlz2", dtlz2, 8 * kWidth, {1.5, 1.5, 1.5}}};
  constexpr unsigned generations = 60;
  constexpr std::size_t people = 100;
  for (const Case& it : cases) {
    double ours = 0;
    double theirs = 0;
    for (unsigned seed = 1; seed <= 3; ++seed) {
      pagmo::population population(pagmo::problem(Adapter{it}), people, seed);
      const pagmo::algorithm algorithm(
          pagmo::nsga2(generations, 0.9, 20, 1.0 / static_cast<double>(it.bits), 20, seed));
      theirs += hypervolume(algorithm.evolve(population).get_f(), it.reference);
      Nsga2Problem problem;
      problem.shape.bits = static_cast<std::uint32_t>(it.bits);
      problem.objectives = it.reference.size();
      problem.evaluate = [&](const Genome& genome) {
        return Evaluation{it.objective(Bits(genome.bits.begin(), genome.bits.end())), 0};
      };
      Nsga2Options options;
      options.population = people;
      options.generations = generations;
      SearchControl control;
      control.seed = seed;
      std::vector<Objectives> points;
      for (const Individual& individual : nsga2(problem, options, control).front)
        points.push_back(individual.evaluation.objectives);
      ours += hypervolume(points, it.reference);
    }
    RecordProperty(it.name, std::to_string(ours / theirs));
    EXPECT_GE(ours, 0.995 * theirs) << it.name;
  }
}

} // namespace
} // namespace monet

PAGMO_S11N_PROBLEM_EXPORT(monet::Adapter)
