#include "base/shared/rng.hpp"
#include "explore/shared/sensitivity.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace monet {
namespace {

Space space_of(const std::vector<std::size_t>& values) {
  Space space;
  for (std::size_t p = 0; p < values.size(); ++p) {
    Parameter parameter;
    parameter.name = std::string(1, static_cast<char>('a' + p));
    parameter.values.resize(values[p]);
    space.parameters.push_back(parameter);
  }
  space.workload.runs = {"inference"};
  space.fronts = {{0, {Objective::energy, Objective::latency}}};
  return space;
}

/// Energy e^(x a + y b + z a b) with a, b of -1, 1; the third parameter does nothing.
std::vector<DesignResult> factorial(double x, double y, double z) {
  std::vector<DesignResult> results;
  for (DesignId id = 0; id < 12; ++id) {
    const double a = id / 6 == 0 ? -1 : 1, b = id / 3 % 2 == 0 ? -1 : 1;
    DesignResult result;
    result.id = id;
    result.feasible = true;
    result.runs = {{1000, std::exp(x * a + y * b + z * a * b), 1}};
    results.push_back(result);
  }
  return results;
}

TEST(Sensitivity, SplitsTheVarianceOfACompleteTable) {
  const Sensitivity found = sensitivity(space_of({2, 2, 3}), factorial(3, 2, 1));
  ASSERT_EQ(found.runs.size(), 1U);
  ASSERT_EQ(found.runs[0].size(), 2U);
  const ObjectiveSensitivity& latency = found.runs[0][0];
  EXPECT_EQ(latency.objective, Objective::latency);
  EXPECT_EQ(latency.deviation, 0);
  EXPECT_EQ(latency.together, 0);
  EXPECT_EQ(latency.parameters[0].share, 0);
  const ObjectiveSensitivity& energy = found.runs[0][1];
  EXPECT_EQ(energy.designs, 12U);
  EXPECT_NEAR(energy.deviation, std::sqrt(14), 1e-12);
  EXPECT_NEAR(energy.parameters[0].share, 9.0 / 14, 1e-12);
  EXPECT_NEAR(energy.parameters[1].share, 4.0 / 14, 1e-12);
  EXPECT_NEAR(energy.parameters[2].share, 0, 1e-12);
  EXPECT_NEAR(energy.together, 1.0 / 14, 1e-12);
}

TEST(Sensitivity, GivesMedianLeastAndCountOfEachValue) {
  std::vector<DesignResult> results = factorial(3, 2, 1);
  results[0].feasible = false;
  results[0].runs.clear();
  const Sensitivity found = sensitivity(space_of({2, 2, 3}), results);
  for (std::size_t p = 0; p < 3; ++p) {
    const auto& values = found.runs[0][1].parameters[p].values;
    for (std::uint32_t v = 0; v < values.size(); ++v) {
      std::vector<double> expected;
      for (const DesignResult& result : results) {
        const std::uint32_t digits[] = {static_cast<std::uint32_t>(result.id / 6),
                                        static_cast<std::uint32_t>(result.id / 3 % 2),
                                        static_cast<std::uint32_t>(result.id % 3)};
        if (result.feasible && digits[p] == v)
          expected.push_back(result.runs[0].energy_pj);
      }
      std::sort(expected.begin(), expected.end());
      const std::size_t n = expected.size();
      EXPECT_EQ(values[v].count, n);
      EXPECT_EQ(values[v].least, expected.front());
      EXPECT_DOUBLE_EQ(values[v].median, (expected[n / 2] + expected[(n - 1) / 2]) / 2);
    }
  }
}

// Logarithms 0, 1 | 3, 4: 9 of the 10 squares are between the groups; of that chance explains one
// degree of freedom of the 1 / 2 within (Kelley 1935, epsilon squared).
TEST(Sensitivity, OfASampleIsEpsilonSquared) {
  std::vector<DesignResult> results;
  for (const auto& [id, log] : {std::pair(0, 0.0), {1, 1.0}, {3, 3.0}, {4, 4.0}}) {
    DesignResult result;
    result.id = static_cast<DesignId>(id);
    result.feasible = true;
    result.runs = {{1, std::exp(log), 1}};
    results.push_back(result);
  }
  EXPECT_NEAR(sensitivity(space_of({2, 3}), results).runs[0][1].parameters[0].share, 0.85, 1e-12);
}

TEST(Sensitivity, TakesChanceOffASample) {
  // Pure noise on 20 values and 60 designs: the means of the values alone would explain a third.
  double mean = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<DesignResult> results;
    for (std::uint64_t i = 0; i < 60; ++i) {
      DesignResult result;
      result.id = i % 20 * 50 + i / 20;
      result.feasible = true;
      result.runs = {{1, std::exp(random_unit(seed, i)), 1}};
      results.push_back(result);
    }
    mean += sensitivity(space_of({20, 50}), results).runs[0][1].parameters[0].share / 50;
  }
  EXPECT_LT(mean, 0.1);
  EXPECT_TRUE(sensitivity(space_of({20, 50}), {}).runs[0][1].parameters[0].values.size() == 20);
}

} // namespace
} // namespace monet
