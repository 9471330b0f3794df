// Cuts between the off-chip memory and the core against a walk over every slice of every cut.
#include "core_cost/model/candidate.hpp"
#include "core_cost/random_problems.hpp"
#include "core_cost/search/outer_tiling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace monet::core_cost_detail {
namespace {

using test::Dice;
using test::one_mac;
using test::product;

constexpr OffchipRate kOneBit{1, 1, true, 0, 0}; ///< a bit per cycle: cycles are bits

CoreProblem streamed_product(std::int64_t c, std::int64_t d, std::int64_t k) {
  CoreProblem problem = product(c, d, k);
  for (ProblemOperand& operand : problem.operands)
    operand.offchip = true;
  return problem;
}

struct Nest {
  NestModel model;
  Hierarchy hierarchy;
  SpatialModel spatial;
};

Nest nest_of(const CoreProblem& problem, const Core& core) {
  Nest nest;
  nest.model = make_nest_model(problem);
  nest.hierarchy = make_hierarchy(problem, nest.model, core);
  nest.spatial = make_spatial_model(nest.model, nest.hierarchy, {{}});
  return nest;
}

/// Bits that pass when one slice of each operand is on the chip at a time and the loops outside run
/// in `order`, innermost first. `times` and `inside` are by dim: C, D, K; elements of 8 bits, open
/// sums of 16.
std::int64_t walked_bits(const std::array<std::int64_t, 3>& times,
                         const std::array<std::int64_t, 3>& inside, std::array<int, 3> order) {
  std::int64_t bits = 0;
  std::array<std::int64_t, 2> held_i{-1, -1};
  std::array<std::int64_t, 2> held_w{-1, -1};
  std::array<std::int64_t, 2> held_o{-1, -1};
  std::vector<std::int64_t> added(static_cast<std::size_t>(times[1] * times[2]));
  std::array<std::int64_t, 3> at{};
  const std::int64_t output = inside[1] * inside[2];
  const auto leave = [&] {
    if (held_o[0] < 0)
      return;
    const auto sums = added[static_cast<std::size_t>(held_o[0] * times[2] + held_o[1])];
    bits += output * (sums == times[0] ? 8 : 16);
  };
  for (std::int64_t step = 0; step < times[0] * times[1] * times[2]; ++step) {
    std::int64_t rest = step;
    for (const int dim : order) {
      at[static_cast<std::size_t>(dim)] = rest % times[static_cast<std::size_t>(dim)];
      rest /= times[static_cast<std::size_t>(dim)];
    }
    if (held_i != std::array{at[1], at[0]})
      bits += inside[1] * inside[0] * 8;
    if (held_w != std::array{at[0], at[2]})
      bits += inside[0] * inside[2] * 8;
    held_i = {at[1], at[0]};
    held_w = {at[0], at[2]};
    auto& sums = added[static_cast<std::size_t>(at[1] * times[2] + at[2])];
    if (held_o != std::array{at[1], at[2]}) {
      leave();
      held_o = {at[1], at[2]};
      bits += sums > 0 ? output * 16 : 0;
    }
    ++sums;
  }
  leave();
  return bits;
}

std::int64_t min_walked(const std::array<std::int64_t, 3>& sizes, std::int64_t capacity) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t c = 1; c <= sizes[0]; ++c) {
    for (std::int64_t d = 1; d <= sizes[1]; ++d) {
      for (std::int64_t k = 1; k <= sizes[2]; ++k) {
        if (sizes[0] % c != 0 || sizes[1] % d != 0 || sizes[2] % k != 0 ||
            8 * (c * d + c * k) + (c < sizes[0] ? 16 : 8) * d * k > capacity)
          continue;
        std::array<int, 3> order{0, 1, 2};
        do {
          least = std::min(
              least, walked_bits({sizes[0] / c, sizes[1] / d, sizes[2] / k}, {c, d, k}, order));
        } while (std::next_permutation(order.begin(), order.end()));
      }
    }
  }
  return least;
}

