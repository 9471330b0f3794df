// Fronts and hypervolumes against counting and brute force.
#include "base/random_points.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

namespace monet {
namespace {

using test::random_points;

TEST(Pareto, HypervolumeIsTheCellsBelow) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::size_t objectives = 1 + seed % 4;
    constexpr std::uint64_t grid = 7;
    const auto points = random_points(seed, 1 + seed % 13, objectives, grid + 1);
    const Objectives reference(objectives, double{grid});
    std::size_t cells = 0;
    Objectives cell(objectives, 0);
    for (bool more = true; more;) {
      cells += std::any_of(points.begin(), points.end(), [&](const Objectives& point) {
        for (std::size_t k = 0; k < objectives; ++k)
          if (point[k] > cell[k])
            return false;
        return true;
      });
      more = false;
      for (std::size_t k = 0; k < objectives && !more; ++k) {
        more = cell[k] + 1 < reference[k];
        cell[k] = more ? cell[k] + 1 : 0;
      }
    }
    EXPECT_EQ(hypervolume(points, reference), static_cast<double>(cells)) << seed;
  }
}

TEST(Pareto, KeepsOneOfEachPointThatNothingDominates) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto points = random_points(seed, 40, 1 + seed % 4, 6);
    std::set<Objectives> expected;
    for (const Objectives& a : points)
      if (std::none_of(points.begin(), points.end(),
                       [&](const Objectives& b) { return dominates(b, a); }))
        expected.insert(a);
    std::vector<Objectives> got;
    for (const std::size_t i : non_dominated(points)) {
      got.push_back(points[i]);
      EXPECT_EQ(std::find(points.begin(), points.end(), points[i]) - points.begin(),
                static_cast<std::ptrdiff_t>(i));
    }
    EXPECT_EQ(got, std::vector<Objectives>(expected.begin(), expected.end())) << seed;
  }
}

TEST(Pareto, KeepsItemsInTheirOrder) {
  const std::vector<Objectives> points{{3, 1}, {2, 2}, {3, 1}, {1, 3}, {2, 3}};
  const auto kept = non_dominated_items(std::span<const Objectives>(points),
                                        [](const Objectives& point) { return point; });
  EXPECT_EQ(kept, (std::vector<Objectives>{{3, 1}, {2, 2}, {1, 3}}));
}

TEST(Pareto, RefusesWhatCannotBeCompared) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(non_dominated(std::vector<Objectives>{{1, none}}), InternalError);
  EXPECT_THROW(non_dominated(std::vector<Objectives>{{1, 2, 3, 4, 5}}), InternalError);
}

} // namespace
} // namespace monet
