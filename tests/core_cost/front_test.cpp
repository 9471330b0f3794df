// Alternatives with smaller footprint, against all mappings there are.
#include "core_cost/scatter/input_gradient.hpp"
#include "core_cost/cores.hpp"
#include "core_cost/random_problems.hpp"

#include "monet/base/errors.hpp"
#include "monet/core_cost/front.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>

namespace monet {
namespace {

using test::axis;
using test::Dice;
using test::memory;
using test::port;
using test::product;
using test::use;

OffchipRate slow_link() {
  return {.read_bits_per_cycle = 16,
          .write_bits_per_cycle = 16,
          .shared = true,
          .read_pj_per_bit = 2,
          .write_pj_per_bit = 3};
}

/// 2x2 MACs on registers and one buffer of so many bits.
Core small_core(std::int64_t bits) {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core;
  core.name = "small";
  core.mac_energy_pj = 0.1;
  core.array = {{"D1", 2}, {"D2", 2}};
  core.dataflow = {{{"K", 2}}, {{"C", 2}}};
  core.memories.push_back(
      memory("weights", 16, 0.05, {I2}, {false, false},
             {port(read, 8, 8, {use(I2, tl)}), port(write, 8, 8, {use(I2, fh)})}));
  core.memories.push_back(
      memory("buffer", bits, 4, {I1, I2, O}, {true, true},
             {port(read, 8, 32, {use(I1, tl), use(I2, tl), use(O, tl), use(O, th)}),
              port(write, 8, 32, {use(I1, fh), use(I2, fh), use(O, fh), use(O, fl)})}));
  return core;
}

CoreCostOptions fixed() {
  CoreCostOptions options;
  options.fixed_dataflow = true;
  options.offchip = slow_link();
  return options;
}

bool no_worse(const FrontPoint& a, const FrontPoint& b) {
  return a.latency <= b.latency && a.energy <= b.energy && a.footprint <= b.footprint;
}

void expect_mutually_undominated(const std::vector<FrontPoint>& front) {
  for (std::size_t i = 0; i < front.size(); ++i) {
    for (std::size_t j = 0; j < front.size(); ++j)
      EXPECT_FALSE(i != j && no_worse(front[i], front[j])) << i << " beats " << j;
  }
  for (std::size_t i = 1; i < front.size(); ++i)
    EXPECT_LE(front[i - 1].latency, front[i].latency);
}

TEST(Front, OffersLessRoomForMoreTransfers) {
  const CoreProblem problem = product(16, 16, 16);
  const auto front = core_cost_front(problem, small_core(1 << 16), fixed(), {{0, 1, 2}, 6});
  expect_mutually_undominated(front);
  ASSERT_GT(front.size(), 2U);
  const auto least =
      std::min_element(front.begin(), front.end(), [](const FrontPoint& a, const FrontPoint& b) {
        return a.footprint < b.footprint;
      });
  const auto most =
      std::max_element(front.begin(), front.end(), [](const FrontPoint& a, const FrontPoint& b) {
        return a.footprint < b.footprint;
      });
  EXPECT_EQ(most->streamed, std::vector<bool>(3, false)); // nothing crosses: best, and largest
  EXPECT_LT(least->footprint.value, most->footprint.value / 4);
  EXPECT_GT(least->energy, most->energy);
}

TEST(Front, HoldsTheOptimumOfEveryObjective) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Dice dice(seed);
    const Core core = test::random_core(dice);
    const CoreProblem problem = test::random_problem(dice);
    CoreCostOptions options;
    options.offchip = slow_link();
    std::vector<FrontPoint> front;
    try {
      front = core_cost_front(problem, core, options);
    } catch (const InfeasibleError&) {
      EXPECT_THROW(core_cost(problem, core, options), InfeasibleError);
      continue;
    }
    expect_mutually_undominated(front);
    for (const Objective objective : {Objective::latency, Objective::energy, Objective::edp}) {
      options.objective = objective;
      const auto best =
          core_cost_detail::priced(core_cost(problem, core, options), options.offchip);
      const auto wanted = merit(objective, best.latency, best.energy);
      EXPECT_TRUE(std::any_of(front.begin(), front.end(),
                              [&](const FrontPoint& point) {
                                return merit(objective, point.latency, point.energy) <= wanted;
                              }))
          << "seed " << seed;
    }
  }
}

/// All orders of the temporal loops of a product on small_core(), one by one.
std::vector<CoreCost> all_mappings(const CoreProblem& problem, const Core& core) {
  std::vector<OrderedLoop> loops;
  for (const LoopDim& dim : problem.dims) {
    std::int64_t left = dim.name == "D" ? dim.size : dim.size / 2;
    for (std::int64_t factor = 2; left > 1;) {
      if (left % factor != 0) {
        ++factor;
        continue;
      }
      loops.push_back({dim.name, factor});
      left /= factor;
    }
  }
  const auto by_name = [](const OrderedLoop& a, const OrderedLoop& b) {
    return std::tie(a.dim, a.size) < std::tie(b.dim, b.size);
  };
  std::sort(loops.begin(), loops.end(), by_name);
  std::vector<CoreCost> costs;
  do {
    CoreCostOptions options = fixed();
    options.temporal_order = loops;
    try {
      costs.push_back(core_cost(problem, core, options));
    } catch (const InfeasibleError&) {
    }
  } while (std::next_permutation(loops.begin(), loops.end(), by_name));
  return costs;
}

