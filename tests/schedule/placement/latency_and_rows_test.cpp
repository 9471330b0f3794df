// Latency of links, and rows of the off-chip memory: bookings and whole timelines by hand, and
// timelines that are made wrong. Tensors are fp32; simple_cost() gives a tile of n iterations
// ceil(n / 16) cycles.
#include "schedule/fixed_costs.hpp"
#include "schedule/hand_tiles.hpp"
#include "schedule/placement/network.hpp"
#include "schedule/shared/bounds.hpp"
#include "schedule/shared/critical_path.hpp"
#include "schedule/small_steps.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace monet {
namespace {

using testing::make_chip;
using testing::StepBuilder;
using Span = std::pair<std::int64_t, std::int64_t>;

CoreId core(std::size_t i) {
  return CoreId(i);
}
TransferRequest request(std::size_t from, std::size_t to, std::int64_t bits,
                        std::int64_t rows = 0) {
  return {.from = core(from), .to = core(to), .bits = {bits}, .rows = rows};
}

/// Cores in a chain 0 > 1 > 2 > ... of 32 bits a cycle, whose links have these latencies.
Chip chain(const std::vector<std::int64_t>& latencies) {
  Chip chip = make_chip({.cores = static_cast<int>(latencies.size()) + 1});
  for (std::size_t i = 0; i < latencies.size(); ++i) {
    Link link{"", {core(i), core(i + 1)}, LinkReach::forward, 32, 2};
    link.latency_cycles = latencies[i];
    chip.links.push_back(link);
  }
  make_routes(chip);
  return chip;
}

TEST(Latency, is_the_sum_over_the_hops_of_a_transfer) {
  const std::vector<std::int64_t> latencies{3, 0, 11, 5};
  const Chip chip = chain(latencies);
  for (std::size_t hops = 1; hops <= latencies.size(); ++hops) {
    for (const std::int64_t bits : {1, 32, 33, 3200}) {
      Network network(chip);
      const auto sum =
          std::accumulate(latencies.begin(), latencies.begin() + static_cast<std::ptrdiff_t>(hops),
                          std::int64_t{0});
      const TransferRequest wanted = request(0, hops, bits);
      EXPECT_EQ(network.arrival(wanted, 7), 7 + (bits + 31) / 32 + sum);
      EXPECT_EQ(network.duration(wanted), (bits + 31) / 32 + sum);
      EXPECT_EQ(network.occupancy(wanted), (bits + 31) / 32);
      const Booking booking = network.reserve(wanted, 7).front();
      EXPECT_EQ(Span(booking.start, booking.end), Span(7, 7 + (bits + 31) / 32));
      EXPECT_EQ(network.arrival(booking, core(hops)), 7 + (bits + 31) / 32 + sum);
      // The links are free again once the last bit was sent.
      EXPECT_EQ(network.reserve(wanted, 0).front().end,
                booking.end + (bits + 31) / 32 - (bits <= 7 * 32 ? booking.end : 0));
    }
  }
}

TEST(Latency, is_that_of_each_receivers_own_way) {
  const Chip chip = chain({3, 4});
  Network network(chip);
  const std::vector<CoreId> also{core(1)};
  TransferRequest both = request(0, 2, 320);
  both.also = also;
  EXPECT_EQ(network.arrival(both, 0), 10 + 7);
  const Booking booking = network.reserve(both, 0).front();
  EXPECT_EQ(booking.end, 10);
  EXPECT_EQ(network.arrival(booking, core(1)), 13);
  EXPECT_EQ(network.arrival(booking, core(2)), 17);
}

TEST(Latency, decides_between_two_ways) {
  // 0 to 2 by way of 1 (first, 20 cycles of latency) or of 3.
  Chip chip = make_chip({.cores = 4});
  for (const auto& [a, b] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 2}, {0, 3}, {3, 2}}) {
    chip.links.push_back({"", {core(a), core(b)}, LinkReach::forward, 32});
    chip.links.back().latency_cycles = b == 1 ? 20 : 0;
  }
  make_routes(chip);
  Network network(chip);
  EXPECT_EQ(network.duration(request(0, 2, 320)), 10);
  // The way by 3 is taken until it is 20 cycles behind.
  for (const std::int64_t arrival : {10, 20, 30, 30}) {
    EXPECT_EQ(network.arrival(request(0, 2, 320), 0), arrival);
    network.reserve(request(0, 2, 320), 0);
  }
}

