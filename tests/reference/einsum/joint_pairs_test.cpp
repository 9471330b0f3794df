// The least traffic of dX and dW together, without time, against the mapper of fused Einsums: two
// models of the same question that share no code.
#include "base/shared/rng.hpp"

#include "monet/base/errors.hpp"
#include "monet/core_cost/backward.hpp"
#include "monet/reference/einsum_mapper.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

namespace monet {
namespace {

/// dX = dY W^T and dW = X^T dY over ranks m, k, n.
EinsumCascade pair_cascade(const GemmPair& pair, std::int64_t bits) {
  const auto axis = [](std::uint32_t rank) { return AxisExpr{{{rank, 1}}, 0, false}; };
  EinsumCascade c;
  c.tensors = {{"dY", {pair.m, pair.n}, bits, true},
               {"W", {pair.k, pair.n}, bits, true},
               {"X", {pair.m, pair.k}, bits, true},
               {"dX", {pair.m, pair.k}, bits, true},
               {"dW", {pair.k, pair.n}, bits, true}};
  const std::vector<std::int64_t> bounds{pair.m, pair.k, pair.n};
  c.einsums = {{"dX",
                bounds,
                {},
                {{3, true, {axis(0), axis(1)}},
                 {0, false, {axis(0), axis(2)}},
                 {1, false, {axis(1), axis(2)}}}},
               {"dW",
                bounds,
                {},
                {{4, true, {axis(1), axis(2)}},
                 {2, false, {axis(0), axis(1)}},
                 {0, false, {axis(0), axis(2)}}}}};
  return c;
}

std::optional<std::int64_t> mapped(const GemmPair& pair, std::int64_t buffer, std::int64_t bits) {
  EinsumOptions options;
  options.buffer_bits = buffer;
  options.front = false;
  options.resident = true;
  try {
    const EinsumResult result = map_einsums(pair_cascade(pair, bits), options);
    EXPECT_TRUE(result.exact);
    return result.front.front().dram_bits;
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

std::optional<BackwardCost> joint(const GemmPair& pair, std::int64_t buffer, std::int64_t bits) {
  NpuMachine machine;
  machine.buffer_bits = buffer;
  machine.double_buffered = false;
  BackwardOptions options;
  options.timing = TileTiming::none;
  options.tiles = TilePolicy::divisors;
  options.element_bits = options.partial_bits = bits;
  try {
    return backward_cost(pair, machine, Technique::joint, options);
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

/// A loop over k is among those that both products share. The mapper has none: what several Einsums
/// read stays in the buffer only below loops that it depends on.
bool shares_k(const BackwardCost& cost) {
  const auto& order = cost.mapping.dx.order;
  return std::find(order.begin(), order.begin() + cost.mapping.shared, GemmDim::k) !=
         order.begin() + cost.mapping.shared;
}

TEST(JointPairs, LeastTrafficIsThatOfFusedEinsums) {
  constexpr std::array<std::int64_t, 8> kSizes{1, 2, 3, 4, 6, 8, 12, 16};
  constexpr std::int64_t kBits = 8;
  RandomStream random(40);
  int fit = 0;
  int kept = 0;
  int less = 0;
  for (int i = 0; i < 500; ++i) {
    GemmPair pair;
    pair.m = kSizes[random.below(kSizes.size())];
    pair.k = kSizes[random.below(kSizes.size())];
    pair.n = kSizes[random.below(kSizes.size())];
    const std::int64_t all = pair.m * pair.n + 2 * (pair.k * pair.n + pair.m * pair.k);
    const std::int64_t buffer =
        kBits * (2 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(all))));
    const auto theirs = mapped(pair, buffer, kBits);
    const auto ours = joint(pair, buffer, kBits);
    ASSERT_EQ(theirs.has_value(), ours.has_value()) << i;
    if (!ours)
      continue;
    ++fit;
    kept += ours->mapping.dy_kept ? 1 : 0;
    if (shares_k(*ours) && ours->traffic.bits() < *theirs)
      ++less;
    else
      ASSERT_EQ(ours->traffic.bits(), *theirs)
          << i << ": " << pair.m << " " << pair.k << " " << pair.n << " in " << buffer << " bits";
  }
  EXPECT_GT(fit, 450);
  EXPECT_GT(kept, 100);
  EXPECT_LT(less, 10);
}

} // namespace
} // namespace monet
