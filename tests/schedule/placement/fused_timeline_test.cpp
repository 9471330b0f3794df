// Fused timelines computed by hand. Tensors of 64 fp32 elements take 2048 bits: 32 cycles at 64
// bits/cycle; 64 iterations on 16 lanes take 4 cycles.
#include "schedule/fixed_costs.hpp"
#include "schedule/small_steps.hpp"
#include "tiling/shared/grid.hpp"

#include "monet/schedule/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace monet {
namespace {

using testing::ChipShape;
using testing::make_chip;
using testing::StepBuilder;
using Span = std::pair<std::int64_t, std::int64_t>;

struct Cuts {
  std::vector<SplitFactor> factors;
  std::vector<std::size_t> cores;
};

/// All operators in one stack; tiles of every operator are slices that interleave: rank by the
/// index within the operator, then by operator.
TileGraph interleaved(const TrainingGraph& step, const std::vector<Cuts>& cuts) {
  TileGraph tiles;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    OperatorTiling tiling = uncut(step.graph.operators()[i].nest);
    for (const SplitFactor& factor : cuts[i].factors)
      cut(tiling, factor);
    std::vector<CoreId> cores;
    for (const std::size_t core : cuts[i].cores)
      cores.emplace_back(core);
    append_tiles(tiles, OpId(i), std::move(tiling), cores);
  }
  rank_in_order(tiles);
  tiles.stack_of.assign(cuts.size(), 0);
  std::vector<TileId> order;
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t)
    order.emplace_back(t);
  std::stable_sort(order.begin(), order.end(), [&](TileId a, TileId b) {
    const auto slot = [&](TileId t) {
      return t.value - tiles.tiles_of(tiles.tiles[t.index()].op).first;
    };
    return slot(a) < slot(b);
  });
  for (std::size_t r = 0; r < order.size(); ++r)
    tiles.rank[order[r].index()] = static_cast<std::uint32_t>(r);
  make_edges(tiles, step.graph);
  return tiles;
}

Timeline run(const TrainingGraph& step, const TileGraph& tiles, const Chip& chip,
             Priority priority = Priority::latency) {
  verify(tiles, step);
  Timeline timeline = testing::schedule_with(tiles, step, chip, testing::simple_cost, priority);
  verify(timeline, tiles, step, chip);
  return timeline;
}

Span span_of(const Timeline& timeline, std::size_t tile) {
  const auto found = std::find_if(timeline.runs.begin(), timeline.runs.end(),
                                  [&](const TileRun& r) { return r.tile == TileId(tile); });
  return {found->start.value, found->end.value};
}

std::int64_t moved(const Timeline& timeline, TransferKind kind, TensorId tensor) {
  std::int64_t bits = 0;
  for (const Transfer& t : timeline.transfers) {
    if (t.kind == kind && t.tensor == tensor)
      bits += timeline.bits_of(t).value;
  }
  return bits;
}

std::int64_t max_on_core(const Timeline& timeline, CoreId core) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const MemoryEvent& event : memory_events(timeline)) {
    now += event.memory == core ? event.delta.value : 0;
    most = std::max(most, now);
  }
  return most;
}

/// x [4, 16] -> a -> b, four slices of one row (512 bits) each.
struct Rows {
  StepBuilder builder;
  TensorId x, a, b;
  Rows() {
    x = builder.source("x", {4, 16}, TensorKind::input);
    a = builder.elementwise("a", {x});
    b = builder.elementwise("b", {a});
    builder.output(b);
  }
};

