// Properties of schedules of random steps on random chips.
#include "schedule/fixed_costs.hpp"
#include "schedule/hand_tiles.hpp"
#include "schedule/schedule_alone.hpp"
#include "schedule/small_steps.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/schedule.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

namespace monet {
namespace MONET_TEST_FILE {

using testing::ChipShape;
using testing::HandSplit;
using testing::make_chip;
using testing::StepBuilder;

struct RandomCase {
  StepBuilder builder;
  ChipShape shape;
  Chip chip;
  TileGraph tiles;
};

/// A random step over 8 x 8 tensors (2048 bits each): products and sums of earlier tensors, then
/// updates.
void add_operators(StepBuilder& builder) {
  std::vector<TensorId> known{builder.source("x", {8, 8}, TensorKind::input)};
  std::vector<TensorId> weights;
  const int operators = *rc::gen::inRange(1, 14);
  for (int i = 0; i < operators; ++i) {
    const TensorId a = known[*rc::gen::inRange<std::size_t>(0, known.size())];
    const Phase phase = 2 * i < operators ? Phase::forward : Phase::backward;
    const std::string name = fmt::format("t{}", i);
    if (*rc::gen::inRange(0, 2) == 0) {
      weights.push_back(builder.source("w" + name, {8, 8}));
      known.push_back(builder.product(name, a, weights.back(), phase));
    } else {
      const TensorId b = known[*rc::gen::inRange<std::size_t>(0, known.size())];
      known.push_back(builder.elementwise(
          name, a == b ? std::vector<TensorId>{a} : std::vector<TensorId>{a, b}, phase));
    }
  }
  builder.output(known.back());
  for (const TensorId weight : weights) {
    if (*rc::gen::inRange(0, 2) == 0)
      builder.update(weight, known.back());
  }
}

RandomCase random_case() {
  RandomCase c;
  add_operators(c.builder);
  c.shape.cores = *rc::gen::inRange(1, 5);
  c.shape.core_bits = *rc::gen::inRange<std::int64_t>(300, 20000);
  c.shape.link_bandwidth = *rc::gen::element<std::int64_t>(0, 16, 64, 100);
  c.shape.bus = *rc::gen::inRange(0, 2) == 1;
  c.shape.dram_bandwidth = *rc::gen::element<std::int64_t>(8, 64, 1000);
  if (c.shape.cores == 1)
    c.shape.link_bandwidth = 0;
  c.chip = make_chip(c.shape);
  std::vector<HandSplit> splits;
  for (std::size_t i = 0; i < c.builder.graph().operators().size(); ++i) {
    HandSplit split;
    split.parts = *rc::gen::inRange<std::int64_t>(1, 9);
    split.cores.clear();
    for (int n = *rc::gen::inRange(1, 5); n > 0; --n) {
      split.cores.push_back(
          *rc::gen::inRange<std::size_t>(0, static_cast<std::size_t>(c.shape.cores)));
    }
    splits.push_back(split);
  }
  c.tiles = testing::hand_tiles(c.builder.step(), splits);
  return c;
}

Timeline schedule_of(const RandomCase& c) {
  return testing::schedule_with(c.tiles, c.builder.step(), c.chip, testing::simple_cost);
}

RC_GTEST_PROP(Schedule, keeps_its_invariants, ()) {
  const RandomCase c = random_case();
  verify(c.tiles, c.builder.step());
  verify(schedule_of(c), c.tiles, c.builder.step(), c.chip);
}

RC_GTEST_PROP(Schedule, is_no_shorter_than_its_bounds, ()) {
  const RandomCase c = random_case();
  const Timeline timeline = schedule_of(c);
  const auto latency = [&](std::size_t t) {
    const Tile& tile = c.tiles.tiles[t];
    return testing::simple_cost(
               core_problem(tile, c.tiles.ranges(TileId(t)), c.builder.step(), c.chip),
               c.chip.cores[tile.core.index()])
        .latency.value;
  };
  std::map<CoreId, std::int64_t> work;
  std::vector<std::int64_t> path(c.tiles.tiles.size());
  for (std::size_t t = 0; t < path.size(); ++t)
    path[t] = latency(t);
  for (std::size_t t = 0; t < path.size(); ++t)
    work[c.tiles.tiles[t].core] += path[t];
  for (std::size_t t = 0; t < path.size(); ++t) {
    std::int64_t before = 0;
    for (const TileEdge& edge : c.tiles.edges_into(TileId(t)))
      before = std::max(before, path[edge.from.index()]);
    path[t] += before;
  }
  for (const auto& [core, cycles] : work)
    RC_ASSERT(timeline.makespan.value >= cycles);
  for (const std::int64_t cycles : path)
    RC_ASSERT(timeline.makespan.value >= cycles);
}

RC_GTEST_PROP(Schedule, energies_add_up_by_operator_phase_and_core, ()) {
  const RandomCase c = random_case();
  const Timeline timeline = schedule_of(c);
  std::map<OpId, Energy> by_operator;
  std::map<Phase, Energy> by_phase;
  std::map<CoreId, Energy> by_core;
  for (const TileRun& run : timeline.runs) {
    const Energy energy = timeline.cost_of(run).compute + timeline.cost_of(run).memory;
    by_operator[run.op] += energy;
    by_phase[c.builder.step().graph.op(run.op).phase] += energy;
    by_core[run.core] += energy;
  }
  for (const Transfer& t : timeline.transfers) {
    const TransferCost& cost = timeline.cost_of(t);
    const Energy energy = cost.link_energy + cost.offchip_energy + cost.onchip_energy;
    by_operator[t.op] += energy;
    by_phase[c.builder.step().graph.op(t.op).phase] += energy;
    by_core[timeline.route_of(t).to.front()] += energy;
  }
  const auto sum = [](const auto& parts) {
    Energy total;
    for (const auto& part : parts)
      total += part.second;
    return total;
  };
  const Energy total = energy_of(timeline).total();
  RC_ASSERT(sum(by_operator) == total);
  RC_ASSERT(sum(by_phase) == total);
  RC_ASSERT(sum(by_core) == total);
}

bool same(const Timeline& a, const Timeline& b) {
  const auto equal_runs = [&](const TileRun& x, const TileRun& y) {
    return x.tile == y.tile && x.start == y.start && x.end == y.end &&
           a.cost_of(x).memory == b.cost_of(y).memory;
  };
  const auto equal_transfers = [&](const Transfer& x, const Transfer& y) {
    return x.kind == y.kind && x.tensor == y.tensor && a.route_of(x) == b.route_of(y) &&
           a.bits_of(x) == b.bits_of(y) && x.start == y.start && x.end == y.end;
  };
  return std::equal(a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end(), equal_runs) &&
         std::equal(a.transfers.begin(), a.transfers.end(), b.transfers.begin(), b.transfers.end(),
                    equal_transfers);
}

RC_GTEST_PROP(Schedule, is_the_same_every_time, ()) {
  const RandomCase c = random_case();
  RC_ASSERT(same(schedule_of(c), schedule_of(c)));
}

RC_GTEST_PROP(Schedule, does_not_depend_on_the_number_of_threads, ()) {
  const RandomCase c = random_case();
  const auto with_jobs = [&](int jobs) {
    CoreCostCache costs;
    ScheduleOptions options;
    options.jobs = jobs;
    return testing::schedule_alone(c.tiles, c.builder.step(), c.chip, costs, options);
  };
  std::optional<Timeline> one;
  try {
    one = with_jobs(1);
  } catch (const InfeasibleError&) {
    RC_ASSERT_THROWS_AS(with_jobs(2), InfeasibleError); // a memory too small for any mapping
    return;
  }
  RC_ASSERT(same(*one, with_jobs(2)));
  verify(*one, c.tiles, c.builder.step(), c.chip);
}

std::int64_t offchip_bits(const Timeline& timeline, const Chip& chip) {
  std::int64_t bits = 0;
  for (const Transfer& t : timeline.transfers) {
    const Route& route = timeline.route_of(t);
    if (route.from == chip.offchip || route.to.front() == chip.offchip)
      bits += timeline.bits_of(t).value;
  }
  return bits;
}

RC_GTEST_PROP(Schedule, more_memory_never_means_more_offchip_traffic_of_a_chain, ()) {
  StepBuilder builder;
  const std::int64_t rows = *rc::gen::inRange<std::int64_t>(1, 9);
  std::int64_t columns = *rc::gen::inRange<std::int64_t>(1, 9);
  TensorId at = builder.source("x", {rows, columns}, TensorKind::input);
  const int operators = *rc::gen::inRange(1, 10);
  for (int i = 0; i < operators; ++i) {
    const std::int64_t next = *rc::gen::inRange<std::int64_t>(1, 9);
    at = builder.product(fmt::format("t{}", i), at,
                         builder.source(fmt::format("w{}", i), {columns, next}));
    columns = next;
  }
  builder.output(at);
  const std::vector<std::size_t> cores(static_cast<std::size_t>(operators), 0);
  const TileGraph tiles = testing::whole_tiles(builder.step(), cores);
  const std::int64_t less = *rc::gen::inRange<std::int64_t>(64, 6000);
  const std::int64_t more = less + *rc::gen::inRange<std::int64_t>(0, 3000);
  const auto traffic = [&](std::int64_t core_bits) {
    const Chip chip = make_chip({.core_bits = core_bits});
    const Timeline timeline =
        testing::schedule_with(tiles, builder.step(), chip, testing::simple_cost);
    verify(timeline, tiles, builder.step(), chip);
    return offchip_bits(timeline, chip);
  };
  RC_ASSERT(traffic(more) <= traffic(less));
}

} // namespace MONET_TEST_FILE
} // namespace monet
