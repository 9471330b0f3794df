// The closed forms of traffic, room and time against a simulator of tiles, and that against LRU and
// Belady's replacement.
#include "core_cost/joint_mapping/random_pairs.hpp"
#include "core_cost/joint_mapping/simulator.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

using namespace joint_mapping;

std::int64_t sum_of(const std::array<std::int64_t, 5>& values) {
  return values[0] + values[1] + values[2] + values[3] + values[4];
}

TEST(JointClosedForm, EqualsSimulationOfTiles) {
  RandomStream random(20);
  for (int i = 0; i < 10'000; ++i) {
    const RandomQuestion q = random_question(random, 9);
    const PairProblem problem = make_problem(q.pair, q.machine, q.options, random.chance(0.2));
    std::vector<Structure> structures =
        random.chance(0.3) ? random_singles(problem) : joint_structures(problem);
    const Structure& s = structures[random.below(structures.size())];
    Tile tile{};
    for (std::size_t d = 0; d < 3; ++d)
      tile[d] = from_to(random, 1, problem.size[d]);
    const SimulatedRun run = StaticSimulator(problem, s, tile).run();
    const Plan plan(problem, s, tile);
    const Shape shape(problem, s);
    const FineTraffic traffic = traffic_of(problem, s, plan.parts());
    ASSERT_EQ((std::array{traffic.dy_read, traffic.w_read, traffic.x_read, traffic.dx_read,
                          traffic.dw_read}),
              run.read)
        << i;
    ASSERT_EQ((std::array<std::int64_t, 5>{0, 0, 0, traffic.dx_write, traffic.dw_write}), run.write)
        << i;
    ASSERT_EQ(traffic.update_read + traffic.update_write, run.update) << i;
    ASSERT_EQ(shape.moved(plan.parts()), sum_of(run.read) + sum_of(run.write) + run.update) << i;
    ASSERT_TRUE(plan.time() == run.time) << i;
    ASSERT_TRUE(plan.compute_cycles() == run.cycles) << i;
    ASSERT_GE(shape.held(tile), run.peak) << i;
    bool whole = true;
    for (std::size_t d = 0; d < 3; ++d)
      whole = whole && problem.size[d] % tile[d] == 0 && plan.parts()[d] > 1;
    if (whole) {
      ASSERT_EQ(shape.held(tile), run.peak) << i;
    }
  }
}

/// In turn, in two orders, with many tiles: stretches that repeat are counted at once.
TEST(JointClosedForm, EqualsSimulationOfLongTurns) {
  RandomStream random(21);
  for (int i = 0; i < 300; ++i) {
    RandomQuestion q = random_question(random, 3);
    std::int64_t* const sizes[]{&q.pair.m, &q.pair.k, &q.pair.n};
    *sizes[random.below(3)] = from_to(random, 20, 90);
    if (random.chance(0.3))
      q.pair.k = from_to(random, 4, 12);
    q.pair.raw_elements = 0;
    const PairProblem problem = make_problem(q.pair, q.machine, q.options, false);
    std::vector<Structure> turns;
    for (const Structure& s : joint_structures(problem)) {
      if (s.form == Form::lockstep)
        turns.push_back(s);
    }
    Structure s = turns[random.below(turns.size())];
    s.dw_first = random.chance(0.5);
    Tile tile{1, 1, 1};
    for (std::size_t d = 0; d < 3; ++d)
      tile[d] = from_to(random, 1, std::min<std::int64_t>(2, problem.size[d]));
    ASSERT_TRUE(Plan(problem, s, tile).time() == StaticSimulator(problem, s, tile).run().time) << i;
  }
}

} // namespace
} // namespace monet::test