TEST(FusedTimeline, slices_follow_each_other_through_two_cores) {
  const Rows rows;
  const Chip chip = make_chip({.cores = 2, .link_bandwidth = 64});
  const TileGraph tiles = interleaved(rows.builder.step(), {{{{0, 4}}, {0}}, {{{0, 4}}, {1}}});
  const Timeline timeline = run(rows.builder.step(), tiles, chip);
  // Rows of x arrive at 8, 16, 24, 32 if nothing else uses the port; a takes one cycle each, a row
  // moves to core 1 in 8 cycles and b takes one cycle: b of row 0 runs in [17, 18).
  EXPECT_EQ(span_of(timeline, 0), Span(8, 9));
  EXPECT_EQ(span_of(timeline, 4), Span(17, 18));
  EXPECT_EQ(moved(timeline, TransferKind::fetch, rows.a), 4 * 512);
  EXPECT_EQ(moved(timeline, TransferKind::spill, rows.a), 0);
}

TEST(FusedTimeline, a_row_between_operators_never_leaves_the_core) {
  const Rows rows;
  // Room for three rows: one of x, a and b. Layer by layer four rows of a would be spilled.
  const Chip chip = make_chip({.core_bits = 3 * 512});
  const TileGraph tiles = interleaved(rows.builder.step(), {{{{0, 4}}, {0}}, {{{0, 4}}, {0}}});
  for (const Priority priority : {Priority::latency, Priority::memory, Priority::order}) {
    const Timeline timeline = run(rows.builder.step(), tiles, chip, priority);
    EXPECT_EQ(moved(timeline, TransferKind::spill, rows.a), 0);
    EXPECT_EQ(moved(timeline, TransferKind::fetch, rows.x), 4 * 512);
    EXPECT_EQ(moved(timeline, TransferKind::write_back, rows.b), 4 * 512);
    EXPECT_LE(max_on_core(timeline, CoreId(0)), 3 * 512);
  }
}

// x and b, which come from and go to outside the stack, are there whole: 256 bytes each. Of a only
// the row between its operators is, 64 bytes.
TEST(FusedTimeline, tensors_inside_a_stack_are_live_row_by_row) {
  const Rows rows;
  const Chip chip = make_chip({.core_bits = 3 * 512});
  TileGraph tiles = interleaved(rows.builder.step(), {{{{0, 4}}, {0}}, {{{0, 4}}, {0}}});
  const Timeline timeline = run(rows.builder.step(), tiles, chip, Priority::order);
  EXPECT_EQ(total(timeline.peak.live), 3 * 256);
  const auto sliced = peak_by_slices(rows.builder.step(), tiles, timeline);
  ASSERT_TRUE(sliced);
  EXPECT_EQ(total(sliced->live), 2 * 256 + 64);
  tiles.stack_of = {0, 1}; // a now is read by another stack
  EXPECT_FALSE(peak_by_slices(rows.builder.step(), tiles, timeline));
}

// a of the next row is made on one core while b of this one still runs on the other.
TEST(FusedTimeline, rows_that_overlap_are_live_together) {
  const Rows rows;
  const Chip chip = make_chip({.cores = 2, .link_bandwidth = 64});
  const TileGraph tiles = interleaved(rows.builder.step(), {{{{0, 4}}, {0}}, {{{0, 4}}, {1}}});
  const Timeline timeline = run(rows.builder.step(), tiles, chip);
  // Rows of a are made at 8, 16, 24 and 32 and read until 18, 26, 34 and 42: two at a time.
  const auto sliced = peak_by_slices(rows.builder.step(), tiles, timeline);
  ASSERT_TRUE(sliced);
  EXPECT_EQ(total(sliced->live), 2 * 256 + 2 * 64);
}

// [4, 16] x [16, 4] in four rows, each summed up in two tiles that share its 16 bytes: when the
// first row of z is made, x and w (256 bytes each), four rows of y and z (64 bytes each) are live.
TEST(FusedTimeline, tiles_that_add_share_their_row) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {4, 16}, TensorKind::input);
  const TensorId w = builder.source("w", {16, 4});
  const TensorId y = builder.product("y", x, w);
  builder.output(builder.elementwise("z", {y}));
  TileGraph tiles = interleaved(builder.step(), {{{{0, 4}, {2, 2}}, {0}}, {{{0, 4}}, {0}}});
  rank_in_order(tiles);
  tiles.stack_of.assign(2, 0);
  const Timeline timeline = run(builder.step(), tiles, make_chip({}), Priority::order);
  const auto sliced = peak_by_slices(builder.step(), tiles, timeline);
  ASSERT_TRUE(sliced);
  EXPECT_EQ(total(sliced->live), 512 + 64);
}

