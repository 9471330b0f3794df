// Small random pairs, machines and structures.
#pragma once

#include "base/shared/rng.hpp"
#include "core_cost/joint_mapping/structures.hpp"

#include <vector>

namespace monet::test {

inline std::int64_t from_to(RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

struct RandomQuestion {
  GemmPair pair;
  NpuMachine machine;
  BackwardOptions options;
};

inline RandomQuestion random_question(RandomStream& random, std::int64_t largest) {
  RandomQuestion q;
  q.pair.m = from_to(random, 1, largest);
  q.pair.k = from_to(random, 1, largest);
  q.pair.n = from_to(random, 1, largest);
  if (random.chance(0.2))
    q.pair.raw_elements = from_to(random, 1, q.pair.m * q.pair.k);
  q.machine.rows = from_to(random, 1, 4);
  q.machine.columns = from_to(random, 1, 4);
  q.machine.buffer_bits = from_to(random, 1, 40) * 200;
  q.machine.bandwidth_bits = from_to(random, 1, 64);
  q.machine.bandwidth_cycles = from_to(random, 1, 9);
  q.options.timing = static_cast<TileTiming>(random.below(3));
  q.options.im2col = random.chance(0.5) ? Im2col::raw : Im2col::expanded;
  q.options.element_bits = from_to(random, 1, 3) * 8;
  q.options.partial_bits = q.options.element_bits + from_to(random, 0, 2) * 8;
  q.options.hide_writes = random.chance(0.7);
  q.options.state_bits = from_to(random, 0, 2) * 32;
  return q;
}

/// Of one product alone, with every use of dY.
inline std::vector<joint_mapping::Structure>
random_singles(const joint_mapping::PairProblem& problem) {
  using namespace joint_mapping;
  std::vector<Structure> out;
  for (const int product : {kDx, kDw}) {
    for (const Order& order : all_orders()) {
      for (const DyUse dy : {DyUse::separate, DyUse::once, DyUse::present}) {
        const std::vector<Structure> more = single_structures(problem, product, order, dy);
        out.insert(out.end(), more.begin(), more.end());
      }
    }
  }
  return out;
}

} // namespace monet::test
