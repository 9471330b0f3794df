// Fronts against the definition, on small values so that ties and equal designs abound.
#include "base/shared/rng.hpp"

#include "monet/explore/explore.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace monet {
namespace {

using Values = std::vector<double>;

bool dominates(const Values& a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i])
      return false;
  }
  return a != b;
}

std::vector<DesignId> by_definition(const std::vector<DesignResult>& results,
                                    const FrontRequest& front) {
  std::vector<std::pair<Values, DesignId>> best;
  for (const DesignResult& result : results) {
    if (!result.feasible)
      continue;
    const Values values = objective_values(result, front);
    if (std::none_of(results.begin(), results.end(), [&](const DesignResult& other) {
          return other.feasible && dominates(objective_values(other, front), values);
        }))
      best.emplace_back(values, result.id);
  }
  std::sort(best.begin(), best.end());
  std::vector<DesignId> ids;
  for (const auto& [values, id] : best)
    ids.push_back(id);
  return ids;
}

std::vector<DesignResult> random_results(RandomStream& random) {
  const std::uint64_t range = 1 + random.below(12);
  std::vector<DesignResult> results(random.below(60));
  for (DesignResult& result : results) {
    result.id = random.bits();
    result.feasible = random.chance(0.8);
    result.area_mm2 = static_cast<double>(random.below(range));
    if (!result.feasible)
      continue;
    for (int run = 0; run < 2; ++run)
      result.runs.push_back({static_cast<std::int64_t>(random.below(range)),
                             static_cast<double>(random.below(range)),
                             static_cast<std::int64_t>(random.below(range))});
  }
  return results;
}

TEST(FrontOf, IsWhatNoOtherDominates) {
  RandomStream random(1);
  std::size_t kept = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const std::vector<DesignResult> results = random_results(random);
    std::vector<Objective> objectives{Objective::latency, Objective::energy, Objective::memory,
                                      Objective::area};
    for (std::size_t i = objectives.size(); i > 1; --i)
      std::swap(objectives[i - 1], objectives[random.below(i)]);
    objectives.resize(1 + random.below(4));
    const FrontRequest front{random.below(2), objectives};
    const std::vector<DesignId> ids = front_of(results, front);
    ASSERT_EQ(ids, by_definition(results, front)) << "trial " << trial;
    kept += ids.size();
  }
  EXPECT_GT(kept, 2000U);
}

TEST(FrontOf, KeepsInfiniteFiguresInTheirPlace) {
  std::vector<DesignResult> results(3);
  const double infinite = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = {i, true, "", 0, 0, 0, {{1, i == 1 ? 5.0 : infinite, 1}}};
  const FrontRequest front{0, {Objective::energy, Objective::latency}};
  EXPECT_EQ(front_of(results, front), std::vector<DesignId>{1});
  EXPECT_EQ(front_of({}, front), std::vector<DesignId>{});
}

} // namespace
} // namespace monet