TEST(FusedTimeline, a_producer_waits_for_room_instead_of_spilling) {
  const Rows rows;
  // Core 0 makes rows faster than core 1 takes them: without waiting, core 0's two rows of memory
  // would overflow into the off-chip memory.
  const Chip chip = make_chip({.cores = 2, .core_bits = 3 * 512, .link_bandwidth = 8});
  const TileGraph tiles = interleaved(rows.builder.step(), {{{{0, 4}}, {0}}, {{{0, 4}}, {1}}});
  const Timeline timeline = run(rows.builder.step(), tiles, chip);
  EXPECT_EQ(moved(timeline, TransferKind::spill, rows.a), 0);
}

TEST(FusedTimeline, memory_priority_finishes_what_was_begun) {
  const Rows rows;
  const Chip chip = make_chip({});
  // Tiles layer by layer: in rank order all of a comes first, four rows of it lie there.
  TileGraph tiles = interleaved(rows.builder.step(), {{{{0, 4}}, {0}}, {{{0, 4}}, {0}}});
  rank_in_order(tiles);
  const Timeline order = run(rows.builder.step(), tiles, chip, Priority::order);
  const Timeline memory = run(rows.builder.step(), tiles, chip, Priority::memory);
  const auto first_of_b = [&](const Timeline& t) {
    return std::find_if(t.runs.begin(), t.runs.end(),
                        [](const TileRun& r) { return r.op == OpId(1); }) -
           t.runs.begin();
  };
  EXPECT_EQ(first_of_b(order), 4);
  EXPECT_EQ(first_of_b(memory), 1);
}

/// out [8, 8] = x [8, 8] w [8, 8], the sum cut in two.
struct Sum {
  StepBuilder builder;
  TensorId x, w, out;
  Sum() {
    x = builder.source("x", {8, 8}, TensorKind::input);
    w = builder.source("w", {8, 8});
    out = builder.product("out", x, w);
    builder.output(out);
  }
};

TEST(FusedTimeline, a_sum_goes_on_in_place) {
  const Sum sum;
  const TileGraph tiles = interleaved(sum.builder.step(), {{{{2, 2}}, {0}}});
  const Timeline timeline = run(sum.builder.step(), tiles, make_chip({}));
  EXPECT_EQ(moved(timeline, TransferKind::fetch, sum.out), 0);
  EXPECT_EQ(moved(timeline, TransferKind::write_back, sum.out), 2048);
  // Halves of x and w, 1024 bits each, and one result.
  EXPECT_LE(max_on_core(timeline, CoreId(0)), 4 * 1024 + 2048);
}

TEST(FusedTimeline, a_sum_on_two_cores_moves_partial_sums) {
  const Sum sum;
  const TileGraph tiles = interleaved(sum.builder.step(), {{{{2, 2}}, {0, 1}}});
  const Chip chip = make_chip({.cores = 2, .link_bandwidth = 64});
  const Timeline timeline = run(sum.builder.step(), tiles, chip);
  EXPECT_EQ(moved(timeline, TransferKind::fetch, sum.out), 2048);
  EXPECT_EQ(moved(timeline, TransferKind::write_back, sum.out), 2048); // once, after the last
}

