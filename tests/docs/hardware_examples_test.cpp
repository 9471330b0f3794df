// The YAML blocks of the reference pages on hardware are valid files or parts of them.
#include "hardware/shared/core_program.hpp"

#include "monet/base/files.hpp"
#include "monet/hardware/imc_array.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace monet {
namespace {

std::vector<std::string> yaml_blocks(const std::string& markdown) {
  std::vector<std::string> blocks;
  const std::string open = "```yaml\n";
  for (std::size_t at = markdown.find(open); at != std::string::npos;) {
    const std::size_t begin = at + open.size();
    const std::size_t end = markdown.find("```", begin);
    blocks.push_back(markdown.substr(begin, end - begin));
    at = markdown.find(open, end);
  }
  return blocks;
}

/// The blocks of a page of docs/reference.
std::vector<std::string> blocks_of(const std::string& page, std::size_t count) {
  std::vector<std::string> blocks =
      yaml_blocks(read_file(std::string(MONET_SOURCE_DIR) + "/docs/reference/" + page));
  EXPECT_EQ(blocks.size(), count) << page;
  blocks.resize(count);
  return blocks;
}

TEST(HardwareExamples, core_is_read) {
  const Core core = parse_core(blocks_of("hardware.md", 3)[0], "hardware.md");
  EXPECT_EQ(core.kind, CoreKind::array);
  EXPECT_EQ(core.lanes(), 32 * 32);
  EXPECT_EQ(instances(core, core.memories[0]), 32); // one register per D1, shared along D2
}

TEST(HardwareExamples, system_is_read) {
  const std::string source = MONET_SOURCE_DIR;
  const Chip chip = parse_chip(blocks_of("system-file.md", 1)[0], "system-file.md",
                               [&](const std::string& name, const SourceLoc&) {
                                 const std::string path = source + "/data/hardware/cores/" + name;
                                 return FileText{path, read_file(path)};
                               });
  verify(chip);
  EXPECT_EQ(chip.cores.size(), 4U);
  EXPECT_EQ(chip.links.size(), 2U + 1U + 1U); // a link each way and two buses
  // The last bus reaches the off-chip memory, so it is the only way there.
  EXPECT_EQ(chip.route(CoreId(std::size_t{0}), CoreId(std::size_t{3})),
            (std::vector<LinkId>{LinkId(std::size_t{3})}));
}

/// The core of the first block of hardware.md with the array of a later block.
TEST(HardwareExamples, arrays_are_read) {
  const std::vector<std::string> cores = blocks_of("hardware.md", 3);
  const std::vector<std::string> arrays = blocks_of("array-units.md", 3);
  const std::string memories = cores[0].substr(0, cores[0].find("operational_array:"));
  const Core unit = parse_core(memories + arrays[0], "array-units.md");
  ASSERT_TRUE(unit.mac);
  EXPECT_EQ(name_of(*unit.mac), "fp8_e5m2 cfg5 + q8.13");
  const Core modes = parse_core(memories + arrays[1], "array-units.md");
  ASSERT_EQ(modes.modes.size(), 3U);
  EXPECT_EQ(modes.modes[2].products, 8);
  // Its cells, and the memories of the first block of hardware.md above them.
  const Core imc = parse_core(
      "name: imc\n" + arrays[2] + memories.substr(memories.find("  registers:")), "array-units.md");
  ASSERT_TRUE(imc.imc);
  EXPECT_EQ(imc.imc->columns, 128);
  EXPECT_EQ(imc.memories.size(), 3U);
}

TEST(HardwareExamples, programs_are_read) {
  const std::vector<std::string> blocks = blocks_of("hardware.md", 3);
  const Core processors = parse_core(blocks[0] + blocks[1], "hardware.md");
  ASSERT_TRUE(processors.program && processors.program->issue);
  EXPECT_EQ(processors.program->issue->im2col, 22);
  const Core gpu = parse_core(blocks[0] + blocks[2], "hardware.md");
  ASSERT_TRUE(gpu.program && gpu.program->kernels);
  EXPECT_EQ(gpu.program->kernels->waves.units, 32);
}

} // namespace
} // namespace monet
