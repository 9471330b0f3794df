#include "monet/explore/space.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

TEST(Design, GivesTheObjectivesInTheOrderAskedFor) {
  DesignResult result;
  result.feasible = true;
  result.area_mm2 = 3;
  result.peak_power_w = 4;
  result.runs = {{100, 5, 6}, {200, 7, 8}};
  const FrontRequest front{
      1, {Objective::memory, Objective::latency, Objective::energy, Objective::area}};
  EXPECT_EQ(objective_values(result, front), (std::vector<double>{8, 200, 7, 3}));
  result.frequency_hz = 50;
  EXPECT_EQ(objective_values(result, front), (std::vector<double>{8, 4, 7, 3}));
}

} // namespace
} // namespace monet