/// Its sums in fp32 turn into a result in bf16 at the moment in which that is of no use.
TEST(FusedTimeline, sums_that_nobody_reads_leave_nothing_behind) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {8, 8}, TensorKind::input);
  const TensorId w = builder.source("w", {8, 8});
  const TensorId sum = builder.product("sum", x, w);
  for (const TensorId id : {x, w, sum})
    builder.graph().tensor(id).type = ElementType::bf16;
  const TileGraph tiles = interleaved(builder.step(), {{{{2, 2}}, {0}}});
  const Timeline timeline = run(builder.step(), tiles, make_chip({}));
  for (const ResidencyInterval& stay : timeline.stays)
    EXPECT_LT(stay.start, stay.end);
}

TEST(FusedTimeline, one_read_feeds_all_cores) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {8, 8}, TensorKind::input);
  const TensorId w = builder.source("w", {8, 8});
  builder.output(builder.product("out", x, w));
  // Four cores make two columns each: all read the whole x.
  const TileGraph tiles = interleaved(builder.step(), {{{{1, 4}}, {0, 1, 2, 3}}});
  const Timeline timeline = run(builder.step(), tiles, make_chip({.cores = 4}));
  EXPECT_EQ(moved(timeline, TransferKind::fetch, x), 2048);
  EXPECT_EQ(moved(timeline, TransferKind::fetch, w), 2048);
}

TEST(FusedTimeline, slices_of_what_one_tile_made_feed_all_cores) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {8, 16}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  const TensorId w = builder.source("w", {16, 8});
  builder.output(builder.product("out", a, w));
  // One tile makes a; of each slice of two rows, two cores make half of the columns.
  const TileGraph tiles = interleaved(builder.step(), {{{}, {0}}, {{{0, 4}, {1, 2}}, {1, 2}}});
  const Timeline timeline = run(builder.step(), tiles, make_chip({.cores = 3}));
  EXPECT_EQ(moved(timeline, TransferKind::fetch, a), 4096); // every slice once
}

TEST(FusedTimeline, a_fused_update_does_not_wait_for_the_backward_phase) {
  StepBuilder builder;
  const TensorId w = builder.source("w", {64});
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId g = builder.elementwise("g", {x, w}, Phase::backward);
  builder.update(w, g);
  const TensorId y = builder.source("y", {512}, TensorKind::input);
  builder.output(builder.elementwise("late", {y}, Phase::backward)); // 512 cycles on one lane
  const Chip chip = make_chip({.cores = 2, .lanes = 1});
  TileGraph tiles = interleaved(builder.step(), {{{}, {0}}, {{}, {0}}, {{}, {1}}});
  tiles.stack_of = {0, 0, 1};
  const Timeline fused = run(builder.step(), tiles, chip);
  EXPECT_LT(span_of(fused, 1).first, span_of(fused, 2).second);
  tiles.stack_of = {0, 1, 2};
  const Timeline apart = run(builder.step(), tiles, chip);
  EXPECT_GE(span_of(apart, 1).first, span_of(apart, 2).second);
}

TEST(FusedTimeline, an_update_waits_for_who_reads_its_region) {
  StepBuilder builder;
  const TensorId w = builder.source("w", {4, 16});
  const TensorId x = builder.source("x", {4, 16}, TensorKind::input);
  const TensorId g = builder.source("g", {4, 16}, TensorKind::input);
  builder.output(builder.elementwise("reads", {x, w}, Phase::backward)); // 16 cycles a row
  builder.update(w, g);
  const Chip chip = make_chip({.cores = 2, .lanes = 1});
  const TileGraph tiles = interleaved(builder.step(), {{{{0, 4}}, {0}}, {{{0, 4}}, {1}}});
  ASSERT_EQ(tiles.anti_dependences.size(), 1U);
  EXPECT_EQ(tiles.anti_dependences[0].tiles.size(), 4U); // row by row
  const Timeline timeline = run(builder.step(), tiles, chip);
  for (std::size_t row = 0; row < 4; ++row)
    EXPECT_GE(span_of(timeline, 4 + row).first, span_of(timeline, row).second);
  EXPECT_LT(span_of(timeline, 4).first, span_of(timeline, 1).second);
}

} // namespace
} // namespace monet
