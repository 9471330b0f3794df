// Plans by closed forms: figures by hand, the dynamic program against every plan, and that plans
// can be run.
#include "schedule/random_cases.hpp"
#include "schedule/small_steps.hpp"
#include "tiling/fusion_estimate/groups.hpp"
#include "tiling/fusion_estimate/price.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/imc_array.hpp"
#include "monet/tiling/allocation.hpp"
#include "monet/tiling/tiling.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

namespace monet {
namespace {

using Source = StepTraffic::Source;
using testing::Random;
using testing::StepBuilder;

/// x -> a -> b -> ... -> output, of `bits` each (32-bit elements in rows of 16).
StepBuilder chain(int operators, std::int64_t bits) {
  StepBuilder builder;
  TensorId at = builder.source("x", {bits / 512, 16}, TensorKind::input);
  for (int i = 0; i < operators; ++i)
    at = builder.elementwise(fmt::format("t{}", i), {at});
  builder.output(at);
  return builder;
}

CoreLists cores_of(const TrainingGraph& step, const Chip& chip) {
  const TilePlanner planner(step, chip, {});
  CoreLists cores;
  for (std::size_t i = 0; i < step.graph.operators().size(); ++i)
    cores.push_back(planner.cores(OpId(i)));
  return cores;
}

TEST(StepTraffic, what_fits_stays_until_it_is_read_for_the_last_time) {
  StepBuilder builder = chain(3, 1024);
  const std::vector<std::uint32_t> pool(3, 0);
  const std::vector<std::int64_t> room{2048};
  const StepTraffic fits = step_traffic(builder.graph(), pool, room);
  EXPECT_EQ(fits.reads[0][1], Source::fetched);
  EXPECT_EQ(fits.reads[1][1], Source::chip);
  EXPECT_EQ(fits.reads[2][1], Source::chip);
  EXPECT_EQ(fits.stored, (std::vector<bool>{false, false, false, true}));

  // One of two flows by: results go out and come again.
  const std::vector<std::int64_t> half{1024};
  const StepTraffic streams = step_traffic(builder.graph(), pool, half);
  EXPECT_EQ(streams.reads[1][1], Source::streamed);
  EXPECT_TRUE(streams.stored[1]);
}

TEST(StepTraffic, what_is_read_last_goes_first) {
  // a is read at once and at the end, b in between: there is room for three tensors.
  StepBuilder builder;
  const TensorId x = builder.source("x", {2, 16}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  const TensorId b = builder.elementwise("b", {a});
  const TensorId c = builder.elementwise("c", {b});
  const TensorId d = builder.elementwise("d", {c, b});
  builder.output(builder.elementwise("e", {d, a}));
  const std::vector<std::uint32_t> pool(5, 0);
  const std::vector<std::int64_t> room{3 * 1024};
  const StepTraffic traffic = step_traffic(builder.graph(), pool, room);
  EXPECT_TRUE(traffic.stored[a.index()]); // went when d came
  EXPECT_FALSE(traffic.stored[b.index()]);
  EXPECT_EQ(traffic.reads[4][2], Source::fetched);
}

TEST(StepTraffic, what_every_core_needs_as_a_whole_takes_room_on_each) {
  // x [16, 32] times w [32, 64] on four cores that share out the 64 columns: 16,384 bits of x on
  // each, a quarter of the 65,536 of w, and 8,192 of the result.
  StepBuilder builder;
  const TensorId x = builder.source("x", {16, 32}, TensorKind::input);
  const TensorId w = builder.source("w", {32, 64});
  builder.output(builder.product("out", x, w));
  const std::vector<std::uint32_t> pool{0};
  const auto sources = [&](std::int64_t of_each) {
    const std::vector<std::int64_t> room{4 * of_each};
    const std::vector<OperatorSpread> spread{{4 * of_each, {1, 4, 1}}};
    return step_traffic(builder.graph(), pool, room, spread).reads[0];
  };
  EXPECT_EQ(sources(40960)[1], Source::fetched);
  EXPECT_EQ(sources(40960)[2], Source::fetched);
  EXPECT_EQ(sources(40959)[1], Source::fetched);
  EXPECT_EQ(sources(40959)[2], Source::streamed);
  EXPECT_EQ(sources(24575)[1], Source::streamed); // though 98,300 bits hold it together
}

TEST(FusionCovers, sums_that_stream_on_every_core_run_in_slices) {
  // A sum over 4096 rows of x [rows, 16] and y [rows, 64]: whole, each core would stream one of the
  // operands; in slices of the rows each comes once.
  StepBuilder builder;
  const TensorId x = builder.source("x", {64, 4096}, TensorKind::input);
  const TensorId y = builder.source("y", {4096, 64}, TensorKind::input);
  builder.output(builder.product("out", x, y));
  Chip chip = testing::make_chip({.cores = 4, .core_bits = 1 << 19, .lanes = 32});
  for (std::size_t core = 0; core < 4; ++core)
    chip.cores[core].memories[0].ports[0].bandwidth_max = 4096;
  GroupPricer pricer(builder.step().graph, chip, cores_of(builder.step(), chip));
  EXPECT_GE(pricer.alone(OpId(0)).bits, 3 * 64 * 4096 * 32); // one of them on each core
  const std::vector<FusionPlan> plans = FusionCovers(builder.step()).plans(chip, {}).plans;
  ASSERT_FALSE(plans.empty());
  ASSERT_EQ(plans[0].stacks, (std::vector<std::vector<OpId>>{{OpId(0)}}));
  EXPECT_EQ(plans[0].slices[0]->cuts[0].dim, 2U); // the sum
}

TEST(FusionCovers, links_count_that_bring_a_result_to_all_cores) {
  // a [64, 64] was made on four cores, which share out the 64 columns of its product with w: each
  // gets all 131,072 bits over links of 16 bits per cycle; 4,096 cycles of computing and 2,048 of
  // bringing w hide behind that.
  StepBuilder builder;
  const TensorId x = builder.source("x", {64, 64}, TensorKind::input);
  const TensorId w = builder.source("w", {64, 64});
  builder.output(builder.product("out", builder.elementwise("a", {x}), w));
  const Chip chip = testing::make_chip({.cores = 4, .core_bits = 1 << 22, .link_bandwidth = 16});
  GroupPricer pricer(builder.step().graph, chip, cores_of(builder.step(), chip));
  EXPECT_EQ(pricer.alone(OpId(1)).cycles, 131072 / 16);
}

TEST(FusionCovers, a_chain_that_does_not_fit_runs_in_slices) {
  // Six operators on 64 KiB; a core of 16 KiB, port and memory of 64 bits per cycle, 16 lanes.
  const StepBuilder builder = chain(6, 1 << 19);
  Chip chip = testing::make_chip({.core_bits = 1 << 17});
  chip.cores[0].memories[0].ports[0].bandwidth_max = 4096;
  const CoreLists cores = cores_of(builder.step(), chip);
  GroupPricer pricer(builder.step().graph, chip, cores);
  const GroupPrice alone = pricer.alone(OpId(2));
  EXPECT_EQ(alone.bits, 2 << 19); // in and out
  EXPECT_EQ(alone.cycles, (2 << 19) / 64);

  const FusionCovers covers(builder.step());
  const std::vector<FusionPlan> plans = covers.plans(chip, {}).plans;
  ASSERT_FALSE(plans.empty());
  ASSERT_EQ(plans[0].stacks.size(), 1U);
  EXPECT_EQ(plans[0].stacks[0].size(), 6U);
  ASSERT_TRUE(plans[0].slices[0]);
  ASSERT_FALSE(plans[0].slices[0]->cuts.empty());
  // A tile of two slices has to fit into half of the core.
  EXPECT_GE(plans[0].slices[0]->cuts[0].count, 16);

  const NeighbourGroups groups(builder.step().graph, Halo::cached);
  for (const NeighbourGroup& group : groups.groups()) {
    if (group.members.size() != 6)
      continue;
    for (const GroupSlices& way : groups.ways(group)) {
      const auto price = pricer.price(group, way);
      EXPECT_EQ(price.has_value(), way.most >= 16) << way.most;
      if (price) {
        EXPECT_EQ(price->bits, 2 << 19); // of the chain's ends
        // 6 x 1024 cycles of lanes hide behind 2 x 8192 of the port, but for what both keep each
        // other waiting, and those of four operators in the first slice: the ends take what their
        // own transfers take.
        const double port = 2 * 8192;
        const double together = port * std::pow(1 + std::pow(6 * 1024 / port, 8), 1.0 / 8);
        EXPECT_DOUBLE_EQ(price->cycles, together + (port + 4 * 1024 - together) / way.most);
      }
    }
  }
}

// Two chips with arrays that compute in memory differ in nothing but the bits applied in a cycle.
TEST(FusionCovers, bits_that_follow_one_another_tell_chips_apart) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {64, 64}, TensorKind::input);
  builder.output(builder.product("out", x, builder.source("w", {64, 64})));
  const FusionCovers shared(builder.step());
  std::vector<double> cycles;
  for (const std::int64_t serial_bits : {8, 1}) {
    Chip chip = testing::make_chip({});
    ImcArray imc;
    imc.serial_bits = serial_bits;
    chip.cores[0].imc = std::make_shared<const ImcArray>(imc);
    cycles.push_back(shared.plans(chip, {}).cycles_apart);
    EXPECT_EQ(cycles.back(), FusionCovers(builder.step()).plans(chip, {}).cycles_apart);
  }
  EXPECT_EQ(cycles, (std::vector<double>{64 * 64 * 64 / 16, 8 * 64 * 64 * 64 / 16}));
}

TEST(FusionCovers, nothing_is_fused_where_everything_fits) {
  const StepBuilder builder = chain(4, 1 << 12);
  const Chip chip = testing::make_chip({});
  const FusionCovers covers(builder.step());
  for (const FusionPlan& plan : covers.plans(chip, {}).plans) {
    GroupPricer pricer(builder.step().graph, chip, cores_of(builder.step(), chip));
    for (std::size_t i = 1; i < 4; ++i)
      EXPECT_EQ(pricer.alone(OpId(i)).bits, i == 3 ? 1 << 12 : 0);
    EXPECT_LE(plan.stacks.size(), 1U);
  }
}

/// Per operator and per group of a step, the least that it costs: cycles, and what tiles have to
/// gain.
struct Prices {
  double tile = 0;
  std::vector<double> alone;
  std::vector<double> group;
  double of(const GroupPrice& price) const { return price.cycles + tile * price.tiles; }
};

Prices prices_of(const NeighbourGroups& groups, GroupPricer& pricer, const Graph& graph) {
  Prices prices;
  for (std::size_t i = 0; i < graph.operators().size(); ++i)
    prices.tile += FusionCovers::kTile * pricer.alone(OpId(i)).cycles;
  for (std::size_t i = 0; i < graph.operators().size(); ++i)
    prices.alone.push_back(prices.of(pricer.alone(OpId(i))));
  for (const NeighbourGroup& group : groups.groups()) {
    double best = std::numeric_limits<double>::infinity();
    const auto& ways = groups.ways(group);
    for (std::size_t w = group.members.size() == 1 ? 1 : 0; w < ways.size(); ++w) {
      if (const auto price = pricer.price(group, ways[w]))
        best = std::min(best, prices.of(*price));
    }
    // Updates that could have joined run alone.
    for (std::size_t i = group.begin; !group.updates && i < group.end; ++i) {
      for (const OpId update : groups.updates_of(groups.sequence()[i]))
        best += prices.alone[update.index()];
    }
    prices.group.push_back(best);
  }
  return prices;
}

/// The least of all plans' prices, plan by plan.
double least(const NeighbourGroups& groups, const Prices& prices, std::size_t end) {
  if (end == 0)
    return 0;
  const OpId last = groups.sequence()[end - 1];
  double best = least(groups, prices, end - 1) + prices.alone[last.index()];
  for (const OpId update : groups.updates_of(last))
    best += prices.alone[update.index()];
  for (std::size_t g = 0; g < groups.groups().size(); ++g) {
    const NeighbourGroup& group = groups.groups()[g];
    if (group.end == end && prices.group[g] < std::numeric_limits<double>::infinity())
      best = std::min(best, least(groups, prices, group.begin) + prices.group[g]);
  }
  return best;
}

double price_of(const FusionPlan& plan, const NeighbourGroups& groups, GroupPricer& pricer,
                const Graph& graph, const Prices& prices) {
  std::vector<bool> fused(graph.operators().size(), false);
  double total = 0;
  for (std::size_t s = 0; s < plan.stacks.size(); ++s) {
    double own = std::numeric_limits<double>::infinity();
    for (const NeighbourGroup& group : groups.groups()) {
      if (group.members != plan.stacks[s])
        continue;
      for (const GroupSlices& way : groups.ways(group)) {
        StackSlices slices;
        for (const StackSlices::Cut& cut : way.cuts)
          slices.cuts.push_back({group.members[cut.op.index()], cut.dim, cut.count});
        const auto price = slices == *plan.slices[s] ? pricer.price(group, way) : std::nullopt;
        own = price ? std::min(own, prices.of(*price)) : own;
      }
    }
    total += own;
    for (const OpId member : plan.stacks[s])
      fused[member.index()] = true;
  }
  for (std::size_t i = 0; i < fused.size(); ++i)
    total += fused[i] ? 0.0 : prices.alone[i];
  return total;
}

TEST(FusionCovers, no_plan_is_cheaper) {
  std::size_t grouped = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const TrainingGraph step =
        testing::random_step(random, {.operators = 5, .training = seed % 3 == 0});
    if (step.graph.operators().size() > 14)
      continue;
    const Chip chip = testing::random_chip(random, {});
    const FusionCovers covers(step);
    const NeighbourGroups groups(step.graph, Halo::cached);
    GroupPricer pricer(step.graph, chip, cores_of(step, chip));
    const std::vector<FusionPlan> plans = covers.plans(chip, {}).plans;
    const Prices prices = prices_of(groups, pricer, step.graph);
    const double best = least(groups, prices, groups.sequence().size());
    const FusionPlan cheapest = plans.empty() ? FusionPlan{} : plans.front();
    EXPECT_NEAR(price_of(cheapest, groups, pricer, step.graph, prices), best, 1e-6 * best);
    grouped += cheapest.stacks.size();
  }
  EXPECT_GT(grouped, 20U);
}

