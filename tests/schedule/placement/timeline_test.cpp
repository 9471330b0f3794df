// Timelines computed by hand. Tensors of 64 fp32 elements take 2048 bits: 32 cycles at 64
// bits/cycle, 64 cycles at 32 bits/cycle; 64 iterations on 16 lanes take 4 cycles.
#include "schedule/fixed_costs.hpp"
#include "schedule/hand_tiles.hpp"
#include "schedule/placement/timeline_writer.hpp"
#include "schedule/small_steps.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace monet {
namespace {

using testing::ChipShape;
using testing::make_chip;
using testing::StepBuilder;

constexpr std::int64_t kTensorBits = 64 * 32;

Timeline run(const StepBuilder& builder, const Chip& chip, const std::vector<std::size_t>& cores) {
  verify(builder.step().graph);
  const TileGraph tiles = testing::whole_tiles(builder.step(), cores);
  verify(tiles, builder.step());
  Timeline timeline = testing::schedule_with(tiles, builder.step(), chip, testing::simple_cost);
  verify(timeline, tiles, builder.step(), chip);
  return timeline;
}

std::pair<std::int64_t, std::int64_t> span(const TileRun& run) {
  return {run.start.value, run.end.value};
}
std::pair<std::int64_t, std::int64_t> span(const Transfer& transfer) {
  return {transfer.start.value, transfer.end.value};
}
using Span = std::pair<std::int64_t, std::int64_t>;

const Transfer* find(const Timeline& timeline, TransferKind kind, TensorId tensor) {
  for (const Transfer& transfer : timeline.transfers) {
    if (transfer.kind == kind && transfer.tensor == tensor)
      return &transfer;
  }
  return nullptr;
}

struct Chain {
  StepBuilder builder;
  TensorId x, a, b;
  Chain() {
    x = builder.source("x", {64}, TensorKind::input);
    a = builder.elementwise("a", {x});
    b = builder.elementwise("b", {a});
    builder.output(b);
  }
};

TEST(Timeline, two_operators_on_one_core) {
  const Chain chain;
  const Timeline timeline = run(chain.builder, make_chip({}), {0, 0});
  // Fetch x, run a, run b, write b.
  ASSERT_EQ(timeline.transfers.size(), 2U);
  EXPECT_EQ(span(timeline.transfers[0]), Span(0, 32));
  EXPECT_EQ(span(timeline.runs[0]), Span(32, 36));
  EXPECT_EQ(span(timeline.runs[1]), Span(36, 40));
  EXPECT_EQ(span(timeline.transfers[1]), Span(40, 72));
  EXPECT_EQ(timeline.transfers[1].kind, TransferKind::write_back);
  EXPECT_EQ(timeline.makespan.value, 72);
  ASSERT_EQ(timeline.phases.size(), 1U);
  EXPECT_EQ(timeline.phases[0].end.value, 72);
}

TEST(Timeline, energy_by_hand) {
  const Chain chain;
  const EnergySplit energy = energy_of(run(chain.builder, make_chip({}), {0, 0}));
  // 64 iterations at 1 + 0.5 pJ, twice. Each transfer is 32 cycles at 2 pJ on the link and 32 words
  // of 64 bits; a word costs 8 pJ to read and 16 pJ to write, off-chip and on the core alike.
  EXPECT_DOUBLE_EQ(energy.compute.picojoules().value, 128);
  EXPECT_DOUBLE_EQ(energy.links.picojoules().value, 2 * 64);
  EXPECT_DOUBLE_EQ(energy.offchip.picojoules().value, 32 * 8 + 32 * 16);
  EXPECT_DOUBLE_EQ(energy.onchip_memory.picojoules().value, 64 + 32 * 16 + 32 * 8);
}

TEST(Timeline, memories_leak_while_the_step_lasts) {
  const Chain chain;
  Chip chip = make_chip({.cores = 2});
  chip.cores[0].memories[0].leakage_pj_per_cycle = 0.5;
  chip.cores[2].memories[0].leakage_pj_per_cycle = 2;
  const EnergySplit energy = energy_of(run(chain.builder, chip, {0, 0}));
  EXPECT_DOUBLE_EQ(energy.leakage.picojoules().value, 72 * 2.5); // 72 cycles
  const EnergySplit none = energy_of(run(chain.builder, make_chip({.cores = 2}), {0, 0}));
  EXPECT_EQ(energy.total() - energy.leakage, none.total());
}

TEST(Timeline, live_memory_by_hand) {
  const Chain chain;
  const Timeline timeline = run(chain.builder, make_chip({}), {0, 0});
  // x lives in [0, 36), a in [32, 40), b from 36 to the end: 256 bytes each.
  ASSERT_EQ(timeline.live.size(), 4U);
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected{
      {0, 256}, {32, 512}, {40, 256}, {72, 0}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(timeline.live[i].time.value, expected[i].first);
    EXPECT_EQ(timeline.live[i].live[static_cast<std::size_t>(MemoryOwner::temporaries)],
              expected[i].second);
  }
  EXPECT_EQ(timeline.peak.time.value, 32);
}

TEST(Timeline, transfer_over_a_link) {
  const Chain chain;
  const Timeline timeline =
      run(chain.builder, make_chip({.cores = 2, .link_bandwidth = 32}), {0, 1});
  const Transfer* fetch = find(timeline, TransferKind::fetch, chain.a);
  ASSERT_NE(fetch, nullptr);
  EXPECT_EQ(timeline.route_of(*fetch).from, CoreId(0));
  EXPECT_THAT(timeline.route_of(*fetch).to, ::testing::ElementsAre(CoreId(1)));
  EXPECT_EQ(span(*fetch), Span(36, 100)); // 2048 bits at 32
  EXPECT_EQ(span(timeline.runs[1]), Span(100, 104));
  EXPECT_EQ(timeline.makespan.value, 136);
}

TEST(Timeline, without_a_link_results_go_through_the_offchip_memory) {
  const Chain chain;
  const Timeline timeline = run(chain.builder, make_chip({.cores = 2}), {0, 1});
  EXPECT_EQ(span(*find(timeline, TransferKind::write_back, chain.a)), Span(36, 68));
  EXPECT_EQ(span(*find(timeline, TransferKind::fetch, chain.a)), Span(68, 100));
  EXPECT_EQ(span(timeline.runs[1]), Span(100, 104));
}

TEST(Timeline, an_operand_is_streamed_when_one_bit_is_missing) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  builder.output(a);
  // Both fit exactly: fetch [0, 32), run [32, 36), write [36, 68).
  const Timeline fits = run(builder, make_chip({.core_bits = 2 * kTensorBits}), {0});
  EXPECT_EQ(fits.makespan.value, 68);
  EXPECT_EQ(find(fits, TransferKind::stream, a), nullptr);
  // One bit less: the result (first of the largest) flows out from the start on, in [32, 64).
  const Timeline streams = run(builder, make_chip({.core_bits = 2 * kTensorBits - 1}), {0});
  ASSERT_NE(find(streams, TransferKind::stream, a), nullptr);
  EXPECT_EQ(span(*find(streams, TransferKind::stream, a)), Span(32, 64));
  EXPECT_EQ(span(streams.runs[0]), Span(32, 64));
  EXPECT_EQ(streams.makespan.value, 64);
  // Nothing fits: x flows in first in [0, 32), then a flows out in [32, 64).
  const Timeline both = run(builder, make_chip({.core_bits = kTensorBits - 1}), {0});
  EXPECT_EQ(span(*find(both, TransferKind::stream, x)), Span(0, 32));
  EXPECT_EQ(span(*find(both, TransferKind::stream, a)), Span(32, 64));
  EXPECT_EQ(span(both.runs[0]), Span(0, 64));
}

