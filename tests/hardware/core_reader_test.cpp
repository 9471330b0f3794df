#include "base/archive.hpp"
#include "hardware/core_text.hpp"
#include "hardware/shared/core_program.hpp"

#include "monet/base/warnings.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

Core small_core(const std::string& name) {
  const GivenFiles files(test::texts_of("hardware/small.txt", "/small/"));
  return read_core("/small/cores/" + name);
}

/// One memory that serves everything, with lines put in or changed.
std::string core_with(const std::string& top_lines, const std::string& array,
                      const std::string& dataflow) {
  return "name: c\n" + top_lines +
         "memories:\n"
         "  sram:\n"
         "    size: 4096\n"
         "    r_cost: 1\n"
         "    w_cost: 2\n"
         "    operands: [I1, I2, O]\n"
         "    ports:\n"
         "      - {name: rw_port_1, type: read_write, bandwidth_max: 64, allocation: [\"I1, tl\", "
         "\"I2, tl\", \"O, tl\", \"O, fl\"]}\n"
         "    served_dimensions: [D1]\n"
         "operational_array: " +
         array + "\n" + dataflow;
}

TEST(CoreReader, WarnsOfWhatMemoriesIgnore) {
  std::string text = core_with("", "{unit_energy: 0, dimensions: [D1], sizes: [4]}", "");
  const auto warnings_of = [](const std::string& core) {
    const GivenFiles files({{"/w/core.yaml", core}});
    const WarningScope scope;
    read_core("/w/core.yaml");
    return scope.warnings();
  };
  EXPECT_TRUE(warnings_of(text).empty());
  text.replace(text.find("    r_cost"), 0, "    latency: 3\n    force_double_buffering: true\n");
  const auto warnings = warnings_of(text);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0].where.line, 5);
  EXPECT_NE(warnings[0].what.find("latency of 3 cycles"), std::string::npos);
  EXPECT_EQ(warnings[1].where.line, 6);
}

TEST(CoreReader, FactorsWiderThanTheArrayAreClippedWithAWarning) {
  const WarningScope scope;
  const Core core = parse_core(core_with("", "{unit_energy: 0, dimensions: [D1], sizes: [4]}",
                                         "dataflows: {D1: [\"OX, 16\"]}"),
                               "core.yaml");
  EXPECT_EQ(core.dataflow.front().front().factor, 4);
  ASSERT_EQ(scope.warnings().size(), 1U);
  EXPECT_EQ(scope.warnings().front().what, "'OX, 16' is wider than D1 (4): 4 are unrolled");
}

TEST(CoreReader, BothSchemasGiveTheSameCore) {
  const Core counted = small_core("counted_ports.yaml");
  const Core named = small_core("named_ports.yaml");
  EXPECT_EQ(text_of(counted), text_of(named));
}

TEST(CoreReader, ReadsWidthsAndPortsOfTheOlderSchema) {
  const Core core = small_core("counted_ports.yaml");
  ASSERT_EQ(core.memories.size(), 3U);
  EXPECT_EQ(core.kind, CoreKind::array);
  EXPECT_EQ(core.lanes(), 32);
  EXPECT_EQ(core.levels(MemoryOperand::I1), (std::vector<std::size_t>{2}));
  EXPECT_EQ(core.levels(MemoryOperand::I2), (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(core.levels(MemoryOperand::O), (std::vector<std::size_t>{1, 2}));
  const Memory& sram = core.memories[2];
  EXPECT_EQ(core.top(MemoryOperand::I1), &sram);
  // r_bw 256 read and w_bw 128 written, in pieces of the granularities 64 and 32.
  const MemoryPort* down = port_of(sram, MemoryOperand::I2, Direction::tl);
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->name, "r_port_1");
  EXPECT_EQ(down->type, PortType::read);
  EXPECT_EQ(down->bandwidth_min, 64);
  EXPECT_EQ(down->bandwidth_max, 256);
  const MemoryPort* up = port_of(sram, MemoryOperand::O, Direction::fl);
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->bandwidth_min, 32);
  EXPECT_EQ(up->bandwidth_max, 128);
  EXPECT_EQ(port_of(sram, MemoryOperand::I1, Direction::fl), nullptr);
  // The accumulators' second ports carry what comes from the array and what goes up.
  EXPECT_EQ(port_of(core.memories[1], MemoryOperand::O, Direction::fl)->name, "w_port_2");
  EXPECT_EQ(port_of(core.memories[1], MemoryOperand::O, Direction::th)->name, "r_port_2");
}

TEST(CoreReader, CountsInstancesOverDimensionsThatAreNotServed) {
  const Core core = small_core("counted_ports.yaml"); // array of 8 x 4
  EXPECT_EQ(instances(core, core.memories[0]), 32);   // serves none: one per multiplier
  EXPECT_EQ(instances(core, core.memories[1]), 8);    // serves D2
  EXPECT_EQ(instances(core, core.memories[2]), 1);    // serves both
  // 32 multipliers of 0.01, 32 register files of 0.1, 8 of nothing and an SRAM of 2.
  EXPECT_DOUBLE_EQ(core.area_mm2(), 32 * 0.01 + 32 * 0.1 + 2);
}

