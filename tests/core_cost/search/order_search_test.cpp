// The pruned search against enumeration of every order.
#include "core_cost/order_walk.hpp"
#include "core_cost/random_problems.hpp"
#include "core_cost/search/order_rank.hpp"
#include "core_cost/search/order_search.hpp"
#include "core_cost/search/temporal_order.hpp"
#include "hardware/shared/core_program.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace monet::core_cost_detail {
namespace {

using test::Dice;

struct Case {
  CoreProblem problem;
  Core core;
  NestModel model;
  Hierarchy hierarchy;
  SpatialModel spatial;
  std::vector<Loop> factors;
};

/// An array of two dimensions or more that computes in memory, one or several weights in an
/// element.
void compute_in_memory(Dice& dice, Core& core) {
  ImcArray imc;
  imc.kind = dice.chance(50) ? ImcKind::analog : ImcKind::digital;
  imc.serial_bits = dice.any_of<std::int64_t>({1, 2, 4});
  imc.adc_bits = imc.kind == ImcKind::analog ? 6 : 0;
  core.array[1].size = dice.any_of<std::int64_t>({2, 4, 8});
  imc.columns = core.array[0].size;
  imc.rows = core.array[1].size;
  imc.macros = core.lanes() / (imc.columns * imc.rows);
  imc.cell_bits = imc.weight_bits * dice.number(1, 3);
  imc.cells = core.levels(MemoryOperand::I2).front();
  core.imc = std::make_shared<const ImcArray>(imc);
}

/// Processors, or units of the first array dimension.
void give_program(Dice dice, Core& core) {
  CoreProgram program;
  if (dice.chance(50)) {
    program.issue = IssueCosts{
        static_cast<double>(dice.number(4, 16)) / 4, static_cast<double>(dice.number(0, 20)),
        static_cast<double>(dice.number(0, 9)), static_cast<double>(dice.number(0, 9))};
  } else {
    KernelCosts& kernels = program.kernels.emplace();
    kernels.waves.units = static_cast<double>(core.array[0].size);
    kernels.waves.tiles[kernels.waves.tile_count++] = {2, 3, 0.9};
    kernels.waves.fill = 1;
    kernels.host_cycles = 7;
  }
  core.program = std::make_shared<const CoreProgram>(program);
}

enum class Kind { plain, in_memory, programmed };

/// Nothing when the problem cannot be mapped at all, or has too few orders or too many to
/// enumerate.
std::optional<Case> random_case(std::uint64_t seed, double max_orders, Kind kind = Kind::plain) {
  Dice dice(seed);
  Case c;
  c.core = test::random_core(dice);
  if (kind == Kind::in_memory && c.core.array.size() < 2)
    return {};
  if (kind == Kind::in_memory)
    compute_in_memory(dice, c.core);
  if (kind == Kind::programmed)
    give_program(Dice(~seed), c.core);
  c.problem = test::random_problem(dice);
  ModelChoices choices = dice.chance(50) ? ModelChoices::zigzag_3_8() : ModelChoices{};
  choices.instruction_costs = true;
  choices.reserve_double_buffers = dice.chance(15);
  choices.port_stalls_add = dice.chance(20);
  try {
    c.model = make_nest_model(c.problem, choices);
    c.model.even_allocation = dice.chance(10);
    c.hierarchy = make_hierarchy(c.problem, c.model, c.core);
  } catch (const InfeasibleError&) {
    return {};
  }
  c.spatial =
      make_spatial_model(c.model, c.hierarchy, test::random_unrolling(dice, c.problem, c.core));
  c.factors = temporal_factors(c.spatial.temporal, static_cast<int>(dice.number(3, 8)));
  const double orders = make_kinds(c.model, c.factors).orders();
  if (orders < 6 || orders > max_orders)
    return {};
  return c;
}

struct Found {
  Score score;
  std::vector<Loop> order;
};

/// Every feasible order in the enumeration's sequence.
std::vector<Found> enumerate(const Case& c) {
  std::vector<Found> all;
  OrderWalk walk(c.model, c.factors);
  Candidate candidate;
  candidate.size = walk.size();
  while (walk.next(candidate.loops.data())) {
    if (evaluate(c.model, c.hierarchy, c.spatial, candidate)) {
      all.push_back({{candidate.latency.total(), candidate.energy.total()},
                     {candidate.order().begin(), candidate.order().end()}});
    }
  }
  return all;
}

Score plain(const Candidate& candidate) {
  return {candidate.latency.total(), candidate.energy.total()};
}

bool same_order(const std::vector<Loop>& a, const std::vector<Loop>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Loop& x, const Loop& y) {
    return x.dim == y.dim && x.size == y.size;
  });
}

