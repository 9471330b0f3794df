// Arrays that compute in memory, worked out by hand from the parts: NAND2 0.7 fF, 0.614 um2,
// 0.0478 ns; an exclusive or 1.5, 2.4 and 2.4 times that; a flip-flop 3 and 6 times; 0.9 V.
#include "hardware/shared/memory_model.hpp"

#include "monet/hardware/chip.hpp"
#include "monet/hardware/imc_array.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace monet {
namespace {

constexpr double kSame = 1e-12;

void expect_near(double found, double expected) {
  EXPECT_NEAR(found, expected, kSame * std::abs(expected));
}

/// Two columns of weights, four rows, two bits each, one bit of the activations at a time.
ImcArray analog() {
  ImcArray array;
  array.kind = ImcKind::analog;
  array.activation_bits = 2;
  array.weight_bits = 2;
  array.serial_bits = 1;
  array.adc_bits = 2;
  array.columns = 2;
  array.rows = 4;
  array.cell_bits = 2;
  array.cell_area_mm2 = 1e-6;
  return array;
}

/// Three macros of two columns and four rows; activations of four bits, two at a time.
ImcArray digital() {
  ImcArray array = analog();
  array.kind = ImcKind::digital;
  array.activation_bits = 4;
  array.serial_bits = 2;
  array.adc_bits = 0;
  array.macros = 3;
  return array;
}

// 2 x 2 bit-columns with an ADC each, 16 cells. A column adds its 2 bits with 2 * 1 + 2 * 0.5 = 3
// one-bit adders and accumulates 2 + 2 + 2 bits.
TEST(ImcArray, AnalogByHand) {
  const ImcArray array = analog();
  const ImcParts area = imc_area_mm2(array);
  expect_near(area.cells, 8e-6);
  expect_near(area.adcs, 4 * std::pow(10, 1.1322) * 4e-6);
  expect_near(area.multipliers, 16 * 0.614e-6);
  expect_near(area.place_values, 2 * 3 * 4.7892e-6);
  expect_near(area.accumulators, 2 * 6 * 8.4732e-6);
  EXPECT_EQ(area.dacs, 0);
  EXPECT_EQ(area.adder_trees, 0);
  const ImcParts clock = imc_clock_ns(array);
  expect_near(clock.adcs, 1.33224);
  expect_near(clock.multipliers, 0.0478);
  expect_near(clock.place_values, 0.30592);
  expect_near(clock.accumulators, 0.30592);
  expect_near(clock.total(), 1.99188);
  const ImcParts energy = imc_peak_energy_pj(array);
  EXPECT_EQ(energy.dacs, 0); // of one bit
  expect_near(energy.adcs, 0.64805184);
  expect_near(energy.multipliers, 4.536e-3);
  expect_near(energy.bitlines, 4.536e-3);
  expect_near(energy.place_values, 20.412e-3);
  expect_near(energy.accumulators, 61.236e-3);
  expect_near(energy.total(), 0.73877184);
  const ImcPeak peak = imc_peak(array);
  expect_near(peak.tops, 8 / 1.99188 / 1000); // 8 MACs in two cycles
  expect_near(peak.tops_per_w, 8 / 0.73877184);
  expect_near(peak.tops_per_mm2, peak.tops / area.total());
}

// A tree over four rows of 2 bits has 4 * 3 - (2 + 2 + 1) = 7 one-bit adders and gives 4 bits; two
// of them, place values apart, are added with 4 * 1 + 2 * 0.5 = 5; sums have 4 + 2 + 2 bits.
TEST(ImcArray, DigitalByHand) {
  const ImcArray array = digital();
  const ImcParts area = imc_area_mm2(array);
  expect_near(area.cells, 24e-6);
  EXPECT_EQ(area.adcs, 0);
  expect_near(area.multipliers, 96 * 0.614e-6);
  expect_near(area.adder_trees, 84 * 4.7892e-6);
  expect_near(area.place_values, 30 * 4.7892e-6);
  expect_near(area.accumulators, 48 * 8.4732e-6);
  const ImcParts clock = imc_clock_ns(array);
  expect_near(clock.adder_trees, 0.63096);
  expect_near(clock.total(), 1.2906);
  const ImcParts energy = imc_peak_energy_pj(array);
  expect_near(energy.multipliers, 27.216e-3);
  expect_near(energy.adder_trees, 285.768e-3);
  expect_near(energy.place_values, 102.06e-3);
  expect_near(energy.accumulators, 244.944e-3);
  expect_near(imc_peak(array).tops_per_w, 2 * 12 / 659.988e-3);
}

// Of a tree's four rows three are in use: one half in full with 2 * 3 - 1 adders, and a value that
// passes through 2 half-active ones. Two: 2 adders and 3. One: 3 and 2 half-active ones.
TEST(ImcArray, TreesInPart) {
  const auto tree = [](std::int64_t rows) {
    // 2 bits applied at once, 2 cycles, one column, once
    return imc_energy_pj(digital(), {rows, 1, 1, 0}).adder_trees / 4;
  };
  expect_near(tree(4), 7 * 3.402e-3);
  expect_near(tree(3), 20.412e-3);
  expect_near(tree(2), 11.907e-3);
  expect_near(tree(1), 8.505e-3);
  expect_near(tree(9), 7 * 3.402e-3); // rows that shift are counted beyond the array
}

// Bits that are all applied at once need no accumulator, one place no adder.
TEST(ImcArray, WithoutAccumulators) {
  ImcArray array = digital();
  array.serial_bits = 4;
  EXPECT_EQ(imc_area_mm2(array).accumulators, 0);
  EXPECT_EQ(imc_clock_ns(array).accumulators, 0);
  EXPECT_EQ(imc_peak_energy_pj(array).accumulators, 0);
  EXPECT_GT(imc_area_mm2(array).place_values, 0);
  array.serial_bits = 1;
  EXPECT_EQ(imc_area_mm2(array).place_values, 0);
  EXPECT_EQ(imc_clock_ns(array).place_values, 0);
  array.rows = 1; // and no tree
  EXPECT_EQ(imc_area_mm2(array).adder_trees, 0);
  EXPECT_EQ(imc_clock_ns(array).adder_trees, 0);
}

// Four weights take turns in an element: a wordline and four cells of a bitline are charged each
// time one is chosen.
TEST(ImcArray, WeightsThatTakeTurnsArePrecharged) {
  ImcArray array = analog();
  const ImcWork work{4, 2, 5, 10};
  EXPECT_EQ(imc_energy_pj(array, work).precharge, 0);
  array.cell_bits = 8;
  expect_near(imc_energy_pj(array, work).precharge, 10 * 2 * 5 * 0.35e-3 * 0.81);
}

RC_GTEST_PROP(ImcArray, NoMappingTakesLessThanTheLeast, ()) {
  ImcArray array = *rc::gen::element(true, false) ? analog() : digital();
  array.weight_bits = *rc::gen::element(1, 2, 4, 8);
  array.activation_bits = *rc::gen::element(4, 8);
  array.serial_bits = *rc::gen::element(1, 2, 4);
  array.rows = std::int64_t{1} << *rc::gen::inRange(0, 9);
  array.columns = *rc::gen::inRange(1, 100);
  const auto products = *rc::gen::inRange<std::int64_t>(1, array.rows + 1); // of a column
  const auto rows = *rc::gen::inRange<std::int64_t>(products, 2 * array.rows + 1);
  const auto columns = *rc::gen::inRange<std::int64_t>(1, array.columns + 1);
  const ImcParts energy = imc_energy_pj(array, {rows, columns, 1, 0});
  RC_ASSERT(energy.total() >= min_imc_energy_pj(array) * static_cast<double>(products * columns));
  double sum = 0;
  for (const auto& [name, part] : energy.named()) {
    RC_ASSERT(part >= 0);
    sum += part;
  }
  RC_ASSERT(std::abs(sum - energy.total()) <= kSame * sum);
}

/// D1 is the wordline though it comes last; eight-bit elements of four-bit weights.
std::string core_text(const std::string& cells) {
  return R"(
name: c
operational_array:
  is_imc: true
  imc_type: digital
  input_precision: [8, 4]
  bit_serial_precision: 2
  dimensions: [D3, D2, D1]
  sizes: [3, 8, 4]
memories:
  cells:
    size: 8
    w_cost: 0.1
    r_cost: 0
    operands: [I2]
    ports: [{name: rw_port_1, type: read_write, bandwidth_max: 8, allocation: ["I2, fh", "I2, tl"]}]
    served_dimensions: []
)" + cells +
         R"(
  sram:
    size: 1024
    r_cost: 1
    w_cost: 1
    area: 0.5
    operands: [I1, I2, O]
    ports: [{name: rw_port_1, type: read_write, bandwidth_max: 64, allocation: ["I1, fh", "I1, tl", "I2, fh", "I2, tl", "O, fh", "O, tl", "O, fl", "O, th"]}]
    served_dimensions: [D1, D2, D3]
)";
}

