// Systems too small for their steps: there is a schedule or a reason why not, soon. The time limit
// of each test is in CMakeLists.txt.
#include "schedule/fixed_costs.hpp"
#include "schedule/random_cases.hpp"
#include "schedule/schedule_alone.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/schedule.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

using testing::CaseShape;
using testing::RandomCase;

struct Tally {
  int scheduled = 0;
  int refused = 0;
};

/// Makes every memory of every core so small, or the links so narrow, that little or nothing fits.
Chip starved(Chip chip, testing::Random& random, std::int64_t max_bits) {
  for (std::size_t c = 0; c < chip.compute_cores(); ++c) {
    for (Memory& memory : chip.cores[c].memories)
      memory.size = {random.between(1, max_bits)};
  }
  for (const auto& group : chip.shared_memory) {
    for (const CoreId core : group)
      chip.cores[core.index()].memories = chip.cores[group.front().index()].memories;
  }
  if (random.chance(30)) {
    for (Link& link : chip.links)
      link.bandwidth_bits_per_cycle = 1;
  }
  return chip;
}

template <class Schedule>
Tally try_cases(std::uint64_t first, int count, bool training, bool fused, std::int64_t max_bits,
                const Schedule& schedule_case) {
  CaseShape shape;
  shape.network.training = training;
  shape.network.operators = training ? 3 : 6;
  shape.fused = fused;
  Tally tally;
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(count); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    testing::Random random(~seed);
    try {
      RandomCase c = testing::random_case(seed, shape);
      c.chip = starved(c.chip, random, max_bits);
      verify(schedule_case(c), c.tiles, c.step, c.chip);
      ++tally.scheduled;
    } catch (const InfeasibleError& error) {
      EXPECT_NE(std::string(error.what()), "");
      ++tally.refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  return tally;
}

Timeline with_fixed_costs(const RandomCase& c) {
  return testing::schedule_with(c.tiles, c.step, c.chip, testing::hashed_cost, c.priority);
}
Timeline with_solved_costs(const RandomCase& c) {
  CoreCostCache costs;
  return testing::schedule_alone(c.tiles, c.step, c.chip, costs);
}

TEST(Watchdog, memories_of_a_few_bits) {
  for (const bool training : {false, true}) {
    const Tally tally = try_cases(1, 150, training, false, 512, with_fixed_costs);
    EXPECT_GT(tally.scheduled, 0); // these costs ask for no space: all operands can pass by
  }
}

TEST(Watchdog, memories_smaller_than_most_tensors) {
  for (const bool training : {false, true}) {
    const Tally tally = try_cases(1001, 150, training, false, 8192, with_fixed_costs);
    EXPECT_GT(tally.scheduled, 50);
  }
}

TEST(Watchdog, fused_on_memories_smaller_than_most_tensors) {
  for (const bool training : {false, true}) {
    for (const std::int64_t bits : {512, 8192}) {
      const Tally tally = try_cases(3001, 100, training, true, bits, with_fixed_costs);
      EXPECT_GT(tally.scheduled, 50);
    }
  }
}

TEST(Watchdog, costs_solved_for_small_memories) {
  const Tally tally = try_cases(2001, 30, false, false, 2048, with_solved_costs);
  EXPECT_GT(tally.scheduled, 0);
  EXPECT_GT(tally.refused, 0);
}

} // namespace
} // namespace monet