struct Result {
  BestMapping best;
  SearchEffort effort;
};

Result search(const Case& c, Objective objective) {
  Result result{BestMapping(objective), {}};
  SearchLog log;
  const TemporalSpace space{c.factors, {}, {}};
  search_orders({c.model, c.hierarchy, c.spatial, space}, plain, {}, result.best, log);
  result.effort = log.effort;
  return result;
}

/// The optimum, the very order that the enumeration reports for it, and no order unaccounted for.
/// How often something was pruned.
int find_what_enumeration_finds(int cases, Kind kind) {
  int pruned = 0;
  int feasible = 0;
  for (std::uint64_t seed = 0; feasible < cases; ++seed) {
    const std::optional<Case> c = random_case(seed, 3000, kind);
    if (!c)
      continue;
    const std::vector<Found> all = enumerate(*c);
    feasible += all.empty() ? 0 : 1;
    for (const Objective objective : {Objective::latency, Objective::energy, Objective::edp}) {
      const Result result = search(*c, objective);
      EXPECT_TRUE(result.effort.exact);
      EXPECT_EQ(static_cast<double>(result.effort.visited) + result.effort.pruned,
                result.effort.space)
          << "seed " << seed;
      pruned += result.effort.pruned > 0 ? 1 : 0;
      const Found* best = nullptr;
      for (const Found& f : all) {
        if (best == nullptr || merit(objective, f.score.latency, f.score.energy) <
                                   merit(objective, best->score.latency, best->score.energy))
          best = &f;
      }
      EXPECT_EQ(best == nullptr, !result.best.entry()) << "seed " << seed;
      if (best == nullptr || !result.best.entry())
        continue;
      const BestMapping::Entry& found = *result.best.entry();
      EXPECT_EQ(found.score.latency, best->score.latency) << "seed " << seed;
      EXPECT_EQ(found.score.energy, best->score.energy) << "seed " << seed;
      EXPECT_TRUE(same_order(found.order, best->order)) << "seed " << seed;
    }
  }
  return pruned;
}

TEST(OrderSearch, FindsWhatEnumerationFinds) {
  EXPECT_GT(find_what_enumeration_finds(1000, Kind::plain), 1500);
}

// Every iteration takes several cycles, and precharging depends on the order.
TEST(OrderSearch, FindsWhatEnumerationFindsInMemory) {
  EXPECT_GT(find_what_enumeration_finds(300, Kind::in_memory), 100);
}

// Instructions and waves hide stalls, slices cost cycles, and memories inside units make none wait.
TEST(OrderSearch, FindsWhatEnumerationFindsWithInstructions) {
  EXPECT_GT(find_what_enumeration_finds(300, Kind::programmed), 400);
}