TEST(CoreReader, InfersTheKind) {
  EXPECT_EQ(small_core("window.yaml").kind, CoreKind::pooling);
  EXPECT_EQ(small_core("lanes.yaml").kind, CoreKind::vector);
  const std::string two = "{dimensions: [D1, D2], sizes: [4, 4]}";
  EXPECT_EQ(parse_core(core_with("", two, ""), "c").kind, CoreKind::array);
  EXPECT_EQ(parse_core(core_with("", two, "dataflows: {D1: [\"FY, 3\"]}"), "c").kind,
            CoreKind::pooling);
  EXPECT_EQ(
      parse_core(core_with("", two, "dataflows: {D1: [\"FY, 3\"], D2: [\"K, 2\"]}"), "c").kind,
      CoreKind::array);
  EXPECT_EQ(parse_core(core_with("", "{dimensions: [D1, D2], sizes: [1, 4]}", ""), "c").kind,
            CoreKind::vector);
  EXPECT_EQ(parse_core(core_with("kind: vector\n", two, ""), "c").kind, CoreKind::vector);
  EXPECT_EQ(parse_core(core_with("kind: array\n", "{dimensions: [D1], sizes: [4]}", ""), "c").kind,
            CoreKind::array);
}

TEST(CoreReader, ReadsOurOptionalKeys) {
  const Core core = parse_core(core_with("vector_operators: true\noperator_types: [Conv, Gemm]\n"
                                         "cycles_per_transcendental: 12\ncycles_per_divide: 2.5\n",
                                         "{dimensions: [D1], sizes: [4]}",
                                         "dataflows: {D1: [\"K, 2\", \"C, 2\"]}"),
                               "c");
  EXPECT_TRUE(core.runs_vector_operators);
  EXPECT_EQ(core.operator_types, (std::vector<std::string>{"Conv", "Gemm"}));
  EXPECT_EQ(core.cycles_per_transcendental, 12);
  EXPECT_EQ(core.cycles_per_divide, 2.5);
  ASSERT_EQ(core.dataflow.size(), 1U);
  ASSERT_EQ(core.dataflow[0].size(), 2U);
  EXPECT_EQ(core.dataflow[0][1].dim, "C");
  EXPECT_EQ(core.dataflow[0][1].factor, 2);
}

TEST(CoreReader, ReadsWhatInstructionsAndKernelsTake) {
  const std::string array = "{dimensions: [D1, D2], sizes: [4, 2]}";
  const Core processors = parse_core(
      core_with("issue: {cycles_per_mac: 2.5, loop_overhead: 10, dma_setup: 30}\n", array, ""),
      "c");
  ASSERT_NE(processors.program, nullptr);
  ASSERT_TRUE(processors.program->issue);
  EXPECT_EQ(processors.program->issue->cycles_per_mac, 2.5);
  EXPECT_EQ(processors.program->issue->loop_overhead, 10);
  EXPECT_EQ(processors.program->issue->im2col, 0);
  EXPECT_EQ(processors.program->issue->dma_setup, 30);
  const Core gpu =
      parse_core(core_with("kernels: {units: D1, tiles: [[128, 64, 1], [64, 64, 0.7]], "
                           "fill: 64, sustained: 0.9, host_cycles: 1000}\n",
                           array, ""),
                 "c");
  ASSERT_TRUE(gpu.program && gpu.program->kernels);
  const KernelCosts& kernels = *gpu.program->kernels;
  EXPECT_EQ(kernels.unit_dim, 0U);
  EXPECT_EQ(kernels.waves.units, 4);
  ASSERT_EQ(kernels.waves.tile_count, 2U);
  EXPECT_EQ(kernels.waves.tiles[1].share, 0.7);
  EXPECT_EQ(kernels.waves.fill, 64);
  EXPECT_EQ(kernels.sustained, 0.9);
  EXPECT_EQ(kernels.host_cycles, 1000);
}

TEST(CoreReader, DefaultsOfAbsentKeys) {
  const Core core = parse_core(core_with("", "{dimensions: [D1], sizes: [4]}", ""), "c");
  EXPECT_FALSE(core.runs_vector_operators);
  EXPECT_TRUE(core.dataflow.empty());
  EXPECT_EQ(core.mac_energy_pj, 0);
  EXPECT_EQ(core.memories[0].area_mm2, 0);
  EXPECT_FALSE(core.memories[0].non_volatile);
  EXPECT_EQ(core.program, nullptr);
  // Without bandwidth_min an access is a full word.
  EXPECT_EQ(core.memories[0].ports[0].bandwidth_min, 64);
}

} // namespace
} // namespace monet
