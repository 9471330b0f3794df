// The YAML shown in docs/reference/hardware.md is read as a user would have it read.
#include "monet/base/files.hpp"
#include "monet/hardware/core_program.hpp"
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

TEST(HardwareExamples, core_and_system_are_read) {
  const std::string source = MONET_SOURCE_DIR;
  const std::vector<std::string> blocks =
      yaml_blocks(read_file(source + "/docs/reference/hardware.md"));
  ASSERT_EQ(blocks.size(), 7U);

  const Core core = parse_core(blocks[0], "docs/reference/hardware.md");
  EXPECT_EQ(core.kind, CoreKind::array);
  EXPECT_EQ(core.lanes(), 32 * 32);
  EXPECT_EQ(instances(core, core.memories[0]), 32); // one register per D1, shared along D2

  const Chip chip = parse_chip(blocks[1], "docs/reference/hardware.md",
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

/// The core of the first block with the array of a later one.
TEST(HardwareExamples, arrays_are_read) {
  const std::vector<std::string> blocks =
      yaml_blocks(read_file(std::string(MONET_SOURCE_DIR) + "/docs/reference/hardware.md"));
  ASSERT_EQ(blocks.size(), 7U);
  const std::string memories = blocks[0].substr(0, blocks[0].find("operational_array:"));
  const Core unit = parse_core(memories + blocks[2], "docs/reference/hardware.md");
  ASSERT_TRUE(unit.mac);
  EXPECT_EQ(name_of(*unit.mac), "fp8_e5m2 cfg5 + q8.13");
  const Core modes = parse_core(memories + blocks[3], "docs/reference/hardware.md");
  ASSERT_EQ(modes.modes.size(), 3U);
  EXPECT_EQ(modes.modes[2].products, 8);
  // Its cells, and the memories of the first block above them.
  const Core imc =
      parse_core("name: imc\n" + blocks[4] + memories.substr(memories.find("  registers:")),
                 "docs/reference/hardware.md");
  ASSERT_TRUE(imc.imc);
  EXPECT_EQ(imc.imc->columns, 128);
  EXPECT_EQ(imc.memories.size(), 3U);
  const Core processors = parse_core(blocks[0] + blocks[5], "docs/reference/hardware.md");
  ASSERT_TRUE(processors.program && processors.program->issue);
  EXPECT_EQ(processors.program->issue->im2col, 22);
  const Core gpu = parse_core(blocks[0] + blocks[6], "docs/reference/hardware.md");
  ASSERT_TRUE(gpu.program && gpu.program->kernels);
  EXPECT_EQ(gpu.program->kernels->waves.units, 32);
}

} // namespace
} // namespace monet
