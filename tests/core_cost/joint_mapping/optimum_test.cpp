// Optima of joint_mapping against brute force over its space, and what must hold between
// techniques.
#include "core_cost/joint_mapping/random_pairs.hpp"
#include "core_cost/joint_mapping/search.hpp"
#include "core_cost/joint_mapping/simulator.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <string>

namespace monet::test {
namespace {

using namespace joint_mapping;

constexpr Wide kNever = static_cast<Wide>(std::numeric_limits<std::int64_t>::max()) << 32;

/// Every way to set the flags, whether or not it can be of use.
template <class Body>
void all_flags(Structure s, const Body& body) {
  for (unsigned flags = 0; flags < 64; ++flags) {
    for (unsigned bit = 0; bit < 6; ++bit)
      s.once[bit / 3][bit % 3] = (flags >> bit & 1U) != 0;
    const bool idle_dy = s.dy != DyUse::separate && (!s.once[kDx][0] || !s.once[kDw][1]);
    const bool idle = (!s.uses(kDx) && (flags & 7U) != 7U) || (!s.uses(kDw) && flags >> 3 != 7U);
    if (!idle_dy && !idle)
      body(s);
  }
}

template <class Body>
void all_joint(bool update, const Body& body) {
  for (const bool dw_first : {false, true}) {
    for (const Order& dx : all_orders()) {
      for (const Order& dw : all_orders()) {
        Structure s;
        s.order = {dx, dw};
        s.dw_first = dw_first;
        if (update && dw_first)
          continue;
        s.form = Form::shared;
        for (s.shared = 1; s.shared <= 3; ++s.shared) {
          if (!std::equal(dx.begin(), dx.begin() + s.shared, dw.begin()))
            continue;
          for (const DyUse dy : {DyUse::separate, DyUse::block, DyUse::once}) {
            s.dy = dy;
            all_flags(s, body);
          }
        }
        s.form = Form::lockstep;
        s.shared = 0;
        for (const DyUse dy : {DyUse::separate, DyUse::once}) {
          s.dy = dy;
          if (!update && dx != dw)
            all_flags(s, body);
        }
      }
    }
  }
}

template <class Body>
void all_single(int product, DyUse dy, const Body& body) {
  for (const Order& order : all_orders()) {
    Structure s;
    s.product = product;
    s.order = {order, order};
    s.dy = dy;
    all_flags(s, body);
  }
}

using Evaluate = std::function<Wide(const PairProblem&, const Structure&, const Tile&)>;

/// The fastest by trying everything.
class BruteForce {
public:
  BruteForce(const PairProblem& problem, const Evaluate& evaluate)
      : p_(problem), evaluate_(evaluate) {
    for (std::size_t d = 0; d < 3; ++d)
      tiles_[d] =
          tile_sizes(p_.size[d], p_.timing == TileTiming::none ? std::vector<std::int64_t>{}
                                                               : std::vector{p_.rows, p_.columns});
  }

  Wide best() {
    Wide best = single(kDw, DyUse::separate);
    if (!p_.has_dx)
      return best;
    best += single(kDx, DyUse::separate);
    for (const int first : {kDx, kDw}) {
      if (first == kDw && p_.update)
        continue;
      best = std::min(best, sequence(first, DyUse::separate, DyUse::separate));
      best = std::min(best, sequence(first, DyUse::once, DyUse::present));
    }
    all_joint(p_.update, [&](const Structure& s) { best = std::min(best, tiles(s)); });
    return best;
  }
  Wide best_sequential() { return single(kDx, DyUse::separate) + single(kDw, DyUse::separate); }

private:
  Wide single(int product, DyUse dy) {
    Wide best = kNever;
    all_single(product, dy, [&](const Structure& s) { best = std::min(best, tiles(s)); });
    return best;
  }

