// Systems and mappings that no schedule fits: what is said, where and by how much.
#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

/// A folder with a system of `mcu` cores, the first `connected` of which are on a link with the
/// flash.
class SmallSystem : public ::testing::Test {
protected:
  void write_system(int cores, int connected, const std::string& memory_bits = "2_097_152") {
    std::string text = "name: small\ncores:\n";
    for (int c = 0; c < cores; ++c)
      text += "  " + std::to_string(c) + ": core.yaml\n";
    text += "  " + std::to_string(cores) + ": flash.yaml\n";
    text += "offchip_core_id: " + std::to_string(cores) + "\ncore_connectivity:\n";
    text += "  - {type: bus, cores: [";
    for (int c = 0; c < connected; ++c)
      text += std::to_string(c) + ", ";
    text += std::to_string(cores) + "], bandwidth: 8, unit_energy_cost: 0}\n";
    scratch_.file("system.yaml", text);
    const fs::path folder = repository("data/hardware/cores");
    fs::create_directories(scratch_.path() / "cores");
    fs::copy(folder / "flash.yaml", scratch_.path() / "cores");
    std::string core = read_file((folder / "mcu.yaml").string());
    const std::string size = "2_097_152";
    core.replace(core.find(size), size.size(), memory_bits);
    scratch_.file("cores/core.yaml", core);
  }

  Ran schedule(std::vector<std::string> more = {}) {
    std::vector<std::string> all{"schedule",
                                 "--hardware",
                                 "system.yaml",
                                 "--workload",
                                 repository("data/workload/gpt2_nano.onnx"),
                                 "--batch",
                                 "1",
                                 "--verify"};
    all.insert(all.end(), more.begin(), more.end());
    return run_monet(all, scratch_.path());
  }

  static void expect(const Ran& ran, int code, const std::vector<std::string>& words) {
    EXPECT_EQ(ran.code, code) << ran.err;
    for (const std::string& word : words)
      EXPECT_NE(ran.err.find(word), std::string::npos) << "no '" << word << "' in " << ran.err;
    EXPECT_EQ(ran.out, "");
  }

  Scratch scratch_;
};

TEST_F(SmallSystem, StreamsTensorsLargerThanEveryMemory) {
  write_system(1, 1, "4096"); // weights have up to 64 x 256 x 32 bits
  EXPECT_EQ(schedule().code, 0);
  EXPECT_EQ(schedule({"--training", repository("data/training/adam.yaml")}).code, 0);
}

TEST_F(SmallSystem, SaysWhichOperandsDoNotFitAndByHowMuch) {
  write_system(1, 1, "64");
  expect(schedule(), 4, {"infeasible: inference: '", "'sram_256KB'", "160 bits", "holds 64"});
}

// An entry of a layer or a core that is not there would be passed over.
TEST_F(SmallSystem, RefusesMappingsOfWhatIsNotThere) {
  write_system(2, 2);
  scratch_.file("map.yaml", "- {name: default, core_allocation: [0]}\n"
                            "- {name: fc1, core_allocation: [1]}\n"
                            "- {name: LSTM, core_allocation: [7]}\n"
                            "- {name: MatMul, inter_core_tiling: ['Q, 2']}\n");
  expect(schedule({"--mapping", "map.yaml"}), 3,
         {"map.yaml:2:3: there is no layer 'fc1'", "map.yaml:3:3: entry 'LSTM' allocates core 7",
          "map.yaml:4:3: no layer has a loop 'Q'"});
  if (!has_component("reference"))
    return;
  expect(schedule({"--mapping", "map.yaml", "--model", "stream-coala"}), 3,
         {"map.yaml:2:3: there is no layer 'fc1'"});
}

TEST_F(SmallSystem, RefusesDataflowsOverUnknownLoops) {
  write_system(2, 2);
  const std::string core = read_file(scratch_ / "cores/core.yaml");
  scratch_.file("cores/core.yaml", core + "\ndataflows: {D1: ['OXX, 1']}\n");
  expect(schedule(), 3, {"core.yaml:", "no layer has a loop 'OXX' (did you mean 'OX'?)"});
}

