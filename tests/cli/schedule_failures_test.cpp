// Systems and mappings that no schedule fits: what is said, where and by how much.
#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

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
  expect(schedule(), 4, {"infeasible: inference: ", "'sram_256KB'", "160 bits", "holds 64"});
}

TEST_F(SmallSystem, ComplainsAboutACoreWithoutAPathToTheOffchipMemory) {
  write_system(2, 1);
  scratch_.file("map.yaml", "- {name: default, core_allocation: [1]}\n");
  expect(schedule({"--mapping", "map.yaml"}), 4, {"infeasible: ", "core 1", "route"});
}

TEST_F(SmallSystem, ComplainsAboutMappingsOfAbsentCores) {
  write_system(2, 2);
  scratch_.file("map.yaml", "- {name: Gemm, core_allocation: [0, 9]}\n"
                            "- {name: default, core_allocation: [1, 2]}\n");
  expect(schedule({"--mapping", "map.yaml"}), 3,
         {"error: map.yaml:2:", "'default'", "core 2, which is no compute core of 'small'"});
}

TEST_F(SmallSystem, ComplainsAboutFactorsOfNothing) {
  write_system(1, 1);
  scratch_.file("map.yaml", "- {name: default, inter_core_tiling: [\"K, 0\"]}\n");
  expect(schedule({"--mapping", "map.yaml"}), 3, {"error: map.yaml:1:", "factor 0"});
}

} // namespace
} // namespace monet::test