Chip with_rows(const DramRows& rows, int cores = 1, std::int64_t links = 0) {
  Chip chip = make_chip({.cores = cores, .link_bandwidth = links});
  chip.cores.back().memories[0].dram_rows = rows;
  return chip;
}

TEST(Rows, occupy_the_port) {
  // 64 bits a cycle; 6400 bits in 100 cycles. 50 rows of 2 cycles in 4 banks: rows 5, 9, ... 49
  // wait: 12 rounds of 40 + 2 - 8 = 34 cycles.
  const Chip chip = with_rows({4, 128, 40}, 2);
  Network network(chip);
  EXPECT_EQ(network.occupancy(request(2, 0, 6400, 50)), 100 + 40 + 12 * 34);
  EXPECT_EQ(network.occupancy(request(2, 0, 6400, 4)), 100 + 40); // of 25 cycles
  const Booking first = network.reserve(request(2, 0, 6400, 50), 0).front();
  EXPECT_EQ(Span(first.start, first.end), Span(0, 548));
  EXPECT_EQ(first.rows, 50);
  EXPECT_EQ(network.reserve(request(2, 1, 64, 1), 0).front().start, 548);
  const Booking write = network.reserve(request(1, 2, 640, 1), 0).front();
  EXPECT_EQ(write.end - write.start, 10 + 40);
}

TEST(Rows, are_opened_anew_by_each_piece) {
  const Chip chip = with_rows({16, 6400, 40}, 2);
  Network network(chip);
  // Busy from 200 on for 40 + 60 cycles; 200 cycles before are enough for 160 of 300.
  EXPECT_EQ(network.reserve(request(2, 0, 64 * 60, 1), 200).front().end, 300);
  const TransferRequest wanted = request(2, 1, 64 * 300, 3);
  EXPECT_EQ(network.occupancy(wanted), 340);
  EXPECT_EQ(network.arrival(wanted, 0), 300 + 40 + 140);
  const auto pieces = network.reserve(wanted, 0);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(Span(pieces[0].start, pieces[0].end), Span(0, 200));
  EXPECT_EQ(pieces[0].bits.value, 64 * 160);
  EXPECT_EQ(pieces[0].rows, 2); // 1.6 of them
  EXPECT_EQ(Span(pieces[1].start, pieces[1].end), Span(300, 480));
  EXPECT_EQ(pieces[1].bits.value, 64 * 140);
  EXPECT_EQ(pieces[1].rows, 2);
}

Timeline run(const TileGraph& tiles, const StepBuilder& builder, const Chip& chip) {
  Timeline timeline = testing::schedule_with(tiles, builder.step(), chip, testing::simple_cost);
  verify(timeline, tiles, builder.step(), chip);
  return timeline;
}

/// x [64] -> a on core 0 -> b on core 1, which is left off-chip: 2048 bits each time.
struct TwoCores {
  StepBuilder builder;
  TileGraph tiles;
  TwoCores() {
    const TensorId x = builder.source("x", {64}, TensorKind::input);
    builder.output(builder.elementwise("b", {builder.elementwise("a", {x})}));
    tiles = testing::whole_tiles(builder.step(), {0, 1});
  }
};