TEST(ImcArray, ReadFromAFile) {
  const Core core = parse_core(core_text("    area: 0.001"), "c.yaml");
  ASSERT_NE(core.imc, nullptr);
  const ImcArray& imc = *core.imc;
  EXPECT_EQ(imc.kind, ImcKind::digital);
  EXPECT_EQ(imc.columns, 4);
  EXPECT_EQ(imc.rows, 8);
  EXPECT_EQ(imc.macros, 3);
  EXPECT_EQ(imc.wordline, 2U);
  EXPECT_EQ(imc.activation_bits, 8);
  EXPECT_EQ(imc.weight_bits, 4);
  EXPECT_EQ(imc.cycles_per_wave(), 4);
  EXPECT_EQ(imc.group_depth(), 2);
  EXPECT_EQ(core.kind, CoreKind::array);
  EXPECT_EQ(core.mac_energy_pj, min_imc_energy_pj(imc));
  // Cells are a part of the array and count once.
  expect_near(imc_area_mm2(imc).cells, 96 * 0.001);
  expect_near(core.area_mm2(), imc_area_mm2(imc).total() + 0.5);
}

// The cells of a macro as one memory with a word for a row of weights.
TEST(ImcArray, CellsPricedByTheModel) {
  const Core core = parse_core(core_text("    auto_cost_extraction: true"), "c.yaml");
  MemoryQuery query;
  query.size = {4 * 8 * 8};
  query.word_bits = 4 * 4;
  query.node_nm = 28;
  query.ports = 1;
  expect_near(imc_area_mm2(*core.imc).cells, 3 * memory_cost(query).figures.area_mm2);
  EXPECT_EQ(core.memories[0].write_energy_pj, 0.1);
  EXPECT_EQ(core.memories[0].read_energy_pj, 0);
}