TEST(FusionCovers, plans_make_valid_tiles) {
  std::size_t sliced = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const TrainingGraph step =
        testing::random_step(random, {.operators = 6, .training = seed % 2 == 0});
    const Chip chip = testing::random_chip(random, {});
    const Halo halo = random.chance(30) ? Halo::recomputed : Halo::cached;
    TilingOptions options;
    options.halo = halo;
    for (const FusionPlan& plan : FusionCovers(step, halo).plans(chip, options).plans) {
      for (const auto& slices : plan.slices)
        sliced += slices && !slices->cuts.empty() ? 1 : 0;
      verify(make_tiles(step, chip, options.with(plan)), step);
    }
  }
  EXPECT_GT(sliced, 100U);
}

TEST(FusionCovers, learns_from_what_slices_cost) {
  // Slices that are said to take for ever are taken only where cycles do not count.
  const StepBuilder builder = chain(6, 1 << 19);
  Chip chip = testing::make_chip({.core_bits = 1 << 17});
  chip.cores[0].memories[0].ports[0].bandwidth_max = 4096;
  const FusionCovers covers(builder.step());
  int asked = 0;
  const auto plans = covers
                         .plans(chip, {},
                                [&](const FusionPlan& plan) {
                                  ++asked;
                                  return std::vector<double>(6, plan.stacks.empty() ? 1024.0 : 1e9);
                                })
                         .plans;
  EXPECT_GE(asked, 2);
  EXPECT_LE(plans.size(), 1U); // by traffic alone
}

} // namespace
} // namespace monet