TEST(Timeline, writes_that_flow_out_end_no_sooner_than_the_computation) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  builder.output(a);
  // One lane: 64 cycles of work after the fetch [0, 32); the 32 cycles of writing fill its second
  // half.
  const Chip chip = make_chip({.core_bits = 2 * kTensorBits - 1, .lanes = 1});
  const Timeline timeline = run(builder, chip, {0});
  EXPECT_EQ(span(*find(timeline, TransferKind::stream, a)), Span(64, 96));
  EXPECT_EQ(span(timeline.runs[0]), Span(32, 96));
}

struct SpillCase {
  StepBuilder builder;
  TensorId a;
  SpillCase() {
    const TensorId x = builder.source("x", {64}, TensorKind::input);
    const TensorId y = builder.source("y", {64}, TensorKind::input);
    a = builder.elementwise("a", {x});
    const TensorId b = builder.elementwise("b", {y});
    const TensorId d = builder.elementwise("d", {b});
    builder.output(builder.elementwise("e", {a, d}));
  }
};

TEST(Timeline, nothing_is_spilled_when_memory_just_suffices) {
  const SpillCase c;
  // Room for three tensors: x [0, 32), a [32, 36), y [32, 64), b [64, 68), d [68, 72), e [72, 76),
  // written by 108.
  const Timeline timeline = run(c.builder, make_chip({.core_bits = 3 * kTensorBits}), {0, 0, 0, 0});
  EXPECT_EQ(find(timeline, TransferKind::spill, c.a), nullptr);
  EXPECT_EQ(span(timeline.runs[1]), Span(64, 68));
  EXPECT_EQ(span(timeline.runs[3]), Span(72, 76));
  EXPECT_EQ(timeline.makespan.value, 108);
}

