// Devices that are not like the others: a stage is as fast as its slowest and as large as its
// smallest.
#include "cluster/a100s.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

namespace monet {

namespace {

A100s four(std::vector<UnequalDevices> unequal) {
  A100s made(4, {.layers = 4, .hidden = 512, .heads = 8, .sequence = 256, .vocabulary = 1024});
  made.device.table->host_ns_per_kernel = 0;
  made.cluster.unequal = std::move(unequal);
  return made;
}

ParallelStrategy two_stages() {
  return {
      .axes = {{AxisRole::data, 2}, {AxisRole::pipeline, 2}}, .micro_batch = 2, .global_batch = 16};
}

} // namespace

TEST(UnequalDevices, OneSlowsItsStageDown) {
  const ClusterStep alike = four({}).model(two_stages());
  const ClusterStep slow = four({{.first = 3, .count = 1, .speed = 0.5}}).model(two_stages());
  EXPECT_EQ(slow.stages[0].share.compute, alike.stages[0].share.compute);
  // 8 blocks, 4 micro-batches, three passes: each rounded to a nanosecond.
  EXPECT_NEAR(static_cast<double>(slow.stages[1].share.compute),
              2.0 * static_cast<double>(alike.stages[1].share.compute), 100);
  EXPECT_NEAR(static_cast<double>(slow.stages[1].share.update),
              2.0 * static_cast<double>(alike.stages[1].share.update), 2);
  EXPECT_GT(slow.time, alike.time);
}

TEST(UnequalDevices, FasterOnesCountWhereTheyAreAWholeStage) {
  const ClusterStep alike = four({}).model(two_stages());
  const ClusterStep some = four({{.first = 0, .count = 1, .speed = 2}}).model(two_stages());
  EXPECT_EQ(some.time, alike.time);
  const ClusterStep all = four({{.first = 0, .count = 2, .speed = 2}}).model(two_stages());
  EXPECT_NEAR(2.0 * static_cast<double>(all.stages[0].share.compute),
              static_cast<double>(alike.stages[0].share.compute), 100);
  EXPECT_LT(all.time, alike.time);
}

TEST(UnequalDevices, TheSmallestLimitsItsStage) {
  const ClusterStep alike = four({}).model(two_stages());
  const std::int64_t second = alike.stages[1].memory.total();
  const auto with = [&](std::int64_t device, std::int64_t bytes) {
    return four({{.first = device, .count = 1, .memory_bytes = static_cast<double>(bytes)}})
        .model(two_stages());
  };
  EXPECT_TRUE(with(2, second).fits());
  const ClusterStep small = with(2, second - 1);
  EXPECT_FALSE(small.fits());
  EXPECT_EQ(&small.fullest(), &small.stages[1]);
  EXPECT_EQ(small.fullest().memory.limit, second - 1);
}

TEST(UnequalDevices, AStageWithoutALimitHidesNoOther) {
  A100s made = four({{.first = 2, .count = 2, .memory_bytes = 1e9}});
  made.device.table->memory_bytes = 0; // not known
  const ClusterStep step = made.model(two_stages());
  ASSERT_GT(step.stages[1].memory.total(), 1'000'000'000);
  EXPECT_EQ(step.stages[0].memory.limit, 0);
  EXPECT_FALSE(step.fits());
  EXPECT_EQ(&step.fullest(), &step.stages[1]);
}

TEST(UnequalDevices, WithAFileOfTheirOwnAreRefused) {
  UnequalDevices other{.first = 1, .count = 2};
  other.device.emplace();
  other.device->where = {.origin = "mixed.yaml", .line = 7, .column = 12};
  try {
    four({other}).model(two_stages());
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(), "mixed.yaml:7:12: devices 1 to 2 have a separate file, which the "
                               "model of steps does not support: set their speed and memory_bytes");
  }
}

} // namespace monet