// A beginning's bound is below every order that goes on from it, and that of nothing below all.
TEST(OrderSearch, BoundsNeverExceedAContinuation) {
  int cases = 0;
  int tight = 0;
  for (std::uint64_t seed = 9000; cases < 300; ++seed) {
    const std::optional<Case> c =
        random_case(seed, 400, seed % 3 == 0 ? Kind::programmed : Kind::plain);
    if (!c)
      continue;
    ++cases;
    const LoopKinds kinds = make_kinds(c->model, c->factors);
    BeginningJudge judge(c->model, c->hierarchy, c->spatial, kinds);
    for (const Found& f : enumerate(*c)) {
      std::vector<std::uint8_t> order;
      for (const Loop& loop : f.order) {
        for (std::size_t k = 0; k < kinds.loop.size(); ++k) {
          if (kinds.loop[k].dim == loop.dim && kinds.loop[k].size == loop.size)
            order.push_back(static_cast<std::uint8_t>(k));
        }
      }
      ASSERT_LE(judge.bound().latency, f.score.latency);
      ASSERT_LE(judge.bound().energy, f.score.energy);
      for (std::size_t n = 0; n < order.size(); ++n) {
        PrefixBound outlook;
        ASSERT_TRUE(
            judge.judge({order.data(), n}, std::numeric_limits<double>::infinity(), outlook))
            << "seed " << seed;
        ASSERT_LE(outlook.bound.latency, f.score.latency) << "seed " << seed << " after " << n;
        ASSERT_LE(outlook.bound.energy, f.score.energy) << "seed " << seed << " after " << n;
        tight += outlook.bound.energy > 0.99 * f.score.energy ? 1 : 0;
      }
    }
  }
  EXPECT_GT(tight, 1000);
}

TEST(OrderRank, ComparesAsTheEnumerationGoes) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    CoreProblem problem;
    std::vector<Loop> factors;
    const std::int64_t n = dice.number(1, 6);
    for (std::uint32_t d = 0; d < 3; ++d)
      problem.dims.push_back({std::string(1, static_cast<char>('C' - d)), 64});
    problem.operands = test::product(1, 1, 1).operands;
    const NestModel model = make_nest_model(problem);
    for (std::int64_t i = 0; i < n; ++i)
      factors.push_back(
          {static_cast<std::uint32_t>(dice.number(0, 2)), static_cast<double>(dice.number(2, 3))});
    const LoopKinds kinds = make_kinds(model, factors);
    OrderWalk walk(model, factors);
    std::vector<std::vector<std::uint8_t>> all;
    std::array<Loop, kMaxTemporalLoops> loops;
    while (walk.next(loops.data())) {
      auto& order = all.emplace_back();
      for (std::size_t i = 0; i < walk.size(); ++i) {
        for (std::size_t k = 0; k < kinds.loop.size(); ++k) {
          if (kinds.loop[k].dim == loops[i].dim && kinds.loop[k].size == loops[i].size)
            order.push_back(static_cast<std::uint8_t>(k));
        }
      }
    }
    ASSERT_EQ(static_cast<double>(all.size()), kinds.orders());
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(enumerated_first(all[i]), i == 0);
      for (std::size_t j = 0; j < all.size(); ++j)
        ASSERT_EQ(enumerated_before(all[i], all[j]), i < j);
    }
  }
}

// All prime factors of a ResNet layer: 30 million orders.
TEST(OrderSearch, ThirtyMillionOrders) {
  CoreCostOptions options;
  options.model = ModelChoices::zigzag_3_8();
  options.fixed_dataflow = true;
  options.lpf_limit = 0;
  const CoreProblem problem = test::convolution(
      {.k = 128, .ox = 28, .oy = 28, .c = 128, .fx = 3, .fy = 3, .padding = 1, .ix = 28, .iy = 28},
      test::ConvProduct::forward);
  const CoreCost cost = core_cost(problem, test::tpu_like(true), options);
  EXPECT_EQ(cost.effort.space, 29937600);
  EXPECT_TRUE(cost.effort.exact);
  EXPECT_LT(cost.effort.visited, 100000);
  EXPECT_EQ(static_cast<double>(cost.effort.visited) + cost.effort.pruned, cost.effort.space);
}

} // namespace
} // namespace monet::core_cost_detail