TEST(Timeline, one_bit_less_spills_the_tensor_used_farthest_away) {
  const SpillCase c;
  // y waits for x to go (36): [36, 68). b's room is a's, written [68, 100). Then b [100, 104), d
  // [104, 108), a comes back [108, 140), and e flows out while it runs, [140, 172).
  const Timeline timeline =
      run(c.builder, make_chip({.core_bits = 3 * kTensorBits - 1}), {0, 0, 0, 0});
  const Transfer* spill = find(timeline, TransferKind::spill, c.a);
  ASSERT_NE(spill, nullptr);
  EXPECT_EQ(span(*spill), Span(68, 100));
  EXPECT_EQ(span(timeline.runs[1]), Span(100, 104));
  EXPECT_EQ(span(*find(timeline, TransferKind::fetch, c.a)), Span(108, 140));
  EXPECT_EQ(timeline.makespan.value, 172);
}

// As above, but a goes to the other core, which is idle, in the cycles in which the off-chip memory
// would have it, and comes back from there: the port writes e alone.
TEST(Timeline, what_has_to_go_goes_to_a_core_with_room) {
  const SpillCase c;
  const Chip chip = make_chip({.cores = 2, .core_bits = 3 * kTensorBits - 1, .link_bandwidth = 64});
  const Timeline timeline = run(c.builder, chip, {0, 0, 0, 0});
  const Transfer* spill = find(timeline, TransferKind::spill, c.a);
  ASSERT_NE(spill, nullptr);
  EXPECT_EQ(timeline.route_of(*spill).from, CoreId(std::size_t{0}));
  EXPECT_EQ(timeline.route_of(*spill).to.front(), CoreId(std::size_t{1}));
  const Transfer* back = find(timeline, TransferKind::fetch, c.a);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(timeline.route_of(*back).from, CoreId(std::size_t{1}));
  EXPECT_LT(timeline.makespan.value, 172);
}

struct TwoPairs {
  StepBuilder builder;
  TwoPairs() {
    const TensorId x = builder.source("x", {64}, TensorKind::input);
    const TensorId y = builder.source("y", {64}, TensorKind::input);
    const TensorId a = builder.elementwise("a", {x});
    const TensorId b = builder.elementwise("b", {y});
    builder.output(builder.elementwise("c", {a}));
    builder.output(builder.elementwise("d", {b}));
  }
};

