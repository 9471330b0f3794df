// The cycles of a run by cause.
#include "schedule/cost/run_cost.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

RunCycles causes_of(Cycles ideal, const LatencyParts& parts, Cycles latency) {
  CoreCost cost;
  cost.ideal = ideal;
  cost.parts = parts;
  cost.latency = latency;
  return run_cost(CoreProblem{}, cost).causes;
}

TEST(RunCost, FractionalPartsAddUpToTheLatency) {
  // 12.5 + 3.25 + 1.5 = 17.25: whole cycles end at 10, 12, 12, 15 and 17.
  EXPECT_EQ(causes_of({10}, {.ideal_temporal = 12.5, .stall = 3.25, .onload = 1.5}, {17}),
            (RunCycles{{{10}, {2}, {0}, {3}, {2}}}));
  EXPECT_EQ(causes_of({8}, {.ideal_temporal = 8, .instructions = 4, .offload = 1}, {13}),
            (RunCycles{{{8}, {0}, {4}, {0}, {1}}}));
}

TEST(RunCost, WithoutPartsAllCyclesAreWork) {
  EXPECT_EQ(causes_of({0}, {}, {5}), (RunCycles{{{5}}}));
  EXPECT_EQ(causes_of({0}, {}, {0}), (RunCycles{{{1}}})); // no run takes less than a cycle
}

} // namespace
} // namespace monet