TEST_F(SmallSystem, ComplainsAboutACoreWithoutAPathToTheOffchipMemory) {
  write_system(2, 1);
  scratch_.file("map.yaml", "- {name: default, core_allocation: [1]}\n");
  expect(schedule({"--mapping", "map.yaml"}), 3,
         {"error: map.yaml:1:", "core 1", "no path", "off-chip memory of 'small'"});
  EXPECT_EQ(schedule().code, 0); // left to the tool, the other core does it all
}

TEST_F(SmallSystem, ComplainsAboutMappingsOfAbsentCores) {
  write_system(2, 2);
  scratch_.file("map.yaml", "- {name: Gemm, core_allocation: [0, 9]}\n"
                            "- {name: default, core_allocation: [1, 2]}\n");
  expect(schedule({"--mapping", "map.yaml"}), 3,
         {"error: map.yaml:2:", "'default'", "core 2, which is not a compute core of 'small'"});
}

TEST_F(SmallSystem, ComplainsAboutFactorsOfNothing) {
  write_system(1, 1);
  scratch_.file("map.yaml", "- {name: default, inter_core_tiling: [\"K, 0\"]}\n");
  expect(schedule({"--mapping", "map.yaml"}), 3, {"error: map.yaml:1:", "factor 0"});
}

TEST_F(SmallSystem, ComplainsAboutStacksOfAbsentOperators) {
  write_system(1, 1);
  scratch_.file("stacks.yaml", "stacks:\n  - [/ln_g/LayerNormalization, 4, 99999]\n  - [4]\n");
  const Ran ran = schedule({"--mode", "fused", "--stacks", "stacks.yaml"});
  expect(ran, 3,
         {"error: stacks.yaml:2:", "'/ln_g/LayerNormalization'", "99999",
          "error: stacks.yaml:3:", "in a stack already"});
}

/// A stack around an operator of another one: legal, what comes between is scheduled between.
TEST_F(SmallSystem, SchedulesStacksAroundEachOther) {
  write_system(2, 2, "65536");
  std::string even;
  std::string odd;
  for (int i = 0; i < 24; ++i)
    (i % 2 == 0 ? even : odd) += std::to_string(i) + ", ";
  scratch_.file("stacks.yaml", "stacks: [[" + even + "24], [" + odd + "25]]\n");
  const Ran ran = schedule({"--mode", "fused", "--stacks", "stacks.yaml"});
  EXPECT_EQ(ran.code, 0) << ran.err;
}

/// Operands that no slicing makes fit pass by.
TEST_F(SmallSystem, FusesOnMemoriesTooSmallForASlice) {
  write_system(1, 1, "4096");
  for (const char* halo : {"cached", "recomputed"}) {
    const Ran ran = schedule({"--mode", "fused", "--halo", halo});
    EXPECT_EQ(ran.code, 0) << ran.err;
  }
}

/// Squares on an array for integers in vectors: the operator, the formats and what there is.
TEST(Modes, StepsWithoutOneAreRefused) {
  const Ran ran =
      run_monet({"schedule", "--hardware", repository("data/hardware/vector_block.yaml"),
                 "--workload", repository("data/workload/gpt2_nano.onnx"), "--batch", "1",
                 "--training", repository("data/training/mxfp8_squares.yaml")});
  EXPECT_EQ(ran.code, 4) << ran.err;
  for (const char* word : {"'vector_block_array' has no mode", "mxfp8_e4m3_8x8", "MatMul",
                           "its modes multiply [mxint8], [q2.4_1x32], [q2.2_1x32]"})
    EXPECT_NE(ran.err.find(word), std::string::npos) << "no '" << word << "' in " << ran.err;
}

/// Four products of a multiplier take less time than one, and every invariant holds.
TEST(Modes, StepsRunInThatOfTheirFormats) {
  const auto cycles = [](const char* training) {
    const Ran ran =
        run_monet({"schedule", "--hardware", repository("data/hardware/snax_mx.yaml"), "--workload",
                   repository("data/workload/gpt2_nano.onnx"), "--batch", "1", "--training",
                   repository(std::string("data/training/") + training), "--mode", "layer-by-layer",
                   "--verify", "--json", "-"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out).at("latency_cycles").get<std::int64_t>();
  };
  EXPECT_LT(cycles("mxfp8_vectors.yaml"), cycles("mxint8_vectors.yaml"));
}

} // namespace
} // namespace monet::test
