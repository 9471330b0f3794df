// Allocations of operators to cores: the tiles they give, what they cost, and searches among them.
#include "schedule/random_cases.hpp"
#include "schedule/schedule_alone.hpp"
#include "schedule/small_steps.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/tiling/allocation.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

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
  shape.system.min_bits = 1 << 15;
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
    TileCostCache tile_costs(c.step, c.chip, costs, options.core_cost);
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
        const Timeline alone = testing::schedule_alone(tiles, c.step, c.chip, costs, options);
        const Timeline again = schedule(tiles, c.step, c.chip, tile_costs.of(tiles), options);
        EXPECT_EQ(alone.makespan, again.makespan);
        EXPECT_EQ(energy_of(alone).total(), energy_of(again).total());
        verify(again, tiles, c.step, c.chip);
        ++scheduled;
      } catch (const InfeasibleError& error) {
        EXPECT_THROW((void)schedule(tiles, c.step, c.chip, tile_costs.of(tiles), options),
                     InfeasibleError);
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

ScheduleOptions schedule_of(const RandomCase& c) {
  ScheduleOptions options;
  options.core_cost = quick_costs();
  options.priority = c.priority;
  return options;
}

constexpr Objective kObjectives[] = {Objective::latency, Objective::energy, Objective::edp,
                                     Objective::memory, Objective::dram};

/// The least of each objective over all plans; the space is small.
std::vector<double> brute_force(AllocationEvaluator& evaluator) {
  std::vector<double> least(std::size(kObjectives), std::numeric_limits<double>::infinity());
  AllocationPlan plan = evaluator.automatic();
  for (std::size_t op = 0; op < plan.size();) {
    const StepFigures cost = evaluator.evaluate(plan);
    for (std::size_t i = 0; i < least.size(); ++i)
      least[i] = std::min(least[i], cost.value(kObjectives[i]));
    for (op = 0; op < plan.size() && ++plan[op] == evaluator.choices()[op].size(); ++op)
      plan[op] = 0;
  }
  return least;
}

TEST(AllocationSearch, EqualsBruteForceAndNoPlanIsBelowABound) {
  int compared = 0;
  int trivial = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomCase c =
        small_case(1000 + seed, seed % 2 == 1, seed % 3 == 0 ? 3 : 2, seed % 4 == 0);
    SCOPED_TRACE(seed);
    AllocationLimits limits;
    limits.loops = 2;
    AllocationEvaluator evaluator(c.step, c.chip, options_of(c), schedule_of(c), limits);
    if (evaluator.plans() > 300)
      continue;
    const std::vector<double> least = brute_force(evaluator);
    if (std::isinf(least[0]))
      continue;
    ++compared;
    const AllocationBounds bounds(evaluator, {});
    for (std::size_t i = 0; i < least.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_LE(bounds.bound(kObjectives[i]), least[i]);
      AllocationEvaluator again(c.step, c.chip, options_of(c), schedule_of(c), limits);
      AllocationSearchOptions options;
      options.objective = kObjectives[i];
      const AllocationResult result = search_allocation(again, options, {});
      EXPECT_TRUE(result.exact);
      EXPECT_EQ(result.certificate.best, least[i]);
      EXPECT_EQ(result.certificate.gap(), 0);
      trivial += result.evaluations == 1 ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_LT(trivial, 2 * compared); // of four searches each
}

TEST(AllocationBounds, HoldForRandomPlansWhateverTheyBeginWith) {
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const RandomCase c = small_case(5000 + seed, seed % 2 == 1, 7, seed % 3 == 0);
    SCOPED_TRACE(seed);
    AllocationEvaluator evaluator(c.step, c.chip, options_of(c), schedule_of(c));
    const AllocationBounds bounds(evaluator, {});
    Random random(seed);
    for (int i = 0; i < 6; ++i) {
      AllocationPlan plan;
      for (const auto& choices : evaluator.choices())
        plan.push_back(static_cast<std::uint32_t>(random.index(choices.size())));
      const StepFigures cost = evaluator.evaluate(plan);
      for (const Objective objective : kObjectives) {
        double before = 0;
        for (std::size_t n = 0; n <= plan.size(); ++n) {
          const double bound = bounds.bound(objective, std::span(plan).first(n));
          EXPECT_LE(bound, cost.value(objective)) << n;
          before = std::max(before, bound);
        }
        EXPECT_LE(bounds.bound(objective), cost.value(objective));
      }
      checked += cost.feasible ? 1 : 0;
    }
  }
  EXPECT_GT(checked, 400);
}

/// The latency bound of independent products on cores of so many lanes, where nothing else takes
/// time.
double bound_of_products(const std::vector<std::int64_t>& lanes) {
  testing::StepBuilder builder;
  for (int i = 0; i < 24; ++i) {
    const TensorId x = builder.source(fmt::format("x{}", i), {64, 64}, TensorKind::input);
    builder.output(builder.product(fmt::format("y{}", i), x, builder.source("w", {64, 64})));
  }
  constexpr std::int64_t kWide = 1 << 20;
  Chip chip = testing::make_chip(
      {.cores = static_cast<int>(lanes.size()), .link_bandwidth = kWide, .dram_bandwidth = kWide});
  for (std::size_t c = 0; c < lanes.size(); ++c) {
    chip.cores[c].array[0].size = lanes[c];
    chip.cores[c].memories = {testing::one_memory("sram", 1 << 24, kWide)};
  }
  ScheduleOptions options;
  options.core_cost = quick_costs();
  AllocationEvaluator evaluator(builder.step(), chip, {}, options);
  return AllocationBounds(evaluator, {}).bound(Objective::latency);
}

// Cores that take a and b cycles for everything take a b / (a + b) where they share it.
TEST(AllocationBounds, UnequalCoresShareTheWork) {
  for (const std::int64_t lanes : {4, 8, 16}) {
    const double a = bound_of_products({2});
    const double b = bound_of_products({lanes});
    EXPECT_GT(a, 1.5 * b);
    const double both = bound_of_products({2, lanes});
    EXPECT_LE(both, a * b / (a + b) * 1.001);
    EXPECT_GT(both, a * b / (a + b) * 0.98);
  }
}

void expect_equal(const AllocationResult& a, const AllocationResult& b) {
  EXPECT_EQ(a.best.plan, b.best.plan);
  EXPECT_EQ(a.certificate.best, b.certificate.best);
  EXPECT_EQ(a.certificate.bound, b.certificate.bound);
  EXPECT_EQ(a.evaluations, b.evaluations);
  ASSERT_EQ(a.front.size(), b.front.size());
  for (std::size_t i = 0; i < a.front.size(); ++i) {
    EXPECT_EQ(a.front[i].plan, b.front[i].plan);
    EXPECT_EQ(a.front[i].figures, b.front[i].figures);
  }
  ASSERT_EQ(a.trace.size(), b.trace.size());
  for (std::size_t i = 0; i < a.trace.size(); ++i) {
    EXPECT_EQ(a.trace[i].evaluations, b.trace[i].evaluations);
    EXPECT_EQ(a.trace[i].best, b.trace[i].best);
    EXPECT_EQ(a.trace[i].hypervolume, b.trace[i].hypervolume);
  }
}

TEST(AllocationSearch, IsTheSameOnAnyNumberOfThreadsAndNoWorseThanAutomatic) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const RandomCase c = small_case(7000 + seed, seed % 2 == 1, 7, seed % 3 == 0);
    SCOPED_TRACE(seed);
    AllocationSearchOptions options;
    options.objective = kObjectives[seed % 4];
    options.front = seed % 3 == 1;
    options.evaluations = 150;
    options.exact_plans = 0;
    options.population = 10;
    std::vector<AllocationResult> results;
    for (const int jobs : {1, 2, 3}) {
      AllocationEvaluator evaluator(c.step, c.chip, options_of(c), schedule_of(c));
      SearchControl control;
      control.jobs = jobs;
      control.seed = seed;
      results.push_back(search_allocation(evaluator, options, control));
    }
    expect_equal(results[0], results[1]);
    expect_equal(results[0], results[2]);
    const AllocationResult& one = results[0];
    EXPECT_LE(one.certificate.best, one.automatic.figures.value(options.objective));
    EXPECT_LE(one.certificate.bound, one.certificate.best);
    // What it says, it gets.
    TilingOptions tiling = options_of(c);
    AllocationEvaluator evaluator(c.step, c.chip, tiling, schedule_of(c));
    const CoreAllocation allocation = evaluator.allocation(one.best.plan);
    const MappingFile file =
        parse_mapping(mapping_text(mapping_of(allocation, c.step.graph, &c.mapping)), "best.yaml");
    tiling.mapping = &file;
    CoreCostCache costs;
    const Timeline timeline = testing::schedule_alone(make_tiles(c.step, c.chip, tiling), c.step,
                                                      c.chip, costs, schedule_of(c));
    EXPECT_EQ(timeline.makespan.value, one.best.figures.latency_cycles);
    EXPECT_EQ(energy_of(timeline), one.best.figures.energy);
  }
}

