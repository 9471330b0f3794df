// Bounds of random cases: what must be moved does not depend on the tiling, and hardware that is
// added makes no bound worse.
#include "level.hpp"
#include "schedule/fixed_costs.hpp"
#include "schedule/random_cases.hpp"
#include "schedule/replay.hpp"
#include "schedule/shared/bounds.hpp"

#include "monet/schedule/schedule.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

const int kCases = test::cases(160, 2400, 20000);

using testing::CaseShape;
using testing::RandomCase;

Bounds bounds_of(const RandomCase& c, const Chip& chip) {
  const Timeline timeline =
      testing::schedule_with(c.tiles, c.step, chip, testing::hashed_cost, c.priority);
  const auto problem =
      testing::impossible(testing::plain(timeline), testing::plain(c.tiles), c.step, chip);
  EXPECT_FALSE(problem) << *problem;
  const Bounds bounds = lower_bounds(timeline, c.tiles, c.step, chip);
  EXPECT_GE(timeline.makespan, bounds.latency());
  const OffchipTotals moved = offchip_traffic(timeline, chip);
  EXPECT_GE(moved.read, bounds.offchip_read);
  EXPECT_GE(moved.written, bounds.offchip_written);
  return bounds;
}

CaseShape shape_of(std::uint64_t seed) {
  CaseShape shape;
  shape.network.training = seed % 3 == 0;
  shape.network.operators = seed % 3 == 0 ? 4 : 6;
  return shape;
}

TEST(Bounds, compulsory_traffic_is_that_of_the_unfused_graph) {
  for (std::uint64_t seed = 900001; seed < 900001U + static_cast<std::uint64_t>(kCases) / 4;
       ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomCase c = testing::random_case(seed, shape_of(seed));
    const Bounds layers = bounds_of(c, c.chip);
    c.options.mode = TilingMode::fused;
    c.tiles = c.tiled();
    const Bounds fused = bounds_of(c, c.chip);
    EXPECT_EQ(layers.offchip_read, fused.offchip_read);
    EXPECT_EQ(layers.offchip_written, fused.offchip_written);
    if (HasFailure())
      return;
  }
}

TEST(ScheduleFloor, RisesAndIsNeverAboveWhatTheScheduleComesTo) {
  double close = 0, cases = 0, given_up = 0;
  for (std::uint64_t seed = 920001; seed < 920001U + static_cast<std::uint64_t>(kCases) / 2;
       ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomCase c = testing::random_case(seed, shape_of(seed));
    if (seed % 2 == 0) {
      c.options.mode = TilingMode::fused;
      c.tiles = c.tiled();
    }
    const Timeline timeline =
        testing::schedule_with(c.tiles, c.step, c.chip, testing::hashed_cost, c.priority);
    const double energy = energy_of(timeline).total().picojoules().value;
    std::vector<ScheduleFloor> floors;
    ScheduleOptions options;
    options.priority = c.priority;
    options.hopeless = [&](const ScheduleFloor& floor) {
      floors.push_back(floor);
      return false;
    };
    const auto same =
        testing::schedule_with(c.tiles, c.step, c.chip, testing::hashed_cost, options);
    ASSERT_TRUE(same.complete);
    EXPECT_EQ(same.makespan, timeline.makespan);
    ASSERT_FALSE(floors.empty());
    for (std::size_t i = 0; i < floors.size(); ++i) {
      EXPECT_LE(floors[i].latency, timeline.makespan);
      EXPECT_LE(floors[i].energy.value, energy);
      EXPECT_GE(floors[i].latency, floors[i > 0 ? i - 1 : 0].latency);
    }
    close += static_cast<double>(floors.back().latency.value) /
             static_cast<double>(timeline.makespan.value) / (kCases / 2);
    cases += 1;
    std::size_t asked = 0;
    options.hopeless = [&](const ScheduleFloor&) { return ++asked == floors.size(); };
    given_up +=
        !testing::schedule_with(c.tiles, c.step, c.chip, testing::hashed_cost, options).complete;
    if (HasFailure())
      return;
  }
  EXPECT_EQ(given_up, cases);
  EXPECT_GT(close, 0.7);
}

/// A second way between the off-chip memory and a core, as wide as the first.
Chip with_another_link(Chip chip, std::size_t core) {
  for (const auto& [from, to] :
       {std::pair(*chip.offchip, CoreId(core)), std::pair(CoreId(core), *chip.offchip)}) {
    Link link;
    link.name = fmt::format("more{}", chip.links.size());
    link.cores = {from, to};
    link.reach = LinkReach::forward;
    link.bandwidth_bits_per_cycle = chip.links.back().bandwidth_bits_per_cycle;
    chip.links.push_back(link);
  }
  make_routes(chip);
  return chip;
}

/// A core that the tiles do not use, on every bus.
Chip with_another_core(Chip chip) {
  const CoreId added = *chip.offchip;
  const CoreId offchip(added.index() + 1);
  Core core = chip.cores.front();
  core.name = "added";
  chip.cores.insert(chip.cores.end() - 1, core);
  chip.offchip = offchip;
  for (Link& link : chip.links) {
    const bool bus = link.cores.size() > 2 || link.reach != LinkReach::forward;
    for (CoreId& id : link.cores)
      id = id == added ? offchip : id;
    if (bus)
      link.cores.push_back(added);
  }
  make_routes(chip);
  return chip;
}

void expect_no_worse(const Bounds& more, const Bounds& less) {
  EXPECT_LE(more.critical_path, less.critical_path);
  EXPECT_LE(more.busiest_core, less.busiest_core);
  EXPECT_LE(more.busiest_links, less.busiest_links);
  EXPECT_LE(more.offchip_port, less.offchip_port);
  EXPECT_LE(more.offchip_read, less.offchip_read);
  EXPECT_LE(more.offchip_written, less.offchip_written);
}

TEST(Bounds, no_worse_with_another_link_or_core) {
  for (std::uint64_t seed = 950001; seed < 950001U + static_cast<std::uint64_t>(kCases) / 4;
       ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    CaseShape shape = shape_of(seed);
    shape.fused = seed % 2 == 0;
    const RandomCase c = testing::random_case(seed, shape);
    const Bounds before = bounds_of(c, c.chip);
    expect_no_worse(bounds_of(c, with_another_link(c.chip, seed % c.chip.compute_cores())), before);
    expect_no_worse(bounds_of(c, with_another_core(c.chip)), before);
    if (HasFailure())
      return;
  }
}

} // namespace
} // namespace monet