  /// Every plan of the first product with every one of the other, steps one after the other.
  Wide sequence(int first, DyUse before, DyUse after) const {
    const std::vector<Simulated> firsts = simulated(first, before);
    const std::vector<Simulated> seconds = simulated(1 - first, after);
    Wide best = kNever;
    for (const Simulated& a : firsts) {
      for (const Simulated& b : seconds)
        best = std::min(best, a.time + b.time - hidden(a, b));
    }
    return best;
  }

  /// Time of a plan, and its steps at both ends.
  struct Simulated {
    Wide time = 0;
    Moves first, second, last_but_one, last;
  };

  /// A step alone: neither what it reads nor what it writes.
  Wide step(const Moves& at, std::int64_t reads, std::int64_t writes) const {
    return time_of_steps(p_, {{0, 0, writes}, {at.cycles, 0, 0}, {0, reads, 0}});
  }
  Wide hidden(const Simulated& a, const Simulated& b) const {
    return static_cast<Wide>(a.last.write + b.first.read) * p_.move_units +
           step(a.last, 0, a.last_but_one.write) + step(b.first, b.second.read, 0) -
           step(a.last, b.first.read, a.last_but_one.write) -
           step(b.first, b.second.read, a.last.write);
  }

  std::vector<Simulated> simulated(int product, DyUse dy) const {
    std::map<std::array<std::int64_t, 7>, Simulated> different;
    all_single(product, dy, [&](const Structure& s) {
      each_tile(s, [&](const Tile& tile) {
        const SimulatedRun run = StaticSimulator(p_, s, tile).run();
        const std::vector<Moves>& steps = run.steps;
        const std::size_t count = steps.size();
        const Simulated made{run.time, steps.front(), count > 1 ? steps[1] : Moves{},
                             count > 1 ? steps[count - 2] : Moves{}, steps.back()};
        const std::array<std::int64_t, 7> key{static_cast<std::int64_t>(run.time),
                                              made.first.cycles,
                                              made.first.read,
                                              made.second.read,
                                              made.last.cycles,
                                              made.last.write,
                                              made.last_but_one.write};
        different.emplace(key, made);
      });
    });
    std::vector<Simulated> plans;
    for (const auto& [key, made] : different)
      plans.push_back(made);
    return plans;
  }

  template <class Body>
  void each_tile(const Structure& s, const Body& body) const {
    const Shape shape(p_, s);
    for (const std::int64_t m : tiles_[0]) {
      for (const std::int64_t k : tiles_[1]) {
        for (const std::int64_t n : tiles_[2]) {
          if (shape.held(Tile{m, k, n}) <= p_.room)
            body(Tile{m, k, n});
        }
      }
    }
  }

  Wide tiles(const Structure& s) const {
    Wide best = kNever;
    each_tile(s, [&](const Tile& tile) { best = std::min(best, evaluate_(p_, s, tile)); });
    return best;
  }

