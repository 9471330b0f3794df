// An array that adds up several products in a multiplier: by hand, in closed form, and as
// published.
#include "core_cost/cores.hpp"
#include "hardware/least_squares.hpp"
#include "hardware/shared/array_modes.hpp"

#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace monet {
namespace {

using test::memory;
using test::port;
using test::product;
using test::use;

/// Two multipliers (K on D1), one 32-bit output register each and one memory for everything.
Core two_columns(std::int64_t products) {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core;
  core.name = "two_columns";
  core.array = {{"D1", 2}};
  core.dataflow = {{{"K", 2}}};
  core.memories.push_back(
      memory("register", 32, 1, {O}, {false},
             {port(read, 16, 16, {use(O, tl)}), port(read, 16, 16, {use(O, th)}),
              port(write, 16, 16, {use(O, fh)}), port(write, 16, 16, {use(O, fl)})}));
  core.memories.push_back(
      memory("sram", 1024, 10, {I1, I2, O}, {true},
             {port(read, 16, 32, {use(I1, tl), use(I2, tl), use(O, tl), use(O, th)}),
              port(write, 16, 16, {use(I1, fh), use(I2, fh), use(O, fh), use(O, fl)})}));
  ArrayMode mode;
  mode.products = products;
  mode.energy_pj = 0.25;
  return in_mode(core, mode);
}

// O[D,K] += I[D,C] * W[C,K] with all sizes 2, 8-bit data and 16-bit partial sums: K fills the
// array and both products of C are made at once, so D=2 is the only temporal loop.
//   register: 2 cycles x 2 registers = 4 sums written, none read back; then each of 2 registers
//   sends 2 elements of 8 bits as 1 word up: 4 + 2 words x 1 pJ = 6 I: 2 values a cycle = 16 bits =
//   half a word of 32, 2 cycles: 1 word                   10 W: 4 values once = 32 bits = 1 word 10
//   O sram: 4 elements of 8 bits = 2 words of 16                                          20
//   8 products x 0.25 = 2
TEST(ArrayModeCost, TwoProductsByHand) {
  const CoreCost cost = core_cost(product(2, 2, 2), two_columns(2));
  EXPECT_DOUBLE_EQ(cost.parts.ideal_temporal, 2);
  EXPECT_DOUBLE_EQ(cost.compute_energy.value, 2);
  EXPECT_DOUBLE_EQ(cost.memory_energy.value, 6 + 10 + 10 + 20);
  ASSERT_EQ(cost.spatial.unrolled.size(), 2U);
  ASSERT_EQ(cost.spatial.unrolled[1].size(), 1U);
  EXPECT_EQ(cost.spatial.unrolled[1][0].size, 2);
}

/// Loops that outputs have are never unrolled where products are added up, however short the sums.
TEST(ArrayModeCost, AddsUpNothingButSums) {
  const CoreCost cost = core_cost(product(1, 16, 2), two_columns(4));
  EXPECT_TRUE(cost.spatial.unrolled.at(1).empty());
  EXPECT_DOUBLE_EQ(cost.parts.ideal_temporal, 16);
}

/// Products of different blocks have different scales.
TEST(ArrayModeCost, StaysInsideBlocks) {
  CoreProblem problem = product(16, 2, 2);
  for (std::size_t d = 0; d < problem.dims.size(); ++d)
    if (problem.dims[d].size == 16)
      problem.across_blocks = std::uint32_t{1} << d;
  EXPECT_DOUBLE_EQ(core_cost(problem, two_columns(4)).parts.ideal_temporal, 32);
  problem.across_blocks = 0;
  EXPECT_DOUBLE_EQ(core_cost(problem, two_columns(4)).parts.ideal_temporal, 8);
}

struct Published {
  std::string format;
  std::int64_t bits;     ///< of an element with its share of a scale, as it is streamed
  std::int64_t products; ///< of a multiplier in a cycle
  double gops_per_w;     ///< arXiv 2511.06313
  double multipliers;    ///< of 2 bits, in use of sixteen
  double aligned;        ///< floating-point products, or groups of four of FP4
  double expected = 0;   ///< of the calibrated model, docs/explanation/mac-unit-costs.md
};
const std::vector<Published>& published() {
  static const std::vector<Published> all{{"mxint8", 9, 1, 657, 16, 0, 657.0},
                                          {"mxfp8_e4m3", 9, 4, 1438, 16, 4, 1490},
                                          {"mxfp6_e3m2", 7, 4, 1675, 16, 4, 1616},
                                          {"mxfp4_e2m1", 5, 8, 4065, 8, 2, 4108}};
  return all;
}

/// 64 x 64 outputs of 512 products each: long sums, everything on the chip.
CoreCost cost_of(const Published& mode) {
  static const Core core =
      read_core(std::string(MONET_SOURCE_DIR) + "/data/hardware/cores/snax_mx_array.yaml");
  const TensorFormat format = element_type_named(mode.format).value().format();
  CoreProblem problem = product(512, 64, 64);
  for (ProblemOperand& operand : problem.operands) {
    const bool output = operand.mode != AccessMode::read;
    operand.bits = output ? 32 : mode.bits;
    operand.partial_bits = output ? 32 : mode.bits;
  }
  return core_cost(problem, in_mode_for(core, std::span(&format, 1)));
}
constexpr double kProducts = 64.0 * 64 * 512;

TEST(ArrayModeCost, CyclesAreThoseOfThePeak) {
  for (const Published& mode : published()) {
    const CoreCost cost = cost_of(mode);
    EXPECT_DOUBLE_EQ(cost.parts.ideal_temporal,
                     kProducts / static_cast<double>(64 * mode.products));
    EXPECT_EQ(cost.spatial_utilisation, 1) << mode.format;
  }
}

/// Calibrated on these four figures, with two constants.
TEST(ArrayModeCost, EfficiencyIsWithinFivePercent) {
  for (const Published& mode : published()) {
    const double found = 2000 * kProducts / cost_of(mode).energy().value;
    EXPECT_NEAR(found / mode.gops_per_w, 1, 0.05) << mode.format;
    EXPECT_NEAR(found / mode.expected, 1, 0.001) << mode.format;
  }
}

/// The constants in the file, and what they come to without one of the figures.
TEST(ArrayModeCost, CalibrationIsWhatItIsSaidToBe) {
  const auto constants_without = [](std::size_t out) {
    std::vector<std::vector<double>> rows;
    std::vector<double> values;
    for (std::size_t i = 0; i < published().size(); ++i) {
      const Published& mode = published()[i];
      if (i == out)
        continue;
      const double memory = cost_of(mode).memory_energy.value / kProducts;
      const double all = 2000 / mode.gops_per_w;
      const double scale = all * static_cast<double>(mode.products); // errors are relative
      rows.push_back({mode.multipliers / scale, mode.aligned / scale});
      values.push_back((all - memory) / all);
    }
    return test::min_squares(rows, values);
  };
  const std::vector<double> all = constants_without(published().size());
  EXPECT_NEAR(all[0], 0.1602, 0.0001);
  EXPECT_NEAR(all[1], 0.2205, 0.0001);
  const auto error_without = [&](std::size_t out) {
    const Published& mode = published()[out];
    const std::vector<double> c = constants_without(out);
    const double unit =
        (c[0] * mode.multipliers + c[1] * mode.aligned) / static_cast<double>(mode.products);
    const double memory = cost_of(mode).memory_energy.value / kProducts;
    return 2000 / (unit + memory) / mode.gops_per_w - 1;
  };
  EXPECT_NEAR(error_without(1), 0.057, 0.0005);
  EXPECT_NEAR(error_without(2), -0.065, 0.0005);
  EXPECT_NEAR(error_without(3), 0.013, 0.0005);
}

} // namespace
} // namespace monet