TEST(Timeline, a_bus_carries_one_transfer_at_a_time) {
  const TwoPairs pairs;
  // x [0, 32), y [32, 64); a on core 0 [32, 36), b on core 1 [64, 68). Own links: a [36, 100), b
  // [68, 132).
  const Timeline links =
      run(pairs.builder, make_chip({.cores = 4, .link_bandwidth = 32}), {0, 1, 2, 3});
  EXPECT_EQ(span(links.runs[2]), Span(100, 104));
  EXPECT_EQ(span(links.runs[3]), Span(132, 136));
  EXPECT_EQ(links.makespan.value, 168);
  // One bus: b waits for a, [100, 164).
  const Timeline bus =
      run(pairs.builder, make_chip({.cores = 4, .link_bandwidth = 32, .bus = true}), {0, 1, 2, 3});
  EXPECT_EQ(span(bus.runs[2]), Span(100, 104));
  EXPECT_EQ(span(bus.runs[3]), Span(164, 168));
  EXPECT_EQ(bus.makespan.value, 200);
}

TEST(Timeline, training_step_by_hand) {
  StepBuilder builder;
  const TensorId w = builder.source("w", {64});
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x, w});
  const TensorId g = builder.elementwise("g", {a, x}, Phase::backward, MemoryOwner::gradients);
  const TensorId updated = builder.update(w, g);
  const Timeline timeline = run(builder, make_chip({}), {0, 0, 0});
  // x [0, 32), w [32, 64), a [64, 68), g [68, 72), update [72, 76), written [76, 108).
  EXPECT_EQ(span(timeline.runs[2]), Span(72, 76));
  EXPECT_EQ(span(*find(timeline, TransferKind::write_back, updated)), Span(76, 108));
  ASSERT_EQ(timeline.phases.size(), 3U);
  EXPECT_EQ(timeline.phases[0].end.value, 68);
  EXPECT_EQ(timeline.phases[1].end.value, 72);
  EXPECT_EQ(timeline.phases[2].end.value, 108);
  // At 68: w, x, a and g; the updated weight is w's own memory.
  EXPECT_EQ(timeline.peak.time.value, 68);
  const OwnerBytes expected{256, 256, 0, 0, 512};
  EXPECT_EQ(timeline.peak.live, expected);
}

using Latencies = std::vector<std::int64_t>;

/// What the phases take when operators run at these times.
Latencies latencies(const TrainingGraph& step, const std::vector<Span>& spans) {
  Timeline timeline;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    TileRun run;
    run.op = OpId(i);
    run.start = {spans[i].first};
    run.end = {spans[i].second};
    timeline.runs.push_back(run);
  }
  add_phases(step, timeline);
  Latencies found;
  for (const Cycles cycles : phase_latencies(timeline, step))
    found.push_back(cycles.value);
  return found;
}

TEST(Timeline, a_phase_that_works_beside_an_earlier_one_has_its_time) {
  StepBuilder builder;
  const TensorId w = builder.source("w", {64});
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x, w});
  const TensorId g = builder.elementwise("g", {a, x}, Phase::backward, MemoryOwner::gradients);
  builder.update(w, g);
  builder.output(builder.elementwise("late", {a}));
  const TrainingGraph& step = builder.step();
  // Forward, backward and update; `late` is an output of the forward pass that nothing waits for.
  EXPECT_EQ(latencies(step, {{0, 10}, {10, 50}, {50, 55}, {10, 20}}), (Latencies{20, 30, 5}))
      << "a phase ends with its last tile while each has cycles of its own";
  // Until 60 the forward pass would take all. Alone [0, 10) and [55, 60), half of [40, 55).
  EXPECT_EQ(latencies(step, {{0, 10}, {10, 50}, {50, 55}, {40, 60}}), (Latencies{23, 35, 2}))
      << "22.5, 35 and 2.5: the sum stays, the first of equal parts is rounded up";
  EXPECT_EQ(latencies(step, {{0, 10}, {10, 50}, {20, 26}, {5, 10}}), (Latencies{10, 37, 3}));
  // Nothing runs in [0, 5) nor [15, 20).
  EXPECT_EQ(latencies(step, {{5, 15}, {20, 24}, {24, 26}, {20, 30}}), (Latencies{27, 2, 1}));
  EXPECT_EQ(latencies(step, {{0, 1}, {0, 1}, {0, 1}, {0, 1}}), (Latencies{1, 0, 0}))
      << "a third of a cycle each";
}

} // namespace
} // namespace monet