TEST(Latency, delays_readers_and_the_end_of_the_step) {
  const TwoCores step;
  Chip chip = make_chip({.cores = 2, .link_bandwidth = 32});
  const std::int64_t without = run(step.tiles, step.builder, chip).makespan.value;
  EXPECT_EQ(without, 32 + 4 + 64 + 4 + 32); // read, a, to core 1, b, written
  for (Link& link : chip.links)
    link.latency_cycles = link.reach == LinkReach::offchip_both ? 100 : 7;
  const Timeline timeline = run(step.tiles, step.builder, chip);
  EXPECT_EQ(timeline.makespan.value, without + 100 + 7 + 100);
  EXPECT_EQ(timeline.runs[0].start.value, 32 + 100);
  EXPECT_EQ(timeline.runs[1].start.value, 32 + 100 + 4 + 64 + 7);
  EXPECT_EQ(timeline.transfers.back().end.value, timeline.makespan.value - 100);
  EXPECT_EQ(timeline.phases.back().end, timeline.makespan);
  // The chain is explained without waits.
  const CriticalPath path = critical_path(timeline, step.builder.step(), chip);
  EXPECT_EQ(path.sums[static_cast<std::size_t>(Limit::order)].value, 0);
  EXPECT_EQ(path.segments.size(), 5U);
}

TEST(Latency, holds_a_core_for_what_flows_by) {
  // x [64] has no room on the core and flows by, in and out: 32 cycles each way of one port beside
  // 4 of computing, which begins with the first read and ends no sooner than the last.
  StepBuilder builder;
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  builder.output(builder.elementwise("a", {x}));
  const TileGraph tiles = testing::whole_tiles(builder.step(), {0});
  Chip chip = make_chip({.core_bits = 64});
  const auto with_latency = [&](std::int64_t cycles) {
    chip.links[0].latency_cycles = cycles;
    const Timeline timeline = run(tiles, builder, chip);
    EXPECT_EQ(timeline.runs[0].start.value, 0);
    return Span(timeline.runs[0].end.value, timeline.makespan.value);
  };
  EXPECT_EQ(with_latency(0), Span(64, 64));
  // All is read at 41; the write takes the port until 64.
  EXPECT_EQ(with_latency(9), Span(64, 64 + 9));
  // All is read at 82; the last bit written leaves then.
  EXPECT_EQ(with_latency(50), Span(82, 82 + 50));
}

TEST(Rows, delay_reads_and_writes_of_the_offchip_memory_alone) {
  const TwoCores step;
  // 2048 bits are two rows, which two banks open side by side.
  const Chip chip = with_rows({2, 1024, 40}, 2, 32);
  const Timeline timeline = run(step.tiles, step.builder, chip);
  EXPECT_EQ(timeline.makespan.value, (40 + 32) + 4 + 64 + 4 + (40 + 32));
  std::vector<std::int64_t> rows;
  for (const Transfer& t : timeline.transfers)
    rows.push_back(timeline.cost_of(t).rows);
  EXPECT_EQ(rows, (std::vector<std::int64_t>{2, 0, 2}));
  // One bank opens one after the other: 80 + 32.
  const Timeline one = run(step.tiles, step.builder, with_rows({1, 1024, 40}, 2, 32));
  EXPECT_EQ(one.makespan.value, (80 + 32) + 4 + 64 + 4 + (80 + 32));
}

TEST(Rows, are_those_of_what_flows_by) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  builder.output(builder.elementwise("a", {x}));
  const TileGraph tiles = testing::whole_tiles(builder.step(), {0});
  Chip chip = make_chip({.core_bits = 64});
  chip.cores.back().memories[0].dram_rows = DramRows{1, 512, 10};
  const Timeline timeline = run(tiles, builder, chip);
  EXPECT_EQ(timeline.makespan.value, 2 * (4 * 10 + 32));
}

/// Rows of the transfers that read a tensor.
std::int64_t rows_read(const Timeline& timeline, TensorId tensor, const Chip& chip) {
  std::int64_t rows = 0;
  for (const Transfer& t : timeline.transfers)
    rows += t.tensor == tensor && timeline.route_of(t).from == chip.offchip
                ? timeline.cost_of(t).rows
                : 0;
  return rows;
}

/// x [1, 16] times w [16, 64], fp32, a loop cut into as many tiles as there are cores.
struct CutWeight {
  StepBuilder builder;
  TensorId w;
  TileGraph tiles;
  CutWeight(std::uint32_t loop, const std::vector<CoreId>& cores) {
    const TensorId x = builder.source("x", {1, 16}, TensorKind::input);
    w = builder.source("w", {16, 64});
    builder.output(builder.product("a", x, w));
    OperatorTiling tiling = uncut(builder.graph().operators()[0].nest);
    cut(tiling, {loop, static_cast<std::uint32_t>(cores.size())});
    append_tiles(tiles, OpId(std::size_t{0}), std::move(tiling), cores);
    make_edges(tiles, builder.graph());
    rank_in_order(tiles);
  }
};

