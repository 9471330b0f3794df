// Chains computed by hand, on the timelines of timeline_test.cpp; and that every chain is one.
#include "schedule/fixed_costs.hpp"
#include "schedule/hand_tiles.hpp"
#include "schedule/small_steps.hpp"

#include "monet/schedule/critical_path.hpp"
#include "monet/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace monet {
namespace {

using testing::make_chip;
using testing::StepBuilder;

struct Part {
  Limit limit;
  std::int64_t end;
  friend bool operator==(const Part&, const Part&) = default;
};

std::vector<Part> path_of(const StepBuilder& builder, const Chip& chip,
                          const std::vector<std::size_t>& cores) {
  const TileGraph tiles = testing::whole_tiles(builder.step(), cores);
  const Timeline timeline =
      testing::schedule_with(tiles, builder.step(), chip, testing::simple_cost);
  const CriticalPath path = critical_path(timeline, builder.step(), chip);
  std::vector<Part> parts;
  std::int64_t at = 0;
  std::array<Cycles, kLimits> sums{};
  for (const PathSegment& segment : path.segments) {
    EXPECT_EQ(segment.start.value, at);
    EXPECT_LT(segment.start, segment.end);
    at = segment.end.value;
    sums[static_cast<std::size_t>(segment.limit)] += segment.end - segment.start;
    parts.push_back({segment.limit, at});
  }
  EXPECT_EQ(at, timeline.makespan.value);
  EXPECT_EQ(sums, path.sums);
  return parts;
}

TEST(CriticalPath, through_cores_and_links) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  builder.output(builder.elementwise("b", {a}));
  // Fetch x [0, 32), a [32, 36), over the link [36, 100), b [100, 104), write b [104, 136).
  const std::vector<Part> expected{{Limit::offchip, 32},
                                   {Limit::compute, 36},
                                   {Limit::link, 100},
                                   {Limit::compute, 104},
                                   {Limit::offchip, 136}};
  EXPECT_EQ(path_of(builder, make_chip({.cores = 2, .link_bandwidth = 32}), {0, 1}), expected);
}

TEST(CriticalPath, a_core_that_has_no_space) {
  // Room for less than three tensors: x [0, 32), a [32, 36); y takes x's room, [36, 68); a goes,
  // [68, 100), to make room for b, [100, 104), and d, [104, 108); a comes back [108, 140); e flows
  // out while it runs, [140, 172).
  StepBuilder builder;
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId y = builder.source("y", {64}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  const TensorId b = builder.elementwise("b", {y});
  const TensorId d = builder.elementwise("d", {b});
  builder.output(builder.elementwise("e", {a, d}));
  const std::vector<Part> parts =
      path_of(builder, make_chip({.core_bits = 3 * 64 * 32 - 1}), {0, 0, 0, 0});
  const auto has = [&](Part part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  EXPECT_TRUE(has({Limit::capacity, 36}));  // a, whose end lets x go
  EXPECT_TRUE(has({Limit::capacity, 100})); // the spill of a
  EXPECT_TRUE(has({Limit::offchip, 140}));  // a comes back
  EXPECT_EQ(parts.back(), (Part{Limit::offchip, 172}));
}

} // namespace
} // namespace monet
