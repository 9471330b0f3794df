// Bounds computed by hand; that no schedule beats them is checked by verify(Timeline) wherever it
// is called. Tensors of 64 fp32 elements are 2048 bits: 32 cycles of the off-chip port; 64
// iterations on 16 lanes take 4 cycles.
#include "schedule/fixed_costs.hpp"
#include "schedule/hand_tiles.hpp"
#include "schedule/shared/bounds.hpp"
#include "schedule/small_steps.hpp"

#include "monet/schedule/schedule.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace monet {
namespace {

using testing::make_chip;
using testing::StepBuilder;

Bounds bounds_of(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip) {
  const Timeline timeline = testing::schedule_with(tiles, step, chip, testing::simple_cost);
  verify(timeline, tiles, step, chip);
  return lower_bounds(timeline, tiles, step, chip);
}

TEST(Bounds, of_a_chain_over_two_cores) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId w = builder.source("w", {64});
  const TensorId a = builder.elementwise("a", {x, w});
  const TensorId b = builder.elementwise("b", {a, x});
  builder.output(builder.elementwise("c", {b}));
  const TileGraph tiles = testing::whole_tiles(builder.step(), {0, 1, 1});
  const Bounds bounds =
      bounds_of(tiles, builder.step(), make_chip({.cores = 2, .link_bandwidth = 8}));
  EXPECT_EQ(bounds.critical_path.value, 12);
  EXPECT_EQ(bounds.busiest_core.value, 8);
  EXPECT_EQ(bounds.core, CoreId(std::size_t{1}));
  EXPECT_EQ(bounds.offchip_read.value, 2 * 2048); // x once, although two cores read it
  EXPECT_EQ(bounds.offchip_written.value, 2048);  // c
  EXPECT_EQ(bounds.offchip_port.value, 96);
  // Core 0 gets x and w, core 1 gets x and a: 4096 bits over 64 + 8 bits per cycle.
  EXPECT_EQ(bounds.busiest_links.value, 57);
  EXPECT_EQ(bounds.latency().value, 96);
}

TEST(Bounds, tiles_of_one_core_need_every_part_once) {
  // Four tiles, two on each core; each core reads half of x, and all of w of which every tile reads
  // everything.
  StepBuilder builder;
  const TensorId x = builder.source("x", {4, 16}, TensorKind::input);
  const TensorId w = builder.source("w", {16, 8});
  builder.output(builder.product("a", x, w));
  const TileGraph tiles = testing::hand_tiles(builder.step(), {{4, {0, 1}}});
  Chip chip = make_chip({.cores = 2, .dram_bandwidth = 1});
  const Bounds bounds = bounds_of(tiles, builder.step(), chip);
  EXPECT_EQ(bounds.busiest_links.value, (2 * 16 + 16 * 8) * 32);
  EXPECT_EQ(bounds.offchip_port.value, (4 * 16 + 16 * 8 + 4 * 8) * 32);
}

/// Values in [0, extent) that an axis takes, counted one by one.
std::size_t count_touched(const AxisExpr& axis, const std::vector<Interval>& box,
                          std::int64_t extent) {
  std::set<std::int64_t> values{axis.offset};
  for (const AffineTerm& term : axis.terms) {
    std::set<std::int64_t> next;
    for (const std::int64_t value : values) {
      for (std::int64_t i = box[term.dim].begin; i < box[term.dim].end; ++i)
        next.insert(value + term.coefficient * i);
    }
    values = std::move(next);
  }
  return static_cast<std::size_t>(std::ranges::count_if(
      values, [&](std::int64_t value) { return value >= 0 && value < extent; }));
}

// A window of two values three apart, one before the tensor and one behind it, touches nothing.
TEST(Bounds, a_window_that_straddles_the_tensor_touches_nothing) {
  const Access access{TensorId(0U), AccessMode::read, "I", {{{{0, 1}, {1, 3}}, -1}}};
  const std::vector<Interval> box{{0, 1}, {0, 2}};
  EXPECT_EQ(touched_elements(access, box, std::vector<std::int64_t>{2}), 0);
  EXPECT_EQ(touched_elements(access, box, std::vector<std::int64_t>{3}), 1);
}

// Three terms, none of which reaches the tensor while the others stay where they are tried.
TEST(Bounds, what_only_all_terms_together_reach_is_counted) {
  const Access access{TensorId(0U), AccessMode::read, "I", {{{{0, 2}, {1, 4}, {2, 9}}, -15}}};
  const std::vector<Interval> box{{0, 2}, {0, 2}, {0, 2}};
  EXPECT_EQ(touched_elements(access, box, std::vector<std::int64_t>{1}), 1);
  EXPECT_EQ(touched_elements(access, box, std::vector<std::int64_t>{9}), 1);
}

RC_GTEST_PROP(Bounds, touch_no_more_than_there_is, ()) {
  AxisExpr axis;
  std::vector<Interval> box;
  const auto terms = static_cast<std::uint32_t>(*rc::gen::inRange(1, 4));
  const auto longest = *rc::gen::element<std::int64_t>(6, 6, 40); // or too many to be counted
  for (std::uint32_t t = 0; t < terms; ++t) {
    axis.terms.push_back({t, *rc::gen::inRange<std::int64_t>(-6, 7)});
    const auto begin = *rc::gen::inRange<std::int64_t>(0, 4);
    box.push_back({begin, begin + *rc::gen::inRange<std::int64_t>(1, longest)});
  }
  axis.offset = *rc::gen::inRange<std::int64_t>(-12, 13);
  const auto extent = *rc::gen::inRange<std::int64_t>(1, 20);
  const Access access{TensorId(0U), AccessMode::read, "I", {axis}};
  const auto there = static_cast<std::int64_t>(count_touched(axis, box, extent));
  const std::int64_t bound = touched_elements(access, box, std::vector<std::int64_t>{extent});
  RC_ASSERT(bound <= there);
  if (longest == 6)
    RC_ASSERT(bound >= (there + 15) / 16); // of axes as short as these one comb is not far off
}

} // namespace
} // namespace monet
