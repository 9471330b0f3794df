// Points on a small grid, so that equal figures abound.
#pragma once

#include "base/shared/pareto.hpp"
#include "base/shared/rng.hpp"

namespace monet::test {

inline std::vector<Objectives> random_points(std::uint64_t seed, std::size_t count,
                                             std::size_t objectives, std::uint64_t grid) {
  RandomStream random(seed);
  std::vector<Objectives> points(count, Objectives(objectives));
  for (Objectives& point : points)
    for (double& value : point)
      value = static_cast<double>(random.below(grid));
  return points;
}

} // namespace monet::test
