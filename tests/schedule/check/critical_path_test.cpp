// Chains computed by hand, on the timelines of timeline_test.cpp; and that every chain is one.
#include "level.hpp"
#include "schedule/fixed_costs.hpp"
#include "schedule/hand_tiles.hpp"
#include "schedule/random_cases.hpp"
#include "schedule/shared/critical_path.hpp"
#include "schedule/small_steps.hpp"

#include "monet/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace monet {
namespace {

using testing::make_chip;
using testing::StepBuilder;

struct Part {
  Limit limit;
  std::int64_t end;
  friend bool operator==(const Part&, const Part&) = default;
};

/// The step's chain, one tile per operator.
CriticalPath path_of(const StepBuilder& builder, const Chip& chip,
                     const std::vector<std::size_t>& cores) {
  const TileGraph tiles = testing::whole_tiles(builder.step(), cores);
  const Timeline timeline =
      testing::schedule_with(tiles, builder.step(), chip, testing::simple_cost);
  return critical_path(timeline, builder.step(), chip);
}

/// Its segments. Checks that they leave no gap and are those of the sums.
std::vector<Part> parts_of(const CriticalPath& path) {
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
  EXPECT_EQ(sums, path.sums);
  return parts;
}

std::vector<std::int64_t> cycles_of(const CriticalPath& path, const StepBuilder& builder) {
  std::vector<std::int64_t> cycles;
  for (const LimitCycles& one : operator_cycles(path, builder.step().graph.operators().size()))
    cycles.push_back(std::accumulate(one.begin(), one.end(), Cycles{}).value);
  return cycles;
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
  const CriticalPath path = path_of(builder, make_chip({.cores = 2, .link_bandwidth = 32}), {0, 1});
  EXPECT_EQ(parts_of(path), expected);
  // a: its operand and its run; b: the way from core to core, its run and its result.
  EXPECT_EQ(cycles_of(path, builder), (std::vector<std::int64_t>{32 + 4, 64 + 4 + 32}));
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
  const CriticalPath path =
      path_of(builder, make_chip({.core_bits = 3 * 64 * 32 - 1}), {0, 0, 0, 0});
  const std::vector<Part> parts = parts_of(path);
  const auto has = [&](Part part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  EXPECT_TRUE(has({Limit::capacity, 36}));  // a, whose end lets x go
  EXPECT_TRUE(has({Limit::capacity, 100})); // the spill of a
  EXPECT_TRUE(has({Limit::offchip, 140}));  // a comes back
  EXPECT_EQ(parts.back(), (Part{Limit::offchip, 172}));
  // x counts for a, though the run of a counts for b, whose operand waits for x's room: y and the
  // spill, too. e waits for the room that d frees at its end.
  EXPECT_EQ(cycles_of(path, builder),
            (std::vector<std::int64_t>{32, 4 + 32 + 32 + 4, 0, 4 + 32 + 32}));
}

struct Attributed {
  int segments = 0;
  int for_another = 0; ///< that count for another operator than their own
};

/// Every cycle counts for one operator: that of the segment; where space or nothing known is waited
/// for, perhaps that which waits, which is the next of the chain.
void check_columns(const testing::RandomCase& c, Attributed& all) {
  const Timeline timeline =
      testing::schedule_with(c.tiles, c.step, c.chip, testing::hashed_cost, c.priority);
  const CriticalPath path = critical_path(timeline, c.step, c.chip);
  LimitCycles sums{};
  for (const LimitCycles& one : operator_cycles(path, c.step.graph.operators().size())) {
    for (std::size_t i = 0; i < kLimits; ++i)
      sums[i] += one[i];
  }
  EXPECT_EQ(sums, path.sums);
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), Cycles{}), timeline.makespan);
  for (std::size_t i = 0; i < path.segments.size(); ++i) {
    const PathSegment& segment = path.segments[i];
    const bool known = segment.limit != Limit::order;
    ++all.segments;
    if (known && segment.counted == segment.op)
      continue;
    ++all.for_another;
    ASSERT_TRUE(!known || segment.limit == Limit::capacity);
    ASSERT_LT(i + 1, path.segments.size());
    const PathSegment& next = path.segments[i + 1];
    EXPECT_TRUE(segment.counted == next.counted ||
                (next.limit != Limit::order && segment.counted == next.op));
  }
}

TEST(CriticalPath, every_cycle_of_random_steps_counts_for_one_operator) {
  std::array<testing::CaseShape, 4> shapes;
  for (std::size_t i = 1; i < shapes.size(); ++i)
    shapes[i].network = {.operators = 5, .training = true};
  shapes[2].system = {.cores = 4, .min_bits = 1 << 13, .max_bits = 1 << 14};
  shapes[3].fused = shapes[3].system.latency = true;
  Attributed all;
  const int cases = test::cases(200, 1000, 10000);
  for (int seed = 1; seed <= cases && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto number = static_cast<std::uint64_t>(seed);
    check_columns(testing::random_case(2'000'000 + number, shapes[number % shapes.size()]), all);
  }
  EXPECT_GT(all.for_another, 50) << "of " << all.segments;
}

} // namespace
} // namespace monet
