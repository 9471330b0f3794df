// Which memories of several cores are one: by name and size, or as aliases say.
#include "monet/hardware/read_hardware.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace monet {
namespace {

using testing::HasSubstr;

/// A core with weights of its own below or beside a memory of activations.
struct CoreFile {
  std::int64_t weight_bits = 4096;
  std::int64_t shared_bits = 8192;
  std::int64_t shared_width = 64;
  bool weights_outermost = false;
  const char* shared_name = "sram";
};

std::string text_of(const CoreFile& file) {
  const std::string weights = fmt::format(
      "  l1_w: {{size: {}, r_cost: 1, w_cost: 1, area: 1, leakage_pj_per_cycle: 0.5, operands: "
      "[I2], ports: "
      "[{{name: r, type: read, bandwidth_max: 8, allocation: ['I2, tl']}}, {{name: w, type: write, "
      "bandwidth_max: 8, allocation: ['I2, fh']}}], served_dimensions: [D1, D2]}}\n",
      file.weight_bits);
  const std::string shared = fmt::format(
      "  {0}: {{size: {1}, r_cost: 1, w_cost: 1, area: 10, leakage_pj_per_cycle: 4, operands: [I1, "
      "O], ports: "
      "[{{name: p, type: read_write, bandwidth_min: 8, bandwidth_max: {2}, allocation: ['I1, tl', "
      "'I1, fh', 'O, tl', 'O, fl', 'O, fh', 'O, th']}}], served_dimensions: [D1, D2]}}\n",
      file.shared_name, file.shared_bits, file.shared_width);
  return "name: c\nmemories:\n" + (file.weights_outermost ? shared + weights : weights + shared) +
         "operational_array: {unit_energy: 1, unit_area: 0, dimensions: [D1, D2], sizes: [4, 4]}\n";
}

constexpr const char* kDram =
    "{name: d, memories: {dram: {size: 1000000, r_cost: 1, w_cost: 1, operands: [I1, I2, O], "
    "ports: "
    "[{name: p, type: read_write, bandwidth_max: 8, allocation: ['I1, tl', 'I2, tl', 'O, tl', "
    "'O, fl']}], served_dimensions: [D1]}}, operational_array: {dimensions: [D1], sizes: [1]}}";

/// A chip of these cores; `lines` says what they share.
Chip chip_of(const std::vector<CoreFile>& files, const std::string& lines) {
  std::string text = "name: chip\ncores: {";
  for (std::size_t i = 0; i < files.size(); ++i)
    text += fmt::format("{}{}: core{}", i == 0 ? "" : ", ", i, i);
  text += "}\noffchip_core: dram\ncore_connectivity: []\n" + lines;
  const FileOpener open = [&](const std::string& name, const SourceLoc&) {
    return FileText{name, name == "dram" ? kDram : text_of(files.at(name.back() - '0'))};
  };
  return parse_chip(text, "chip.yaml", open);
}

std::string complaint(const std::vector<CoreFile>& files, const std::string& lines) {
  try {
    chip_of(files, lines);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

constexpr std::size_t kWeights = 0;
constexpr std::size_t kShared = 1;

MemoryPlace at(std::size_t core, std::size_t memory) {
  return {CoreId(core), memory};
}

TEST(MemorySharing, EqualMemoriesOfAnyLevelAreOneAndOthersArePrivate) {
  const CoreFile wider{16384, 8192, 128};
  const Chip chip = chip_of({{4096}, wider}, "core_memory_sharing: [[0, 1]]\n");
  EXPECT_EQ(chip.place_of(at(1, kShared)), at(0, kShared)) << "ports are a core's own";
  EXPECT_EQ(chip.place_of(at(1, kWeights)), at(1, kWeights)) << "of one name, but not of one size";
  EXPECT_EQ(chip.memory_of(CoreId(std::size_t{1})), CoreId(std::size_t{0}));
  EXPECT_EQ(chip.pool_bits(CoreId(std::size_t{1})), 4096 + 16384 + 8192);
  EXPECT_EQ(chip.pool_bits(CoreId(std::size_t{0})), 4096 + 16384 + 8192);
  EXPECT_TRUE(chip.route(CoreId(std::size_t{0}), CoreId(std::size_t{1})).empty());
  EXPECT_DOUBLE_EQ(chip.area_mm2(), 1 + 1 + 10);
  EXPECT_DOUBLE_EQ(leakage_per_cycle(chip, CoreId(std::size_t{0})), 4.5);
  EXPECT_DOUBLE_EQ(leakage_per_cycle(chip, CoreId(std::size_t{1})), 0.5);
}

TEST(MemorySharing, AnInnerMemoryInTheFileMayBeTheOneInCommon) {
  CoreFile other{16384};
  other.weights_outermost = true; // written the other way round
  const Chip chip = chip_of({{4096}, other}, "core_memory_sharing: [[0, 1]]\n");
  EXPECT_EQ(chip.place_of(at(1, 0)), at(0, kShared));
  EXPECT_EQ(chip.place_of(at(1, 1)), at(1, 1));
  EXPECT_DOUBLE_EQ(leakage_per_cycle(chip, CoreId(std::size_t{1})), 0.5);
}

TEST(MemorySharing, CoresWithEqualMemoriesShareAll) {
  const Chip chip = chip_of({{}, {}}, "core_memory_sharing: [[0, 1]]\n");
  EXPECT_EQ(chip.place_of(at(1, kWeights)), at(0, kWeights));
  EXPECT_EQ(chip.pool_bits(CoreId(std::size_t{1})), 4096 + 8192);
}

TEST(MemorySharing, AliasesShareWhatTheyNameAlone) {
  CoreFile other;
  other.shared_name = "buffer";
  const Chip chip = chip_of({{}, other}, "memory_aliases: [[0.sram, 1.buffer]]\n"
                                         "core_memory_sharing: ['0, 1']\n");
  EXPECT_EQ(chip.place_of(at(1, kShared)), at(0, kShared));
  EXPECT_EQ(chip.place_of(at(1, kWeights)), at(1, kWeights)) << "equal, but not named";
  EXPECT_EQ(chip.pool_bits(CoreId(std::size_t{0})), 2 * 4096 + 8192);
  EXPECT_EQ(chip.memory_of(CoreId(std::size_t{1})), CoreId(std::size_t{0}));
  EXPECT_TRUE(chip.connected(CoreId(std::size_t{0}), CoreId(std::size_t{1})));
}

TEST(MemorySharing, AliasesThatMeetAreOneMemory) {
  const Chip chip = chip_of({{}, {}, {}}, "memory_aliases: [[1.sram, 2.sram], [0.sram, 1.sram]]\n");
  EXPECT_EQ(chip.place_of(at(2, kShared)), at(0, kShared));
  EXPECT_EQ(chip.memory_of(CoreId(std::size_t{2})), CoreId(std::size_t{0}));
  EXPECT_EQ(chip.pool_bits(CoreId(std::size_t{2})), 3 * 4096 + 8192);
  EXPECT_EQ(chip.place_of(at(2, kWeights)), at(2, kWeights));
}

TEST(MemorySharing, GroupsThatMeetAreOneInWhateverOrder) {
  std::vector<std::string> lists{"[0.sram, 2.sram]", "[1.sram, 2.sram]", "[1.sram, 3.sram]"};
  std::ranges::sort(lists);
  do {
    const Chip chip = chip_of({{}, {}, {}, {}}, "memory_aliases: [" + lists[0] + ", " + lists[1] +
                                                    ", " + lists[2] + "]\n");
    for (std::size_t core = 0; core < 4; ++core) {
      EXPECT_EQ(chip.place_of(at(core, kShared)), at(0, kShared));
      EXPECT_EQ(chip.memory_of(CoreId(core)), CoreId(std::size_t{0}));
    }
  } while (std::ranges::next_permutation(lists).found);
}

TEST(MemorySharing, ErrorsAreLocated) {
  CoreFile larger{16384, 32768};
  EXPECT_THAT(complaint({{}, larger}, "core_memory_sharing:\n  - [0, 1]\n"),
              HasSubstr("chip.yaml:6:5: cores 0 and 1 share no memory: no memory of one core has "
                        "the name and size of a memory of the other"));
  const auto aliases = [&](const std::string& list) {
    return complaint({{}, larger}, "memory_aliases:\n  - " + list + "\n");
  };
  EXPECT_THAT(aliases("[0.sram, 1.sram]"),
              HasSubstr("chip.yaml:6:14: memories of 8192 and 32768 bits cannot be the same"));
  EXPECT_THAT(aliases("[0.sram, 1.sran]"),
              HasSubstr("chip.yaml:6:14: core 1 has no memory 'sran' (did you mean 'sram'?)"));
  EXPECT_THAT(aliases("[0.sram, 7.sram]"), HasSubstr("chip.yaml:6:14: '7' is not a core"));
  EXPECT_THAT(aliases("[0.sram, sram]"),
              HasSubstr("expected a core and its memory, like '0.sram'"));
  EXPECT_THAT(aliases("[0.sram, {}]"), HasSubstr("expected a core and its memory, like '0.sram'"));
  EXPECT_THAT(aliases("[0.sram, 0.l1_w]"), HasSubstr("chip.yaml:6:14: core 0 is named twice"));
  EXPECT_THAT(aliases("[0.sram]"), HasSubstr("expected at least two memories"));
  EXPECT_THAT(complaint({{8192}, {}, {}}, "memory_aliases:\n  - [0.sram, 1.sram]\n"
                                          "  - [1.sram, 2.sram]\n  - [0.l1_w, 2.sram]\n"),
              HasSubstr("chip.yaml:6:3: overlapping lists merge two memories of core 0"));
  EXPECT_THAT(aliases("0.sram"), HasSubstr("expected at least two memories"));
  EXPECT_THAT(aliases("[0.sram, 2.dram]"),
              HasSubstr("the off-chip memory does not belong to a core"));
  EXPECT_THAT(complaint({{}, {}}, "memory_aliases: 3\n"),
              HasSubstr("chip.yaml:5:17: expected a list of memories that are the same"));
  EXPECT_THAT(complaint({{}, {}}, "memory_alias: []\n"), HasSubstr("unknown key 'memory_alias'"));
}

TEST(MemorySharing, PublishedChipsRead) {
  const std::string data = std::string(MONET_SOURCE_DIR) + "/data/hardware/";
  const Chip diana = read_chip(data + "diana.yaml");
  verify(diana);
  ASSERT_EQ(diana.compute_cores(), 4U);
  constexpr std::int64_t kKiB = 8192;
  EXPECT_EQ(diana.pool_bits(CoreId(std::size_t{3})), (256 + 64 + 256) * kKiB + 128);
  EXPECT_EQ(diana.cores[1].kind, CoreKind::pooling);
  EXPECT_EQ(diana.cores[1].dataflow[1][0].factor, 2) << "FX, 3 on an axis of 2";
  EXPECT_EQ(diana.cores[2].kind, CoreKind::array) << "FX and FY beside C and K";
  EXPECT_EQ(diana.cores[3].kind, CoreKind::vector);
  const Chip jia = read_chip(data + "jia_4x4.yaml");
  verify(jia);
  ASSERT_EQ(jia.compute_cores(), 5U);
  for (std::size_t i = 0; i < jia.compute_cores(); ++i)
    EXPECT_EQ(jia.cores[i].kind, CoreKind::array);
}

} // namespace
} // namespace monet
