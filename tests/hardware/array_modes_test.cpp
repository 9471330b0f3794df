// Modes of an array: which formats they take, and the core as it works in one.
#include "hardware/shared/array_modes.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/hardware/imc_array.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace monet {
namespace MONET_TEST_FILE {

std::string core_text(const std::string& array) {
  return R"(
name: scalable
operational_array:
)" + array +
         R"(
  dimensions: [D1, D2]
  sizes: [4, 2]
memories:
  sums:
    size: 64
    r_cost: 1
    w_cost: 1
    operands: [O]
    ports:
      - {name: r_port_1, type: read, bandwidth_min: 8, bandwidth_max: 32, allocation: ["O, tl", "O, th"]}
      - {name: w_port_1, type: write, bandwidth_min: 8, bandwidth_max: 32, allocation: ["O, fl", "O, fh"]}
    served_dimensions: [D2]
  sram:
    size: 65536
    r_cost: 10
    w_cost: 12
    operands: [I1, I2, O]
    ports:
      - {name: r_port_1, type: read, bandwidth_min: 8, bandwidth_max: 512, allocation: ["I1, tl", "I2, tl", "O, tl", "O, th"]}
      - {name: w_port_1, type: write, bandwidth_min: 8, bandwidth_max: 512, allocation: ["I1, fh", "I2, fh", "O, fh", "O, fl"]}
    served_dimensions: [D1, D2]
)";
}

Core scalable() {
  return parse_core(core_text(R"(
  unit_energy: 5
  modes:
    - {formats: [mxint8], products: 1, unit_energy: 3}
    - {formats: [mxfp8_e4m3, mxfp8_e5m2_8x8, fp8_e4m3], products: 4, unit_energy: 1.5}
)"),
                    "scalable.yaml");
}

TensorFormat type(const std::string& name) {
  return element_type_named(name).value().format();
}

const Core& running(const Core& core, const std::vector<std::string>& names) {
  std::vector<TensorFormat> formats;
  for (const std::string& name : names)
    formats.push_back(type(name));
  return in_mode_for(core, formats);
}

TEST(ArrayModes, FollowTheOperands) {
  const Core core = scalable();
  EXPECT_EQ(running(core, {"mxint8"}).mac_energy_pj, 3);
  EXPECT_EQ(running(core, {"mxint8"}).lanes(), 8);
  const Core& four = running(core, {"mxfp8_e4m3", "mxfp8_e5m2_8x8"});
  EXPECT_EQ(four.mac_energy_pj, 1.5);
  EXPECT_EQ(four.lanes(), 32);
  EXPECT_EQ(running(core, {"fp8_e4m3"}).lanes(), 32);
  EXPECT_EQ(running(core, {}).lanes(), 8);
  EXPECT_TRUE(four.modes.empty());
}

/// A vector stands for vectors along any axis; its length, squares and scales count.
TEST(ArrayModes, TakeBlocksAlongAnyAxis) {
  const Core core = scalable();
  const auto is_taken = [&](const std::string& name) {
    const TensorFormat format = type(name);
    return takes(core, std::span(&format, 1));
  };
  EXPECT_TRUE(is_taken("mxfp8_e4m3_32x1x1"));
  EXPECT_TRUE(is_taken("mxfp8_e4m3_32x1"));
  EXPECT_TRUE(is_taken("mxfp8_e4m3_rceil")); // how scales are chosen is nothing to a multiplier
  EXPECT_TRUE(is_taken("mxfp8_e5m2_8x8x1x1"));
  EXPECT_FALSE(is_taken("mxfp8_e4m3_1x16"));
  EXPECT_FALSE(is_taken("mxfp8_e4m3_8x8"));
  EXPECT_FALSE(is_taken("mxfp8_e5m2"));
  EXPECT_FALSE(is_taken("e4m3_1x128"));
  EXPECT_FALSE(is_taken("e5m2"));
  EXPECT_FALSE(is_taken("fp32"));
}

TEST(ArrayModes, SayWhatTheyTake) {
  const Core core = scalable();
  try {
    running(core, {"mxint8", "fp32"});
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(), "core 'scalable' has no mode that multiplies mxint8 and fp32; its "
                               "modes multiply [mxint8], [mxfp8_e4m3, mxfp8_e5m2_8x8, fp8_e4m3]");
  }
}

TEST(ArrayModes, AddADimensionThatEveryMemoryServes) {
  const Core core = scalable();
  const Core& four = running(core, {"mxfp8_e4m3"});
  ASSERT_EQ(four.array.size(), 3U);
  EXPECT_EQ(four.array.back().size, 4);
  EXPECT_TRUE(four.array.back().sums);
  for (std::size_t m = 0; m < core.memories.size(); ++m) {
    EXPECT_TRUE(four.memories[m].serves.back());
    EXPECT_EQ(instances(four, four.memories[m]), instances(core, core.memories[m]));
  }
  EXPECT_EQ(running(core, {"mxint8"}).array.size(), 2U);
}

TEST(ArrayModes, PeakIsThatOfTheBestMode) {
  const Core core = scalable();
  EXPECT_EQ(max_products(core), 32);
  EXPECT_EQ(max_energy_pj(core), 8 * 4 * 1.5);
  Core plain = core;
  plain.modes.clear();
  EXPECT_EQ(max_products(plain), 8);
  EXPECT_EQ(max_energy_pj(plain), 8 * 5.0);
}

