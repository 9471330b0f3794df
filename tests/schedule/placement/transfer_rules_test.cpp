// What each rule of ours gains over the reference scheduler's, on a case made for it. Tensors of 64
// fp32 elements take 2048 bits; simple_cost() gives 4 cycles to 64 iterations.
#include "schedule/fixed_costs.hpp"
#include "schedule/hand_tiles.hpp"
#include "schedule/shared/bounds.hpp"
#include "schedule/small_steps.hpp"

#include "monet/schedule/schedule.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

using testing::make_chip;
using testing::StepBuilder;

Timeline run(const TileGraph& tiles, const StepBuilder& builder, const Chip& chip,
             const TransferRules& rules) {
  Timeline timeline = testing::schedule_with(tiles, builder.step(), chip, testing::simple_cost,
                                             Priority::latency, rules);
  verify(timeline, tiles, builder.step(), chip);
  return timeline;
}

TEST(TransferRules, multicast_reads_weights_once_for_all_cores) {
  // Four cores, each a fourth of the rows, all of the weights w [16, 16], 8192 bits: 128 cycles of
  // the off-chip port for one core, 512 for four.
  StepBuilder builder;
  const TensorId x = builder.source("x", {4, 16}, TensorKind::input);
  const TensorId w = builder.source("w", {16, 16});
  builder.output(builder.product("a", x, w));
  const TileGraph tiles = testing::hand_tiles(builder.step(), {{4, {0, 1, 2, 3}}});
  const Chip chip = make_chip({.cores = 4});
  const Timeline with = run(tiles, builder, chip, {});
  const Timeline without = run(tiles, builder, chip, {.multicast = false});
  EXPECT_EQ(offchip_traffic(with, chip).read.value, 8192 + 2048);
  EXPECT_EQ(offchip_traffic(without, chip).read.value, 4 * 8192 + 2048);
  EXPECT_LE(with.makespan.value + 3 * 128, without.makespan.value);
  EXPECT_LT(energy_of(with).offchip, energy_of(without).offchip);
}

TEST(TransferRules, exact_overlap_moves_what_is_read) {
  // a is cut into halves, b into quarters on the other core: b's quarters read half a piece each.
  StepBuilder builder;
  const TensorId x = builder.source("x", {4, 16}, TensorKind::input);
  builder.output(builder.elementwise("b", {builder.elementwise("a", {x})}));
  const TileGraph tiles = testing::hand_tiles(builder.step(), {{2, {0}}, {4, {1, 0}}});
  const Chip chip = make_chip({.cores = 2, .link_bandwidth = 32});
  const auto moved = [&](const Timeline& timeline) {
    std::int64_t bits = 0;
    for (const Transfer& t : timeline.transfers)
      bits += timeline.route_of(t).from == CoreId(std::size_t{0}) &&
                      timeline.route_of(t).to.front() == CoreId(std::size_t{1})
                  ? timeline.bits_of(t).value
                  : 0;
    return bits;
  };
  const Timeline with = run(tiles, builder, chip, {});
  const Timeline without = run(tiles, builder, chip, {.exact_overlap = false});
  EXPECT_EQ(moved(with), 2 * 16 * 32);
  EXPECT_EQ(moved(without), 4 * 16 * 32);
  EXPECT_LT(with.makespan, without.makespan);
}

TEST(TransferRules, free_routing_stays_on_the_mesh) {
  // A mesh of 6 x 6 cores like Simba's, links of 64: from core 0 to core 3 three hops are one
  // transfer of 32 cycles; through the off-chip memory, whose port is 16 wide, they are a write and
  // a read of 128 each.
  StepBuilder builder;
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  builder.output(builder.elementwise("b", {builder.elementwise("a", {x})}));
  Chip chip = make_chip({.cores = 36, .dram_bandwidth = 16});
  const auto join = [&](std::size_t a, std::size_t b) {
    chip.links.push_back({"", {CoreId(a), CoreId(b)}, LinkReach::forward, 64});
    chip.links.push_back({"", {CoreId(b), CoreId(a)}, LinkReach::forward, 64});
  };
  for (std::size_t core = 0; core < 36; ++core) {
    if (core % 6 < 5)
      join(core, core + 1);
    if (core < 30)
      join(core, core + 6);
  }
  make_routes(chip);
  const TileGraph tiles = testing::whole_tiles(builder.step(), {0, 3});
  const Timeline with = run(tiles, builder, chip, {});
  const Timeline without = run(tiles, builder, chip, {.free_routing = false});
  EXPECT_EQ(with.makespan.value, 128 + 4 + 32 + 4 + 128);
  EXPECT_EQ(without.makespan.value, 128 + 4 + 2 * 128 + 4 + 128);
  EXPECT_LT(energy_of(with).offchip, energy_of(without).offchip);
}

TEST(TransferRules, shared_links_let_two_cores_load_at_once) {
  // Two cores with own off-chip links of 32 behind a port of 64.
  StepBuilder builder;
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId y = builder.source("y", {64}, TensorKind::input);
  builder.output(builder.elementwise("a", {x}));
  builder.output(builder.elementwise("b", {y}));
  Chip chip = make_chip({.cores = 2});
  chip.links.clear();
  for (std::size_t i = 0; i < 2; ++i) {
    chip.links.push_back({"", {CoreId(std::size_t{2}), CoreId(i)}, LinkReach::forward, 32});
    chip.links.push_back({"", {CoreId(i), CoreId(std::size_t{2})}, LinkReach::forward, 32});
  }
  make_routes(chip);
  const TileGraph tiles = testing::whole_tiles(builder.step(), {0, 1});
  EXPECT_EQ(run(tiles, builder, chip, {}).makespan.value, 64 + 4 + 64);
  // One after the other: x comes, a runs and is written; only then the port is free for y.
  EXPECT_EQ(run(tiles, builder, chip, {.share_links = false}).makespan.value, 2 * (64 + 4 + 64));
}

TEST(TransferRules, spills_go_to_cores_with_room) {
  // a has to go until b and d are made; e reads it. The other core is idle.
  StepBuilder builder;
  const TensorId x = builder.source("x", {64}, TensorKind::input);
  const TensorId y = builder.source("y", {64}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  const TensorId d = builder.elementwise("d", {builder.elementwise("b", {y})});
  builder.output(builder.elementwise("e", {a, d}));
  const TileGraph tiles =
      testing::hand_tiles(builder.step(), {{1, {0}}, {1, {0}}, {1, {0}}, {1, {0}}});
  const Chip chip = make_chip({.cores = 2, .core_bits = 3 * 2048 - 1, .link_bandwidth = 64});
  const Timeline with = run(tiles, builder, chip, {});
  const Timeline without = run(tiles, builder, chip, {.spills_to_cores = false});
  EXPECT_EQ(offchip_traffic(without, chip).written.value -
                offchip_traffic(with, chip).written.value,
            2048);
  EXPECT_EQ(offchip_traffic(without, chip).read.value - offchip_traffic(with, chip).read.value,
            2048);
  EXPECT_LT(with.makespan, without.makespan);
  // A core without room to spare takes nothing in.
  Chip full = chip;
  full.cores[1].memories.back().size = {2048};
  const Timeline no_room = run(tiles, builder, full, {});
  EXPECT_EQ(offchip_traffic(no_room, full).written.value,
            offchip_traffic(without, chip).written.value);
}

} // namespace
} // namespace monet