TEST(AllocationSearch, FindsPlansWithinALimitOfMemoryOrNone) {
  int limited = 0;
  int none = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const RandomCase c = small_case(7000 + seed, true, 6, seed % 3 == 0);
    SCOPED_TRACE(seed);
    AllocationEvaluator free(c.step, c.chip, options_of(c), schedule_of(c));
    AllocationSearchOptions options;
    options.evaluations = 60;
    const StepFigures any = search_allocation(free, options, {}).best.figures;
    for (const std::int64_t percent : {100, 98, 1}) {
      options.max_live_bytes = any.peak_memory_bytes * percent / 100;
      AllocationEvaluator evaluator(c.step, c.chip, options_of(c), schedule_of(c));
      try {
        const AllocationResult found = search_allocation(evaluator, options, {});
        EXPECT_LE(found.best.figures.peak_memory_bytes, options.max_live_bytes);
        EXPECT_EQ(evaluator.evaluate(found.best.plan), found.best.figures);
        limited += percent < 100 ? 1 : 0;
      } catch (const InfeasibleError&) {
        EXPECT_LT(percent, 100);
        ++none;
      }
    }
  }
  EXPECT_GT(limited, 0);
  EXPECT_GE(none, 10);
}

TEST(AllocationSearch, StoppedAnywhereItHasAPlanAndABound) {
  const RandomCase c = small_case(7003, true, 7, true);
  for (int after = 0; after < 40; after += 3) {
    SCOPED_TRACE(after);
    AllocationEvaluator evaluator(c.step, c.chip, options_of(c), schedule_of(c));
    AllocationSearchOptions options;
    options.evaluations = 400;
    options.exact_plans = after % 2 == 0 ? 0 : 1e9;
    options.population = 8;
    std::atomic<bool> stop{after == 0};
    std::atomic<int> told{0};
    SearchControl control;
    control.stop = &stop;
    control.progress = [&](const SearchProgress&) { stop = stop || ++told >= after; };
    const AllocationResult result = search_allocation(evaluator, options, control);
    EXPECT_TRUE(result.best.figures.feasible);
    EXPECT_EQ(evaluator.evaluate(result.best.plan), result.best.figures);
    EXPECT_LE(result.certificate.bound, result.certificate.best);
    EXPECT_LE(result.certificate.best, result.automatic.figures.value(options.objective));
    EXPECT_GE(result.certificate.gap(), 0);
  }
}

} // namespace
} // namespace monet
