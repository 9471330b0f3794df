#include "hardware/shared/memory_model.hpp"
#include "hardware/shared/technology.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/mac_design.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace monet {
namespace MONET_TEST_FILE {

/// One memory of everything; keys of it, of the array and of the core put in.
std::string core_text(const std::string& memory, const std::string& array = "",
                      const std::string& top = "") {
  return "name: c\n" + top +
         "memories:\n"
         "  sram:\n"
         "    size: 8388608\n" +
         memory +
         "    operands: [I1, I2, O]\n"
         "    ports:\n"
         "      - {name: r, type: read, bandwidth_max: 256, allocation: [\"I1, tl\", \"I2, tl\", "
         "\"O, tl\", \"O, th\"]}\n"
         "      - {name: w, type: write, bandwidth_max: 128, allocation: [\"I1, fh\", \"I2, fh\", "
         "\"O, fh\", \"O, fl\"]}\n"
         "    served_dimensions: [D1, D2]\n"
         "operational_array: {" +
         array + "dimensions: [D1, D2], sizes: [8, 4]}\n";
}
const std::string kAuto = "    auto_cost_extraction: true\n";

std::string error_of(const std::string& text) {
  try {
    parse_core(text, "c.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(Pricing, FillsInTheFiguresOfAMemory) {
  const Core core = parse_core(core_text(kAuto, "", "technology_nm: 45\n"), "c");
  const Memory& memory = core.memories[0];
  const MemoryCost wide = memory_cost({{8388608}, 256, 45, 2});
  EXPECT_EQ(memory.read_energy_pj, wide.figures.read_pj);
  EXPECT_EQ(memory.write_energy_pj, memory_cost({{8388608}, 128, 45, 2}).figures.write_pj);
  EXPECT_EQ(memory.area_mm2, wide.figures.area_mm2);
  EXPECT_EQ(core.area_mm2(), wide.figures.area_mm2); // served: one instance
  ASSERT_TRUE(memory.modelled);
  EXPECT_EQ(memory.modelled->macros, wide.macros);
  EXPECT_EQ(memory.modelled->kind, "sram");
  EXPECT_EQ(memory.modelled->node_nm, 45);
  EXPECT_EQ(memory.modelled->monolithic_read_pj, wide.monolithic.read_pj);
}

TEST(Pricing, TakesZigZagsWordForDram) {
  const std::string text = core_text(kAuto + "    mem_type: dram\n    r_cost: 9\n    w_cost: 9\n");
  EXPECT_EQ(parse_core(text, "c").memories[0].modelled->kind, "lpddr4");
  EXPECT_EQ(parse_core(core_text(kAuto + "    mem_type: sram\n"), "c").memories[0].modelled->kind,
            "sram");
}

TEST(Pricing, TakesTheDefaultNode) {
  EXPECT_EQ(parse_core(core_text(kAuto), "c").memories[0].modelled->node_nm, 22);
}

TEST(Pricing, LeavesFiguresOfTheFileAlone) {
  const std::string figures = "    r_cost: 3\n    w_cost: 4\n    area: 5\n";
  for (const std::string& key : {std::string(), std::string("    auto_cost_extraction: False\n")}) {
    const Memory memory = parse_core(core_text(figures + key), "c").memories[0];
    EXPECT_EQ(memory.read_energy_pj, 3);
    EXPECT_EQ(memory.write_energy_pj, 4);
    EXPECT_EQ(memory.area_mm2, 5);
    EXPECT_FALSE(memory.modelled);
  }
  // As in ZigZag, the model's figures replace those beside it.
  EXPECT_NE(parse_core(core_text(figures + kAuto), "c").memories[0].read_energy_pj, 3);
}

TEST(Pricing, ReportsWhatIsWrong) {
  EXPECT_NE(error_of(core_text("")).find("r_cost"), std::string::npos);
  EXPECT_NE(error_of(core_text("    dram: lpdr5\n")).find("did you mean 'lpddr5'"),
            std::string::npos);
  EXPECT_NE(error_of(core_text(kAuto + "    dram_channels: 2\n")).find("needs the kind of DRAM"),
            std::string::npos);
  EXPECT_NE(error_of(core_text(kAuto, "", "technology_nm: 1.5\n")).find("between 3 and 90"),
            std::string::npos);
  EXPECT_NE(error_of(core_text(kAuto, "auto_cost_extraction: true, ")).find("needs its 'format'"),
            std::string::npos);
  EXPECT_NE(error_of(core_text(kAuto, "auto_cost_extraction: true, format: fp31, "))
                .find("did you mean 'fp32'"),
            std::string::npos);
  std::string large = core_text(kAuto);
  large.replace(large.find("8388608"), 7, "80_000_000_000");
  EXPECT_NE(error_of(large).find("1 GiB"), std::string::npos);
}

TEST(Pricing, PricesMultipliersAndLanes) {
  const std::string figures = "    r_cost: 0\n    w_cost: 0\n";
  const auto cost = [&](const std::string& format, const std::string& top) {
    return parse_core(
        core_text(figures, "auto_cost_extraction: true, format: " + format + ", ", top), "c");
  };
  const std::string node = "technology_nm: 45\n";
  const FormatShape fp16 = shape_of(*parse_number_format("fp16"));
  const FormatShape fp32 = shape_of(*parse_number_format("fp32"));
  EXPECT_EQ(cost("fp16", node).mac_energy_pj, mac_cost(fp16, fp32, 45).energy_pj());
  EXPECT_EQ(cost("fp16, accumulate: fp16", node).mac_energy_pj,
            mac_cost(fp16, fp16, 45).energy_pj());
  EXPECT_EQ(cost("fp16", node + "kind: vector\n").mac_energy_pj,
            mac_cost(fp16, fp16, 45).energy_pj());
  EXPECT_LT(cost("fp16", node + "kind: pooling\n").mac_energy_pj,
            cost("fp16", node + "kind: vector\n").mac_energy_pj);
  EXPECT_EQ(cost("fp16", node).area_mm2(), 32 * mac_cost(fp16, fp32, 45).area_mm2());
}

TEST(Arithmetic, EqualsThePublishedPoints) {
  const auto at = [](const char* format, const char* sum, double node) {
    return mac_cost(shape_of(*parse_number_format(format)), shape_of(*parse_number_format(sum)),
                    node);
  };
  EXPECT_NEAR(at("fp32", "fp32", 45).multiply_pj, 3.7, 1e-12);
  EXPECT_NEAR(at("fp32", "fp32", 45).add_pj, 0.9, 1e-12);
  EXPECT_NEAR(at("fp16", "fp16", 45).multiply_pj, 1.1, 1e-12);
  EXPECT_NEAR(at("int8", "int32", 45).multiply_pj, 0.2, 1e-12);
  EXPECT_NEAR(at("int8", "int32", 45).add_pj, 0.1, 1e-12);
  EXPECT_NEAR(at("int8", "int32", 45).multiply_mm2, 282e-6, 1e-12);
  EXPECT_NEAR(at("fp32", "fp32", 7).multiply_pj, 1.31, 1e-12);
  // bfloat16 is no point of the law: 0.21 and 0.11 pJ at 7 nm.
  EXPECT_NEAR(at("bf16", "bf16", 7).multiply_pj, 0.21, 0.02);
  EXPECT_NEAR(at("bf16", "bf16", 7).add_pj, 0.11, 0.01);
}

TEST(Arithmetic, GrowsWithTheFormatAndTheNode) {
  double before = 0;
  for (const char* format : {"e2m1", "e4m3_fn", "bf16", "fp16", "fp32", "fp64"}) {
    const double energy = mac_cost(shape_of(*parse_number_format(format)), {}, 22).energy_pj();
    EXPECT_GT(energy, before) << format;
    before = energy;
  }
  before = 0;
  for (const double node : {3.0, 5.0, 7.0, 12.0, 16.0, 22.0, 28.0, 45.0, 65.0, 90.0}) {
    const double energy =
        mac_cost(shape_of(*parse_number_format("int8")), {false, 32, 32}, node).energy_pj();
    EXPECT_GT(energy, before) << node;
    before = energy;
  }
}

TEST(Arithmetic, KnowsFormatsByName) {
  EXPECT_EQ(parse_number_format("mxfp8_e4m3")->significand_bits(), 4);
  EXPECT_EQ(parse_number_format("fp8_e5m2")->significand_bits(), 3);
  EXPECT_EQ(parse_number_format("q8.8")->bits(), 16);
  EXPECT_FALSE(parse_number_format("q8.8")->floating);
  EXPECT_EQ(parse_number_format("e5m2")->bits(), 8);
  EXPECT_EQ(parse_number_format("mxint8")->bits(), 8);
  for (const char* wrong : {"", "fp", "fp12", "int", "int0", "int65", "e0m3", "e5", "e5m2x", "q8",
                            "e99999999999m2", "mxfp8", "qq", "int-8"})
    EXPECT_FALSE(parse_number_format(wrong)) << wrong;
}

/// A chip of two such cores and DRAM, with lines of the system and of the DRAM put in.
Chip chip_of(const std::string& system, const std::string& dram) {
  const FileOpener open = [&](const std::string& name, const SourceLoc&) -> FileText {
    if (name == "pe.yaml")
      return {name, core_text(kAuto, "auto_cost_extraction: true, format: int8, ")};
    return {name, "name: dram\nmemories:\n  dram:\n    size: 80_000_000_000\n" + dram +
                      "    operands: [I1, I2, O]\n    ports:\n"
                      "      - {name: rw, type: read_write, bandwidth_max: 128, allocation: "
                      "[\"I1, tl\", \"I2, tl\", \"O, tl\", \"O, fl\"]}\n"
                      "    served_dimensions: [D1]\n"
                      "operational_array: {dimensions: [D1], sizes: [1]}\n"};
  };
  return parse_chip("name: s\ncores: {0: pe.yaml, 1: pe.yaml}\noffchip_core: dram.yaml\n" + system,
                    "s.yaml", open);
}

TEST(Pricing, PricesDramByKindAndLinksByLength) {
  const Chip chip = chip_of("technology_nm: 40\ncore_connectivity: [{cores: [0, 1], bandwidth: 64, "
                            "length_mm: 2, energy_pj_per_bit: 0.5}]\n",
                            "    dram: hbm3\n");
  EXPECT_NEAR(offchip_port(chip).read_pj_per_bit, find_dram_kind("hbm3")->pj_per_bit, 1e-12);
  EXPECT_EQ(chip.cores.back().memories[0].modelled->kind, "hbm3");
  EXPECT_NEAR(chip.links[0].energy_pj_per_bit, 0.5 + 2 * 0.121, 1e-12);
  EXPECT_EQ(chip.cores[0].memories[0].modelled->node_nm, 40);
  // Figures of the file beat the kind; without a kind, the model has a default.
  const Chip fixed = chip_of("", "    dram: hbm3\n    r_cost: 128\n    w_cost: 256\n");
  EXPECT_EQ(offchip_port(fixed).read_pj_per_bit, 1);
  EXPECT_EQ(chip_of("", kAuto).cores.back().memories[0].modelled->kind, "lpddr4");
}

TEST(Pricing, ReadsRowsOfDramBesideItsKind) {
  const std::string rows = "banks: 16, row_bits: 16384, t_row: 40";
  const Chip both = chip_of("", "    dram: {kind: hbm3, " + rows + "}\n    dram_channels: 2\n");
  EXPECT_EQ(offchip_port(both).rows, (DramRows{16, 16384, 40}));
  EXPECT_NEAR(offchip_port(both).read_pj_per_bit, find_dram_kind("hbm3")->pj_per_bit, 1e-12);
  EXPECT_EQ(both.cores.back().memories[0].dram_channels, 2);
  const Chip kind = chip_of("", "    dram: {kind: hbm3}\n");
  EXPECT_EQ(offchip_port(kind).rows, std::nullopt);
  EXPECT_NEAR(offchip_port(kind).read_pj_per_bit, find_dram_kind("hbm3")->pj_per_bit, 1e-12);
  EXPECT_EQ(offchip_port(chip_of("", "    dram: hbm3\n")).rows, std::nullopt);
  const std::string priced = "    r_cost: 128\n    w_cost: 256\n";
  const Chip own = chip_of("", "    dram: {" + rows + "}\n" + priced);
  EXPECT_EQ(offchip_port(own).rows, (DramRows{16, 16384, 40}));
  EXPECT_EQ(offchip_port(own).read_pj_per_bit, 1);
  EXPECT_TRUE(own.cores.back().memories[0].dram_kind.empty());
}

TEST(Pricing, RefusesHalfOfTheRowsAndRowsOnTheChip) {
  const auto error = [](const std::string& dram) -> std::string {
    try {
      chip_of("", "    r_cost: 1\n    w_cost: 1\n" + dram);
    } catch (const InputError& problem) {
      return problem.what();
    }
    return "no error";
  };
  const auto expect = [&](const std::string& dram, const std::string& message) {
    EXPECT_NE(error("    dram: " + dram + "\n").find(message), std::string::npos)
        << error("    dram: " + dram + "\n");
  };
  expect("{banks: 16, t_row: 40}", "dram.yaml:7:11: key 'row_bits' is missing");
  expect("{banks: 0, row_bits: 64, t_row: 40}",
         "dram.yaml:7:19: 'banks' must be between 1 and 65536, is 0");
  expect("{banks: 4, row_bits: 0, t_row: 40}", "'row_bits' must be between 1 and 4294967296, is 0");
  expect("{banks: 4, row_bits: 64, t_row: -1}", "'t_row' must be between 0 and 1048576, is -1");
  expect("{bank: 4}", "'bank'");
  expect("{}", "expected 'kind', or 'banks', 'row_bits' and 't_row'");
  expect("{kind: sdram}", "unknown kind of DRAM 'sdram'");
  expect("{banks: 16, row_bits: 64, t_row: 40}\n    dram_channels: 1", "needs the kind of DRAM");
  const FileOpener open = [](const std::string& name, const SourceLoc& /*where*/) {
    return FileText{name, core_text("    r_cost: 1\n    w_cost: 1\n"
                                    "    dram: {banks: 16, row_bits: 64, t_row: 40}\n")};
  };
  EXPECT_NO_THROW(parse_core(open("pe.yaml", {}).text, "pe.yaml"));
  EXPECT_THROW(parse_chip("{name: s, cores: {0: pe.yaml}, offchip_core: pe.yaml}", "s.yaml", open),
               InputError);
}

TEST(Pricing, RefusesPortsFasterThanTheirChannels) {
  // 128 bits at 1 GHz are 16 GB/s; a channel of LPDDR5 has 12.8.
  EXPECT_NO_THROW(chip_of("frequency_hz: 1e9\n", "    dram: lpddr5\n    dram_channels: 2\n"));
  EXPECT_NO_THROW(chip_of("", "    dram: lpddr5\n    dram_channels: 1\n"));
  try {
    chip_of("frequency_hz: 1e9\n", "    dram: lpddr5\n    dram_channels: 1\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("16 GB/s"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("2 channels are enough"), std::string::npos);
  }
}

TEST(Pricing, AddsUpAreaAndPeakPower) {
  const std::string dram = "    dram: lpddr5\n";
  const Chip chip = chip_of("frequency_hz: 5e8\n", dram);
  const Core& core = chip.cores[0];
  const Memory& sram = core.memories[0];
  EXPECT_DOUBLE_EQ(chip.area_mm2(), 2 * (sram.area_mm2 + 32 * core.array_area_mm2));
  const double per_cycle =
      2 * (32 * core.mac_energy_pj + sram.read_energy_pj + sram.write_energy_pj) +
      128 * find_dram_kind("lpddr5")->pj_per_bit;
  ASSERT_TRUE(peak_power_w(chip));
  EXPECT_NEAR(*peak_power_w(chip), per_cycle * 1e-12 * 5e8, 1e-9);
  EXPECT_FALSE(peak_power_w(chip_of("", dram)));
  // A memory that both cores share counts once.
  const Chip shared = chip_of("frequency_hz: 5e8\ncore_memory_sharing: [[0, 1]]\n", dram);
  EXPECT_DOUBLE_EQ(shared.area_mm2(), sram.area_mm2 + 64 * core.array_area_mm2);
  EXPECT_NEAR(*peak_power_w(chip) - *peak_power_w(shared),
              (sram.read_energy_pj + sram.write_energy_pj) * 1e-12 * 5e8, 1e-9);
}

Chip published(const std::string& name) {
  return read_chip(std::string(MONET_SOURCE_DIR) + "/tests/fixtures/hardware/published/" + name);
}

double area_of(const Core& core, const std::string& memory) {
  for (const Memory& m : core.memories) {
    if (m.name == memory)
      return m.area_mm2 * static_cast<double>(instances(core, m));
  }
  return 0;
}

double array_area(const Core& core) {
  return core.array_area_mm2 * static_cast<double>(core.lanes());
}

// The ratios of model to chip that docs/explanation/hardware-costs.md shows. They are far from 1
// where the chip has what the model leaves out; a change of the model that moves them is to be seen
// there.
TEST(PublishedChips, Eyeriss) {
  const Chip chip = published("eyeriss_v1.yaml");
  EXPECT_NEAR(chip.area_mm2() / 12.25, 0.20, 0.01);
  EXPECT_NEAR(peak_power_w(chip).value() / 0.278, 0.71, 0.01);
}

TEST(PublishedChips, FirstTpu) {
  const Chip chip = published("tpu_v1.yaml");
  const Core& core = chip.cores[0];
  constexpr double kDie = 331; // mm2, an upper bound; parts of it as in the paper's floor plan
  EXPECT_NEAR(chip.area_mm2() / kDie, 0.30, 0.01);
  EXPECT_NEAR(area_of(core, "unified_buffer") / (0.29 * kDie), 0.71, 0.01);
  EXPECT_NEAR(area_of(core, "accumulators") / (0.06 * kDie), 0.60, 0.01);
  EXPECT_NEAR((array_area(core) + area_of(core, "weights")) / (0.24 * kDie), 0.24, 0.01);
  EXPECT_NEAR(peak_power_w(chip).value() / 40, 0.75, 0.01);
}

} // namespace MONET_TEST_FILE
} // namespace monet
