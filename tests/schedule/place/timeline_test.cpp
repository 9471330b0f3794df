// Timelines computed by hand. Tensors of 64 fp32 elements take 2048 bits: 32 cycles at 64
// bits/cycle, 64 cycles at 32 bits/cycle; 64 iterations on 16 lanes take 4 cycles.
#include "schedule/fixed_costs.hpp"
#include "schedule/hand_tiles.hpp"
#include "schedule/place/finish.hpp"
#include "schedule/small_steps.hpp"

#include "monet/base/errors.hpp"

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

TEST(Timeline, an_update_waits_for_all_of_backward) {
  StepBuilder builder;
  const TensorId w = builder.source("w", {64});
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId g = builder.elementwise("g", {x, w}, Phase::backward);
  builder.update(w, g);
  builder.output(builder.elementwise("late", {x}, Phase::backward));
  // The last operator comes after the update in the list, and takes 64 cycles on one lane of
  // core 1.
  const Timeline timeline = run(builder, make_chip({.cores = 2, .lanes = 1}), {0, 0, 1});
  const auto end_of_late = std::find_if(timeline.runs.begin(), timeline.runs.end(),
                                        [](const TileRun& r) { return r.op == OpId(2); });
  const auto update = std::find_if(timeline.runs.begin(), timeline.runs.end(),
                                   [](const TileRun& r) { return r.op == OpId(1); });
  EXPECT_GE(update->start, end_of_late->end);
}

TEST(Timeline, only_the_overlap_of_two_cuts_moves) {
  // a is cut along its rows, b along rows in another number: 4 rows of 16, halves read two quarters
  // each.
  StepBuilder builder;
  const TensorId x = builder.source("x", {4, 16}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  const TensorId b = builder.elementwise("b", {a});
  builder.output(b);
  const TileGraph tiles = testing::hand_tiles(builder.step(), {{2, {0, 1}}, {4, {0, 1}}});
  const Chip chip = make_chip({.cores = 2, .link_bandwidth = 32});
  const Timeline timeline =
      testing::schedule_with(tiles, builder.step(), chip, testing::simple_cost);
  verify(timeline, tiles, builder.step(), chip);
  // Core 0 runs rows 0 and 2, core 1 rows 1 and 3: rows 1 and 2 change place, 16 elements each.
  std::int64_t moved = 0;
  for (const Transfer& t : timeline.transfers) {
    if (t.tensor == a && t.kind == TransferKind::fetch)
      moved += timeline.bits_of(t).value;
  }
  EXPECT_EQ(moved, 2 * 16 * 32);
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST(Infeasible, too_small_an_offchip_memory) {
  const Chain chain;
  // x and b: 256 bytes each.
  EXPECT_NO_THROW(run(chain.builder, make_chip({.dram_bits = 2 * kTensorBits}), {0, 0}));
  const Chip chip = make_chip({.dram_bits = 2 * kTensorBits - 8});
  EXPECT_THROW(run(chain.builder, chip, {0, 0}), InfeasibleError);
  EXPECT_EQ(message_of([&] {
              run(chain.builder, chip, {0, 0});
            }),
            "the off-chip memory holds 511 bytes, but the step needs 512: 1 bytes too many");
}

TEST(Infeasible, no_offchip_memory) {
  const Chain chain;
  Chip chip = make_chip({});
  chip.offchip.reset();
  EXPECT_THROW(run(chain.builder, chip, {0, 0}), InfeasibleError);
  EXPECT_EQ(message_of([&] {
              run(chain.builder, chip, {0, 0});
            }),
            "'small' has no off-chip memory to hold the parameters and inputs");
}

TEST(Infeasible, no_route_to_the_offchip_memory) {
  const Chain chain;
  Chip chip = make_chip({});
  chip.links.clear();
  make_routes(chip);
  EXPECT_EQ(message_of([&] {
              run(chain.builder, chip, {0, 0});
            }),
            "'small' has no route from core 1 ('dram') to core 0 ('core0')");
}

TEST(Verify, complains_about_every_kind_of_damage) {
  const Chain chain;
  const Chip chip = make_chip({});
  const TileGraph tiles = testing::whole_tiles(chain.builder.step(), {0, 0});
  const Timeline good =
      testing::schedule_with(tiles, chain.builder.step(), chip, testing::simple_cost);
  const auto complaint = [&](const std::function<void(Timeline&)>& damage) {
    Timeline bad = good;
    damage(bad);
    return message_of([&] { verify(bad, tiles, chain.builder.step(), chip); });
  };
  using ::testing::HasSubstr;
  EXPECT_EQ(complaint([](Timeline&) {}), "");
  EXPECT_THAT(complaint([](Timeline& t) { t.runs.pop_back(); }), HasSubstr("not every tile"));
  EXPECT_THAT(complaint([](Timeline& t) { t.runs[1].start = {35}; }),
              HasSubstr("two tiles at once"));
  EXPECT_THAT(complaint([](Timeline& t) { t.costs[0].macs = 1; }), HasSubstr("MACs"));
  EXPECT_THAT(complaint([](Timeline& t) { t.transfers[0].end = {31}; }), HasSubstr("faster"));
  EXPECT_THAT(complaint([](Timeline& t) { t.transfers[1].start = {31}; }),
              HasSubstr("more than its 64"));
  const auto on_core = std::find_if(good.stays.begin(), good.stays.end(), [&](const Stay& stay) {
    return good.place_of(stay).memory == CoreId(0);
  });
  const std::ptrdiff_t stay = on_core - good.stays.begin();
  EXPECT_THAT(complaint([&](Timeline& t) { t.stays.erase(t.stays.begin() + stay); }),
              HasSubstr("is not there"));
  EXPECT_THAT(
      complaint([&](Timeline& t) { t.stays[static_cast<std::size_t>(stay)].end = Stay::kKept; }),
      HasSubstr("is not empty at the end"));
  EXPECT_THAT(complaint([&](Timeline& t) { t.places.at(on_core->place).bits = {1 << 21}; }),
              HasSubstr("bits at cycle"));
  EXPECT_THAT(complaint([](Timeline& t) { t.transfers.pop_back(); }), HasSubstr("not written"));
  EXPECT_THAT(complaint([](Timeline& t) { t.phases[0].end = {71}; }), HasSubstr("cover"));
  EXPECT_THAT(complaint([](Timeline& t) { t.live[1].live[4] += 1; }), HasSubstr("live memory"));
  EXPECT_THAT(complaint([](Timeline& t) { t.peak.time = {33}; }), HasSubstr("peak"));
  EXPECT_THAT(complaint([](Timeline& t) { t.makespan = {73}; }), HasSubstr("makespan"));
}

} // namespace
} // namespace monet
