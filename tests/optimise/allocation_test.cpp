// Allocations of operators to cores: the tiles they give, what they cost, and searches among them.
#include "schedule/random_cases.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/scheduler.hpp"
#include "monet/tiling/allocation.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

using testing::Random;
using testing::RandomCase;

CoreCostOptions quick_costs() {
  CoreCostOptions options;
  options.lpf_limit = 3;
  options.free_unrollings = 1;
  return options;
}

RandomCase small_case(std::uint64_t seed, bool fused, int operators = 6, bool training = false) {
  testing::CaseShape shape;
  shape.network.operators = operators;
  shape.network.training = training;
  shape.system.cores = 4;
  shape.system.least_bits = 1 << 15;
  shape.fused = fused;
  return testing::random_case(seed, shape);
}

TilingOptions options_of(const RandomCase& c) {
  TilingOptions options = c.options;
  options.mapping = &c.mapping;
  return options;
}

void expect_equal(const TileGraph& a, const TileGraph& b) {
  ASSERT_EQ(a.tiles.size(), b.tiles.size());
  for (std::size_t t = 0; t < a.tiles.size(); ++t) {
    EXPECT_EQ(a.tiles[t].op, b.tiles[t].op);
    EXPECT_EQ(a.tiles[t].core, b.tiles[t].core);
    EXPECT_EQ(a.ranges(TileId(t)), b.ranges(TileId(t)));
  }
  EXPECT_EQ(a.rank, b.rank);
  EXPECT_EQ(a.stack_of, b.stack_of);
}

CoreAllocation random_allocation(Random& random,
                                 const std::vector<std::vector<OperatorAllocation>>& choices) {
  CoreAllocation allocation;
  for (const auto& of_op : choices)
    allocation.push_back(random.pick(of_op));
  return allocation;
}

TEST(AllocationTiles, WhatATileGraphHasGivesTheSameTilesAgain) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const RandomCase c = small_case(seed, seed % 2 == 1, 6, seed % 3 == 0);
    SCOPED_TRACE(seed);
    TilingOptions options = options_of(c);
    const CoreAllocation allocation = allocation_of(c.tiles);
    options.allocation = &allocation;
    expect_equal(make_tiles(c.step, c.chip, options), c.tiles);
    // and so does a mapping file
    const MappingFile mapping = mapping_of(allocation, c.step.graph, &c.mapping);
    const MappingFile read = parse_mapping(mapping_text(mapping), "written.yaml");
    options.allocation = nullptr;
    options.mapping = &read;
    expect_equal(make_tiles(c.step, c.chip, options), c.tiles);
  }
}

TEST(AllocationTiles, EveryChoiceIsLegalAndSchedulesAsItDoesAlone) {
  int scheduled = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomCase c = small_case(seed, seed % 2 == 1, 5, seed % 5 == 0);
    SCOPED_TRACE(seed);
    const TilePlanner planner(c.step, c.chip, options_of(c));
    const auto choices = allocation_choices(c.step, c.chip, planner);
    CoreCostCache costs;
    ScheduleOptions options;
    options.core_cost = quick_costs();
    options.priority = c.priority;
    Scheduler scheduler(c.step, c.chip, costs, options);
    Random random(seed);
    for (int i = 0; i < 4; ++i) {
      const CoreAllocation allocation = random_allocation(random, choices);
      const TileGraph tiles = planner.tiles(allocation);
      verify(tiles, c.step);
      for (std::size_t op = 0; op < allocation.size(); ++op) {
        for (const CoreId core : allocation[op].cores) {
          const auto& may = planner.cores(OpId(op));
          EXPECT_NE(std::find(may.begin(), may.end(), core), may.end());
        }
      }
      const MappingFile mapping = mapping_of(allocation, c.step.graph, &c.mapping);
      const MappingFile read = parse_mapping(mapping_text(mapping), "written.yaml");
      TilingOptions by_file = c.options;
      by_file.mapping = &read;
      expect_equal(make_tiles(c.step, c.chip, by_file), tiles);
      try {
        const Timeline alone = schedule(tiles, c.step, c.chip, costs, options);
        const Timeline again = scheduler.schedule(tiles);
        EXPECT_EQ(alone.makespan, again.makespan);
        EXPECT_EQ(energy_of(alone).total(), energy_of(again).total());
        verify(again, tiles, c.step, c.chip);
        ++scheduled;
      } catch (const InfeasibleError& error) {
        EXPECT_THROW((void)scheduler.schedule(tiles), InfeasibleError);
      }
    }
  }
  EXPECT_GT(scheduled, 150);
}

TEST(AllocationTiles, AMappingFileIsWrittenAsItIsRead) {
  const std::string text = R"(- name: "a \"b\" \\ : #"
  core_allocation: [0, 2]
  intra_core_tiling: ["OY, all", "B, *"]
  inter_core_tiling: ["K, 4"]
  spatial_mapping: {D1: ["K, 32", "C, 2"], D2: ["OX, 8"]}
  spatial_mapping_hint: {D1: [K, C]}
  memory_operand_links: {O: O, W: I2}
  temporal_ordering: ["OX, 112", "FX, *"]
  layer_dimension_names: [B, K]
- name: Conv
  allocation_only: true
  core_allocation: [1, 1, 0]
)";
  const MappingFile mapping = parse_mapping(text, "m.yaml");
  const std::string written = mapping_text(mapping);
  EXPECT_EQ(mapping_text(parse_mapping(written, "w.yaml")), written);
  ASSERT_EQ(mapping.entries.size(), 2U);
  const MappingFile again = parse_mapping(written, "w.yaml");
  EXPECT_EQ(again.entries[0].name, "a \"b\" \\ : #");
  EXPECT_EQ(again.entries[0].core_allocation, mapping.entries[0].core_allocation);
  EXPECT_EQ(again.entries[0].spatial_mapping.at("D1").size(), 2U);
  EXPECT_EQ(again.entries[0].temporal_ordering, mapping.entries[0].temporal_ordering);
  EXPECT_EQ(again.find("Conv", "Conv"), nullptr);
  ASSERT_NE(again.find_allocation("Conv"), nullptr);
  EXPECT_EQ(again.find_allocation("Conv")->core_allocation->size(), 3U);
}

} // namespace
} // namespace monet