// Whatever fits in a memory of one of the swept sizes, some point of the front that fits there is
// no worse in latency and energy.
TEST(Front, MissesNothingAtTheSweptRooms) {
  for (const auto& [c, d, k] : {std::tuple{4, 6, 8}, std::tuple{8, 4, 4}, std::tuple{12, 2, 4}}) {
    CoreProblem problem = product(c, d, k);
    const Core core = small_core(2048);
    const FrontOptions options{{0, 1, 2}, 3};
    const auto front = core_cost_front(problem, core, fixed(), options);
    expect_mutually_undominated(front);
    std::size_t tried = 0;
    for (unsigned set = 0; set < 8; ++set) {
      std::int64_t kept = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        ProblemOperand& operand = problem.operands[i];
        operand.offchip = (set >> i & 1U) != 0;
        if (!operand.offchip)
          kept += operand.extents[0] * operand.extents[1] * operand.partial_bits;
      }
      for (int halvings = 0; halvings <= (set == 0 ? 0 : options.halvings); ++halvings) {
        const std::int64_t bits = set == 0 ? 2048 : kept + ((2048 - kept) >> halvings);
        for (const CoreCost& cost : all_mappings(problem, small_core(bits))) {
          ++tried;
          const auto p = core_cost_detail::priced(cost, slow_link());
          EXPECT_TRUE(std::any_of(front.begin(), front.end(),
                                  [&](const FrontPoint& point) {
                                    return point.latency <= p.latency && point.energy <= p.energy &&
                                           point.footprint.value <= bits;
                                  }))
              << "streams " << set << ", " << bits << " bits";
        }
      }
    }
    EXPECT_GT(tried, 100U);
  }
}

TEST(Front, OfAScatterHasItsForms) {
  const CoreProblem problem = test::convolution({.k = 8,
                                                 .ox = 4,
                                                 .oy = 4,
                                                 .c = 8,
                                                 .fx = 3,
                                                 .fy = 3,
                                                 .stride = 2,
                                                 .padding = 1,
                                                 .ix = 8,
                                                 .iy = 8},
                                                test::ConvProduct::input_gradient);
  const auto front = core_cost_front(problem, small_core(1 << 20), fixed(), {{0, 2}, 2});
  expect_mutually_undominated(front);
  for (const FrontPoint& point : front)
    EXPECT_FALSE(point.cost.variant.empty());
}

TEST(Front, OfAVectorOperatorStreamsOrNot) {
  CoreProblem problem;
  problem.compute = ComputeKind::vector;
  problem.dims = {{"N", 1000}};
  problem.work.add = 1;
  problem.operands = {{AccessMode::write, MemoryOperand::O, {axis({{0, 1}})}, {1000}, 32, 32},
                      {AccessMode::read, MemoryOperand::I1, {axis({{0, 1}})}, {1000}, 32, 32}};
  const auto front = core_cost_front(problem, small_core(1 << 20), fixed(), {{0, 1}, 4});
  expect_mutually_undominated(front);
  // All four sets but one: streaming the output holds as much as streaming the input, and a bit
  // costs more to write.
  EXPECT_EQ(front.size(), 3U);
}

TEST(Front, IsKeptByTheCache) {
  CoreCostCache cache;
  const CoreProblem problem = product(8, 8, 8);
  const Core core = small_core(1 << 14);
  std::vector<const std::vector<FrontPoint>*> found(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] { found[i] = &cache.front(problem, core, fixed(), {{1}, 2}); });
  for (std::thread& thread : threads)
    thread.join();
  const auto direct = core_cost_front(problem, core, fixed(), {{1}, 2});
  for (const auto* front : found) {
    EXPECT_EQ(front, found[0]);
    ASSERT_EQ(front->size(), direct.size());
    for (std::size_t i = 0; i < direct.size(); ++i) {
      EXPECT_EQ((*front)[i].latency, direct[i].latency);
      EXPECT_EQ((*front)[i].energy, direct[i].energy);
      EXPECT_EQ((*front)[i].footprint, direct[i].footprint);
      EXPECT_EQ((*front)[i].streamed, direct[i].streamed);
    }
  }
  EXPECT_NE(&cache.front(problem, core, fixed(), {{1}, 3}), found[0]);
  CoreCostOptions faster = fixed();
  faster.offchip.read_bits_per_cycle = 64;
  EXPECT_NE(&cache.front(problem, core, faster, {{1}, 2}), found[0]);
}

TEST(Front, WhatFitsNowhereIsAnError) {
  EXPECT_THROW(core_cost_front(product(16, 16, 16), small_core(64), fixed()), InfeasibleError);
  CoreProblem many = product(4, 4, 4);
  EXPECT_THROW(core_cost_front(many, small_core(1024), fixed(), {{7}, 1}), InternalError);
}

} // namespace
} // namespace monet