TEST(OuterTiling, FindsTheLeastTrafficOfAllCuts) {
  Dice dice(7);
  int cut = 0;
  for (int n = 0; n < 60; ++n) {
    const std::array<std::int64_t, 3> sizes{dice.number(1, 24), dice.number(1, 24),
                                            dice.number(1, 24)};
    Core core = one_mac();
    core.memories[1].size = {dice.number(1, 24) * 128};
    const Nest nest = nest_of(streamed_product(sizes[0], sizes[1], sizes[2]), core);
    const auto found = outer_tilings(nest.model, nest.hierarchy, nest.spatial, kOneBit, 1e18);
    const std::int64_t least = min_walked(sizes, core.memories[1].size.value);
    if (found.empty()) { // nothing to cut: the whole product fits
      EXPECT_LE(8 * (sizes[0] * sizes[1] + sizes[0] * sizes[2] + sizes[1] * sizes[2]),
                core.memories[1].size.value);
      continue;
    }
    ++cut;
    EXPECT_EQ(static_cast<std::int64_t>(found.front().cycles), least)
        << sizes[0] << " " << sizes[1] << " " << sizes[2] << " in " << core.memories[1].size.value;
    EXPECT_TRUE(std::ranges::is_sorted(found, {}, &OuterTiling::cycles));
    EXPECT_TRUE(
        outer_tilings(nest.model, nest.hierarchy, nest.spatial, kOneBit, static_cast<double>(least))
            .empty());
  }
  EXPECT_GT(cut, 30);
}

// Inside a tiling, every order has the loops outside where the tiling wants them, and the exact
// model moves no more than the closed form says.
TEST(OuterTiling, OrdersInsideMoveWhatItPromises) {
  Core core = one_mac();
  core.memories[1].size = {8192};
  const CoreProblem problem = streamed_product(30, 42, 70);
  const Nest nest = nest_of(problem, core);
  for (const OuterTiling& tiling :
       outer_tilings(nest.model, nest.hierarchy, nest.spatial, kOneBit, 1e18)) {
    const TemporalSpace space = space_inside(nest.spatial, tiling, 6);
    std::array<double, 3> product{1, 1, 1};
    for (const Loop& loop : space.factors)
      product[loop.dim] *= loop.size;
    EXPECT_EQ(product, (std::array<double, 3>{30, 42, 70}));
    Candidate candidate;
    candidate.size = space.factors.size();
    std::ranges::copy(space.factors, candidate.loops.begin());
    for (std::size_t place = 0; place < candidate.size; ++place)
      EXPECT_TRUE(space.allows(space.factors[place], place));
    ASSERT_TRUE(evaluate(nest.model, nest.hierarchy, nest.spatial, candidate));
    double bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& top = candidate.exact[i].levels[nest.hierarchy.levels[i].size() - 1];
      for (const Direction direction : {Direction::tl, Direction::fl}) {
        const Movement& m = top[index_of(direction)];
        bits += static_cast<double>(m.amount * m.count * m.bits);
      }
    }
    // It counts the first read-back of each sum, which finds nothing there.
    EXPECT_LE(bits, tiling.cycles + 42.0 * 70 * 16);
  }
}

// What merging factors to six leaves out costs up to half of the cycles here; with the tilings, no
// more than 2 % are left to a search without merging.
TEST(OuterTiling, MergedFactorsMoveAsLittleAsAllFactors) {
  CoreCostOptions merged;
  merged.offchip = {8, 8, true, 0, 0};
  CoreCostOptions all = merged;
  all.lpf_limit = 0;
  struct Size {
    std::int64_t kibibytes, c, d;
  };
  for (const Size& size : {Size{8, 96, 1024}, Size{32, 768, 96}, Size{16, 384, 256}}) {
    const CoreProblem problem = streamed_product(size.c, size.d, 197 * 32);
    Core core = test::tpu_like(false);
    core.memories[2].size = {size.kibibytes * 1024 * 8};
    const auto cycles = [&](const CoreCostOptions& options) {
      const CoreCost cost = core_cost(problem, core, options);
      OffchipTraffic moved;
      for (const OffchipTraffic& traffic : cost.offchip) {
        moved.read += traffic.read;
        moved.write += traffic.write;
      }
      return std::max(cost.parts.total(), options.offchip.cycles(moved));
    };
    EXPECT_LE(cycles(merged), 1.02 * cycles(all)) << size.kibibytes;
  }
}

} // namespace
} // namespace monet::core_cost_detail