// Every row up to the full array, and those that shift beyond it; the full array itself is the
// least.
TEST(ImcArray, TheFullArrayTakesLeast) {
  for (ImcArray array : {analog(), digital()}) {
    array.rows = 64;
    const double least = min_imc_energy_pj(array);
    for (std::int64_t rows = 1; rows <= 2 * array.rows; ++rows) {
      const auto macs = static_cast<double>(std::min(rows, array.rows) * array.columns);
      EXPECT_GE(imc_energy_pj(array, {rows, array.columns, 1, 0}).total() / macs, least) << rows;
    }
    const ImcParts full = imc_energy_pj(array, {array.rows, array.columns, 1, 0});
    constexpr double kAbove = 1 + 1e-11;
    EXPECT_LT(full.total() / static_cast<double>(array.rows * array.columns), least * kAbove);
  }
}

TEST(ImcArray, PeakPowerHasTheCellsOnce) {
  Chip chip;
  chip.cores = {parse_core(core_text("    area: 0.001"), "c.yaml")};
  chip.frequency_hz = 1e9;
  make_routes(chip);
  const double cycle = imc_peak_energy_pj(*chip.cores[0].imc).total() + 1; // and the SRAM's port
  EXPECT_NEAR(peak_power_w(chip).value(), cycle * 1e-3, 1e-12);
}

TEST(ImcArray, FullUseIsThePeak) {
  for (const ImcArray& array : {analog(), digital()}) {
    const double waves = static_cast<double>(array.macros);
    const ImcParts all = imc_energy_pj(array, {array.rows, array.columns, waves, 0});
    const ImcParts cycle = imc_peak_energy_pj(array);
    expect_near(all.total(), cycle.total() * static_cast<double>(array.cycles_per_wave()));
  }
}

} // namespace
} // namespace monet