// Bits that follow one another make fractions of a product in a cycle.
TEST(ArrayModes, PeakOfAnArrayThatComputesInMemory) {
  Core core;
  core.array = {{"D1", 2}, {"D2", 3}};
  ImcArray imc;
  imc.serial_bits = 2;
  core.imc = std::make_shared<const ImcArray>(imc);
  EXPECT_EQ(max_products(core), 1.5);
  imc.serial_bits = 1;
  core.imc = std::make_shared<const ImcArray>(imc);
  core.array[1].size = 1;
  EXPECT_EQ(max_products(core), 0.25);
}

/// A unit alone takes plain numbers of its own format, and is priced by its design.
TEST(ArrayModes, AUnitIsAMode) {
  const Core core =
      parse_core(core_text("  mac: {multiply: e5m2, variant: cfg5, accumulate: e6m5}\n"
                           "  auto_cost_extraction: true\n"),
                 "unit.yaml");
  ASSERT_EQ(core.modes.size(), 1U);
  const double priced = mac_cost(*core.mac, 22).energy_pj();
  EXPECT_DOUBLE_EQ(core.mac_energy_pj, priced);
  EXPECT_DOUBLE_EQ(running(core, {"e5m2"}).mac_energy_pj, priced);
  const TensorFormat scaled = type("mxfp8_e5m2");
  EXPECT_FALSE(takes(core, std::span(&scaled, 1)));
}

/// Modes without a figure of their own cost what the unit takes for their dearest format.
TEST(ArrayModes, ArePricedByTheModel) {
  const Core core =
      parse_core(core_text("  mac: {multiply: e5m3, variant: cfg5, accumulate: fp32}\n"
                           "  auto_cost_extraction: true\n"
                           "  modes:\n"
                           "    - {formats: [e4m3, e5m2, e5m3], products: 2}\n"
                           "    - {formats: [e2m1], unit_energy: 0.125}\n"),
                 "priced.yaml");
  EXPECT_DOUBLE_EQ(core.modes[0].energy_pj, mac_cost(*core.mac, 22).energy_pj());
  EXPECT_EQ(core.modes[1].energy_pj, 0.125);
}

Operator product_of(Graph& graph, const std::string& left, const std::string& right) {
  const auto add = [&](const char* name, std::vector<std::int64_t> shape, const std::string& type) {
    Tensor tensor;
    tensor.name = name;
    tensor.shape = std::move(shape);
    tensor.type = element_type_named(type).value();
    return graph.add_tensor(std::move(tensor));
  };
  Operator op;
  op.name = "product";
  op.op_type = "MatMul";
  op.nest.compute = ComputeKind::mac;
  op.nest.dims = {{"D", 64}, {"K", 64}, {"C", 64}};
  const auto axis = [](std::uint32_t dim) { return AxisExpr{{{dim, 1}}}; };
  op.nest.operands = {{add("y", {64, 64}, "fp32"), AccessMode::write, "O", {axis(0), axis(1)}},
                      {add("x", {64, 64}, left), AccessMode::read, "I", {axis(0), axis(2)}},
                      {add("w", {64, 64}, right), AccessMode::read, "W", {axis(2), axis(1)}}};
  return op;
}

TEST(ArrayModes, FormatsAreThoseOfTheFactors) {
  Graph graph;
  Operator op = product_of(graph, "mxint8", "mxfp8_e4m3");
  EXPECT_EQ(formats_text(multiplied_formats(graph, op)), "mxint8 and mxfp8_e4m3");
  op.multiplied_in = parse_number_format("e5m2");
  EXPECT_EQ(formats_text(multiplied_formats(graph, op)), "fp8_e5m2");
  op.nest.compute = ComputeKind::vector;
  EXPECT_TRUE(multiplied_formats(graph, op).empty());
}

/// Loops along a block's other axes, too, lead to other scales.
TEST(ArrayModes, LoopsLeaveBlocks) {
  Graph graph;
  constexpr std::uint32_t kRows = 1, kColumns = 2, kSummed = 4; // bits of D, K and C
  // x in rows of 32 along C, w in columns of 32 along C
  EXPECT_EQ(loops_across_blocks(graph, product_of(graph, "mxint8", "mxint8_32x1")),
            kRows | kColumns);
  // w's rows lie along K: products along C have different scales
  EXPECT_EQ(loops_across_blocks(graph, product_of(graph, "mxint8", "mxint8")), kRows | kSummed);
  EXPECT_EQ(loops_across_blocks(graph, product_of(graph, "mxint8_8x8", "mxint8_8x8")), 0U);
  EXPECT_EQ(loops_across_blocks(graph, product_of(graph, "int8", "int8")), 0U);
}

TEST(ArrayModes, PublishedPeaksAreExact) {
  const Chip chip = read_chip(std::string(MONET_SOURCE_DIR) + "/data/hardware/snax_mx.yaml");
  const Core& core = chip.cores.front();
  const auto gops = [&](const char* name) {
    return 2 * static_cast<double>(running(core, {name}).lanes()) * chip.frequency_hz / 1e9;
  };
  EXPECT_EQ(gops("mxint8"), 64);
  for (const char* name : {"mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3_8x8"})
    EXPECT_EQ(gops(name), 256) << name;
  EXPECT_EQ(gops("mxfp4_e2m1"), 512);
}

} // namespace MONET_TEST_FILE
} // namespace monet