TEST(Rows, follow_the_way_in_which_a_weight_is_cut) {
  // w [16, 64] fp32: a line has 2048 bits, a row 1024. Four tiles take a fourth of the columns (512
  // bits of each line, each half a row), or of the lines (eight rows in one run).
  const auto read = [](std::uint32_t loop) {
    const CutWeight step(loop, {core(0), core(1), core(2), core(3)});
    const Chip chip = with_rows({4, 1024, 5}, 4, 64);
    return rows_read(run(step.tiles, step.builder, chip), step.w, chip);
  };
  EXPECT_EQ(read(1), 4 * 16);
  EXPECT_EQ(read(2), 32);
}

TEST(Checks, refuse_runs_counted_as_one) {
  // Core 0's column of w [16, 64] touches 16 rows of 1024 bits; its 8192 bits would fill 8.
  const CutWeight step(1, {core(0), core(0), core(0), core(0)});
  const Chip chip = with_rows({4, 1024, 5});
  Timeline timeline = run(step.tiles, step.builder, chip);
  EXPECT_EQ(rows_read(timeline, step.w, chip), 4 * 16);
  for (TransferCost& cost : timeline.transfer_costs)
    cost.rows = ceil_div(cost.bits.value, 1024);
  EXPECT_THROW(verify(timeline, step.tiles, step.builder.step(), chip), InternalError);
}

TEST(Rows, of_parts_side_by_side_count_once) {
  // a reads w in halves of its lines, b in whole: two parts of 512 bits, both in one row, come to
  // b in one transfer.
  StepBuilder builder;
  const TensorId w = builder.source("w", {2, 16});
  builder.output(builder.elementwise("a", {w}));
  builder.output(builder.elementwise("b", {w}));
  const TileGraph tiles = testing::hand_tiles(builder.step(), {{2, {0, 1}}, {1, {2}}});
  const Chip chip = with_rows({4, 1024, 5}, 3);
  const Timeline timeline = run(tiles, builder, chip);
  for (const Transfer& t : timeline.transfers) {
    EXPECT_EQ(timeline.cost_of(t).rows, 1);
  }
}

TEST(Checks, refuse_a_timeline_that_forgets_latency_or_rows) {
  const TwoCores step;
  Chip chip = with_rows({2, 1024, 40}, 2, 32);
  for (Link& link : chip.links)
    link.latency_cycles = 7;
  const Timeline right = run(step.tiles, step.builder, chip);
  const auto refused = [&](auto change) {
    Timeline wrong = right;
    change(wrong);
    EXPECT_THROW(verify(wrong, step.tiles, step.builder.step(), chip), InternalError);
  };
  refused([](Timeline& t) { t.routes[0].latency = {6}; });
  refused([](Timeline& t) { t.routes[1].latency = {8}; });
  refused([](Timeline& t) { t.routes[2].latency.clear(); });
  refused([](Timeline& t) { t.transfer_costs[0].rows = 1; }); // 2048 bits do not fit in
  refused([](Timeline& t) { t.transfer_costs[0].rows = 0; });
  refused([](Timeline& t) { t.transfer_costs[0].rows = 3; }); // takes 40 + 11 - 22 more
  refused([](Timeline& t) { t.transfer_costs[1].rows = 1; }); // not from or to off-chip
  refused([](Timeline& t) { --t.transfers[0].end.value; });
  refused([](Timeline& t) { --t.runs[1].start.value; }); // its operand comes a cycle later
  // As scheduled without either.
  Chip plain = make_chip({.cores = 2, .link_bandwidth = 32});
  const Timeline early = run(step.tiles, step.builder, plain);
  EXPECT_THROW(verify(early, step.tiles, step.builder.step(), chip), InternalError);
}

} // namespace
} // namespace monet