  const PairProblem& p_;
  const Evaluate& evaluate_;
  std::array<std::vector<std::int64_t>, 3> tiles_;
};

Wide by_simulation(const PairProblem& p, const Structure& s, const Tile& tile) {
  return StaticSimulator(p, s, tile).run().time;
}
Wide by_formula(const PairProblem& p, const Structure& s, const Tile& tile) {
  return Plan(p, s, tile).time();
}

void expect_optimum(const RandomQuestion& q, bool update, const Evaluate& evaluate,
                    const std::string& where) {
  const PairProblem p = make_problem(q.pair, q.machine, q.options, update);
  BruteForce brute(p, evaluate);
  const Wide best = brute.best();
  try {
    const Chosen chosen = choose(p, update ? Technique::joint_update : Technique::joint, q.options);
    ASSERT_TRUE(chosen.time() == best) << where << ": " << static_cast<double>(chosen.time())
                                       << " but there is " << static_cast<double>(best);
  } catch (const InfeasibleError&) {
    ASSERT_GE(best, kNever) << where;
  }
}

TEST(JointOptimum, EqualsSimulatingEveryOrderOfGridsOfEight) {
  RandomStream random(8);
  for (const std::array<std::int64_t, 3>& size : {std::array<std::int64_t, 3>{2, 2, 2},
                                                  {1, 2, 3},
                                                  {3, 1, 2},
                                                  {2, 4, 1},
                                                  {8, 1, 1},
                                                  {1, 8, 1},
                                                  {1, 1, 8},
                                                  {4, 1, 2},
                                                  {1, 4, 2}}) {
    RandomQuestion q = random_question(random, 2);
    q.pair.m = size[0];
    q.pair.k = size[1];
    q.pair.n = size[2];
    q.pair.raw_elements = 0;
    q.machine.buffer_bits = from_to(random, 3, 12) * 2 * q.options.partial_bits;
    expect_optimum(q, random.chance(0.3), by_simulation, fmt::format("{}", size[0]));
  }
}

TEST(JointOptimum, EqualsBruteForce) {
  RandomStream random(9);
  for (int i = 0; i < 40; ++i) {
    RandomQuestion q = random_question(random, 6);
    q.pair.has_dx = !random.chance(0.1);
    q.machine.buffer_bits = from_to(random, 2, 40) * 2 * q.options.partial_bits;
    expect_optimum(q, random.chance(0.2), by_formula, fmt::format("question {}", i));
  }
}

TEST(JointOptimum, BestSequentialEqualsBruteForce) {
  RandomStream random(10);
  for (int i = 0; i < 100; ++i) {
    RandomQuestion q = random_question(random, 14);
    q.machine.buffer_bits = from_to(random, 4, 200) * 2 * q.options.partial_bits;
    const PairProblem p = make_problem(q.pair, q.machine, q.options, false);
    const Evaluate evaluate = by_formula;
    const Wide best = BruteForce(p, evaluate).best_sequential();
    ASSERT_TRUE(choose(p, Technique::best_sequential, q.options).time() == best) << i;
  }
}

/// What a sequence claims is what its steps take one after the other.
TEST(JointOptimum, HidesMovesAtTheSeamOfTwoProducts) {
  RandomStream random(12);
  int sequences = 0;
  for (int i = 0; i < 60; ++i) {
    RandomQuestion q = random_question(random, 9);
    q.pair.has_dx = true;
    q.machine.buffer_bits = from_to(random, 4, 60) * 2 * q.options.partial_bits;
    const PairProblem p = make_problem(q.pair, q.machine, q.options, false);
    const Chosen chosen = choose(p, Technique::joint, q.options);
    if (chosen.programs.size() == 1)
      continue;
    ++sequences;
    std::vector<Moves> steps;
    for (const Choice& program : chosen.programs) {
      const auto own = StaticSimulator(p, program.structure, program.tile).run().steps;
      steps.insert(steps.end(), own.begin(), own.end());
    }
    const Wide time = time_of_steps(p, steps);
    ASSERT_TRUE(chosen.time() == time) << i;
  }
  EXPECT_GT(sequences, 5);
}

/// No weight changes before dX has used it.
TEST(JointOptimum, UpdatesComeAfterTheLastUseOfAWeight) {
  RandomStream random(11);
  for (int i = 0; i < 100; ++i) {
    const RandomQuestion q = random_question(random, 5);
    const PairProblem p = make_problem(q.pair, q.machine, q.options, true);
    const std::vector<Structure> structures = joint_structures(p);
    const Structure& s = structures[random.below(structures.size())];
    Tile tile{};
    for (std::size_t d = 0; d < 3; ++d)
      tile[d] = from_to(random, 1, p.size[d]);
    const Index parts = parts_of(p, tile);
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> terms;
    for (const TileProduct& op : tile_products(s, parts)) {
      std::int64_t& done = terms[{op.index[1], op.index[2]}];
      if (op.product == kDw)
        ++done;
      else
        ASSERT_LT(done, parts[0]) << i;
    }
  }
}

} // namespace
} // namespace monet::test
