#include "base/archive.hpp"
#include "hardware/core_text.hpp"

#include "monet/base/warnings.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace monet {
namespace MONET_TEST_FILE {

const std::string kData = std::string(MONET_SOURCE_DIR) + "/data/hardware/";

Chip small_chip(const std::string& name) {
  const GivenFiles files(test::texts_of("hardware/small.txt", "/small/"));
  return read_chip("/small/" + name);
}

CoreId core(std::size_t i) {
  return CoreId(i);
}

std::vector<std::string> way(const Chip& chip, std::size_t from, std::size_t to) {
  std::vector<std::string> names;
  for (const LinkId id : chip.route(core(from), core(to)))
    names.push_back(chip.links[id.index()].name);
  return names;
}

using Names = std::vector<std::string>;

TEST(ChipReader, ReadsLinksGivenAsStrings) {
  const Chip chip = small_chip("listed_links.yaml");
  verify(chip);
  ASSERT_EQ(chip.cores.size(), 5U);
  EXPECT_EQ(chip.compute_cores(), 4U);
  EXPECT_EQ(chip.offchip, core(4));
  EXPECT_EQ(text_of(chip.cores[0]), text_of(chip.cores[1]));
  EXPECT_EQ(chip.cores[2].kind, CoreKind::pooling);
  EXPECT_EQ(chip.cores[3].kind, CoreKind::vector);
  EXPECT_EQ(chip.cores[4].kind, CoreKind::offchip);
  // Two links each way, one bus, and the two ways of the off-chip memory.
  Names names;
  for (const Link& link : chip.links)
    names.push_back(link.name);
  EXPECT_EQ(names, (Names{"0>1", "1>0", "1>2", "2>1", "bus 1-2-3", "dram read", "dram write"}));
  EXPECT_EQ(chip.links[0].bandwidth_bits_per_cycle, 32);
  EXPECT_EQ(chip.links[0].energy_pj_per_cycle, 0.5);
  EXPECT_EQ(chip.links[5].bandwidth_bits_per_cycle, 64); // r_bw
  EXPECT_EQ(chip.links[6].bandwidth_bits_per_cycle, 32); // w_bw
  EXPECT_EQ(way(chip, 0, 1), Names{"0>1"});
  EXPECT_EQ(way(chip, 1, 2), Names{"1>2"}); // as short as the bus, and first in the file
  EXPECT_EQ(way(chip, 2, 3), Names{"bus 1-2-3"});
  EXPECT_EQ(way(chip, 3, 0), (Names{"bus 1-2-3", "1>0"}));
  EXPECT_EQ(way(chip, 4, 0), Names{"dram read"});
  EXPECT_EQ(way(chip, 0, 4), Names{"dram write"});
  EXPECT_TRUE(way(chip, 2, 2).empty());
  const OffchipPort port = offchip_port(chip);
  EXPECT_FALSE(port.shared);
  EXPECT_EQ(port.read_bits_per_cycle, 64);
  EXPECT_EQ(port.write_bits_per_cycle, 32);
  EXPECT_EQ(port.read_pj_per_bit, 10);  // 640 pJ per 64 bits
  EXPECT_EQ(port.write_pj_per_bit, 20); // 640 pJ per 32 bits
}

TEST(ChipReader, ReadsTheLatencyOfLinks) {
  const auto chip_of = [](const std::string& latency, const std::string& own) {
    const FileOpener open = [](const std::string& name, const SourceLoc& /*where*/) {
      return FileText{
          name, "{name: c, memories: {m: {size: 64, r_cost: 1, w_cost: 1, operands: [I1, I2, O], "
                "ports: [{name: p, type: read_write, bandwidth_max: 8, allocation: ['I1, tl', "
                "'I2, tl', 'O, tl', 'O, fl']}], served_dimensions: [D1]}}, operational_array: "
                "{dimensions: [D1], sizes: [2]}}"};
    };
    return parse_chip("name: c\ncores: {0: a, 1: a, 2: a}\nbandwidth: 8\n" + latency +
                          "core_connectivity:\n  - 0, 1\n  - {cores: [1, 2]" + own +
                          "}\n  - 0, 1, 2\n",
                      "c.yaml", open);
  };
  const auto latencies = [](const Chip& chip) {
    std::vector<std::int64_t> cycles;
    for (const Link& link : chip.links)
      cycles.push_back(link.latency_cycles);
    return cycles;
  };
  using Cycles = std::vector<std::int64_t>;
  EXPECT_EQ(latencies(chip_of("", "")), (Cycles{0, 0, 0, 0, 0}));
  EXPECT_EQ(latencies(chip_of("", ", latency_cycles: 5")), (Cycles{0, 0, 5, 5, 0}));
  EXPECT_EQ(latencies(chip_of("latency_cycles: 3\n", ", latency_cycles: 0")),
            (Cycles{3, 3, 0, 0, 3}));
}

TEST(ChipReader, ReadsLinksGivenAsMaps) {
  const Chip chip = small_chip("mapped_links.yaml");
  verify(chip);
  EXPECT_EQ(chip.offchip, core(2));
  ASSERT_EQ(chip.links.size(), 3U);
  EXPECT_EQ(chip.links[1].name, "1>0");
  EXPECT_EQ(chip.links[1].bandwidth_bits_per_cycle, 16);
  EXPECT_EQ(chip.links[1].energy_pj_per_cycle, 2);
  EXPECT_EQ(chip.links[1].energy_pj_per_bit, 0.25);
  // One port: one link for reads and writes of every core.
  EXPECT_EQ(way(chip, 0, 2), Names{"dram"});
  EXPECT_EQ(way(chip, 2, 1), Names{"dram"});
  EXPECT_EQ(way(chip, 0, 1), Names{"0>1"});
}

TEST(ChipReader, CoresOverOneMemoryNeedNoLink) {
  const Chip chip = small_chip("shared_memory.yaml");
  verify(chip);
  EXPECT_EQ(chip.shared_memory, (std::vector<std::vector<CoreId>>{{core(0), core(1)}}));
  EXPECT_TRUE(way(chip, 0, 1).empty());
  EXPECT_TRUE(chip.connected(core(0), core(1)));
  EXPECT_EQ(way(chip, 1, 2), Names{"dram"});
}

TEST(ChipReader, CoresWithoutALinkDoNotTalkThroughTheOffchipMemory) {
  Chip chip = small_chip("shared_memory.yaml");
  chip.shared_memory.clear();
  make_routes(chip);
  EXPECT_FALSE(chip.connected(core(0), core(1)));
  EXPECT_TRUE(chip.connected(core(0), core(2)));
}

TEST(ChipReader, AnUnusualClockIsAWarning) {
  const auto warnings_at = [](const std::string& frequency) -> std::string {
    std::map<std::string, std::string> texts = test::texts_of("hardware/small.txt", "/small/");
    texts["/small/shared_memory.yaml"] += "frequency_hz: " + frequency + "\n";
    const GivenFiles files(texts);
    const WarningScope scope;
    read_chip("/small/shared_memory.yaml");
    return scope.warnings().empty() ? "" : scope.warnings().front().what;
  };
  EXPECT_EQ(warnings_at("250e6"), "");
  EXPECT_EQ(warnings_at("100e9"), "");
  EXPECT_EQ(warnings_at("250"), "'frequency_hz' is an unusually slow clock of 250 Hz");
  EXPECT_EQ(warnings_at("1e12"), "'frequency_hz' is an unusually fast clock of 1e+12 Hz");
}

TEST(ChipReader, ACoreFileAloneIsAChip) {
  const Chip one = small_chip("cores/counted_ports.yaml");
  verify(one);
  EXPECT_EQ(one.cores.size(), 1U);
  EXPECT_FALSE(one.offchip.has_value());
}

TEST(DataHardware, EdgeTpu) {
  const Chip chip = read_chip(kData + "edge_tpu.yaml");
  verify(chip);
  EXPECT_EQ(chip.frequency_hz, 800e6);
  ASSERT_EQ(chip.cores.size(), 7U);
  ASSERT_EQ(chip.offchip, core(6));
  const Core& pe = chip.cores[0];
  EXPECT_EQ(pe.kind, CoreKind::array);
  EXPECT_EQ(pe.lanes(), 256); // 64 x 4
  ASSERT_EQ(pe.memories.size(), 3U);
  EXPECT_EQ(instances(pe, pe.memories[0]), 256);
  EXPECT_EQ(instances(pe, pe.memories[1]), 64);
  EXPECT_EQ(instances(pe, pe.memories[2]), 1);
  EXPECT_EQ(instances(pe, pe.memories[0]) * pe.memories[0].size.value, 32 * 1024 * 8); // 32 KB
  EXPECT_EQ(pe.top(MemoryOperand::I2)->size.value, 2 * 1024 * 1024 * 8);
  EXPECT_EQ(chip.cores[4].kind, CoreKind::pooling);
  EXPECT_EQ(chip.cores[4].lanes(), 72);
  EXPECT_EQ(chip.cores[5].kind, CoreKind::vector);
  EXPECT_EQ(chip.cores[5].lanes(), 64);
  // 4 + 8 links, each of two wires, and the bus.
  ASSERT_EQ(chip.links.size(), 25U);
  EXPECT_EQ(way(chip, 0, 1), Names{"0>1"});
  EXPECT_EQ(way(chip, 5, 2), Names{"5>2"});
  // Across the mesh: two links or one bus, and the bus has fewer hops.
  EXPECT_EQ(way(chip, 0, 3), Names{"bus 0-1-2-3-4-5-dram"});
  EXPECT_EQ(way(chip, 6, 3), Names{"bus 0-1-2-3-4-5-dram"});
  EXPECT_EQ(chip.links[24].bandwidth_bits_per_cycle, 128);
  const OffchipPort port = offchip_port(chip);
  EXPECT_TRUE(port.shared);
  EXPECT_EQ(port.read_bits_per_cycle, 64);
  EXPECT_EQ(port.read_pj_per_bit, 15.625); // 1000 pJ per 64 bits
  EXPECT_EQ(port.capacity.value, 80'000'000'000);
}

TEST(DataHardware, TpuLikeQuadCore) {
  const Chip chip = read_chip(kData + "tpu_like_quad_core.yaml");
  verify(chip);
  EXPECT_EQ(chip.compute_cores(), 6U);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(chip.cores[i].lanes(), 1024);
  EXPECT_EQ(chip.cores[3].memories[0].size.value, 1024);
  ASSERT_EQ(chip.links.size(), 9U);
  EXPECT_EQ(way(chip, 3, 0), Names{"3>0"});
  EXPECT_EQ(way(chip, 0, 2), Names{"bus 0-1-2-3-4-5-dram"});
  EXPECT_EQ(way(chip, 4, 0), Names{"bus 0-1-2-3-4-5-dram"});
}

TEST(DataHardware, Fusemax) {
  const Chip chip = read_chip(kData + "fusemax.yaml");
  verify(chip);
  ASSERT_EQ(chip.cores.size(), 3U);
  EXPECT_EQ(chip.cores[0].lanes(), 65536);
  EXPECT_EQ(chip.cores[1].lanes(), 128);
  EXPECT_EQ(chip.cores[1].kind, CoreKind::vector);
  EXPECT_EQ(chip.cores[0].top(MemoryOperand::O)->size.value, 16 * 1024 * 1024 * 8);
  EXPECT_EQ(instances(chip.cores[0], chip.cores[0].memories[2]), 65536); // an accumulator each
  EXPECT_EQ(way(chip, 0, 1), Names{"0>1"});
  EXPECT_EQ(way(chip, 1, 2), Names{"bus 0-1-dram"});
  const OffchipPort port = offchip_port(chip);
  EXPECT_EQ(port.read_pj_per_bit, 15.625);
  EXPECT_GE(port.capacity.value, 10'000'000'000 * 8);
  // The memory gives all that the bus can carry.
  EXPECT_EQ(port.read_bits_per_cycle, 2048);
  EXPECT_EQ(chip.links[2].bandwidth_bits_per_cycle, 2048);
}

// 22 GB/s at 1 GHz, 150 GB/s and eight times that at 1.05 GHz, in whole bits per cycle.
TEST(DataHardware, Npus) {
  struct Case {
    const char* file;
    std::size_t arrays;
    std::int64_t side;
    std::int64_t scratchpad_bytes;
    double bytes_per_second;
  };
  constexpr std::int64_t kMiB = 1 << 20;
  for (const Case& one :
       {Case{"npu_small.yaml", 1, 45, kMiB, 22e9}, Case{"npu_large.yaml", 1, 128, 8 * kMiB, 150e9},
        Case{"npu_large_octa.yaml", 8, 128, 64 * kMiB, 1200e9}}) {
    const Chip chip = read_chip(kData + one.file);
    verify(chip);
    ASSERT_EQ(chip.compute_cores(), one.arrays + 1) << one.file;
    for (std::size_t i = 0; i < one.arrays; ++i) {
      EXPECT_EQ(chip.cores[i].kind, CoreKind::array);
      EXPECT_EQ(chip.cores[i].lanes(), one.side * one.side);
      EXPECT_EQ(chip.cores[i].top(MemoryOperand::I1)->size.value, 8 * one.scratchpad_bytes);
      EXPECT_EQ(chip.memory_of(CoreId(i)), CoreId(std::size_t{0})) << "one scratchpad for all";
    }
    EXPECT_EQ(chip.cores[one.arrays].kind, CoreKind::vector);
    const double bits_per_cycle = one.bytes_per_second * 8 / chip.frequency_hz;
    EXPECT_EQ(offchip_port(chip).read_bits_per_cycle, std::ceil(bits_per_cycle)) << one.file;
    EXPECT_TRUE(offchip_port(chip).shared);
  }
}

TEST(DataHardware, SingleCoreMcu) {
  const Chip chip = read_chip(kData + "single_core_mcu.yaml");
  verify(chip);
  EXPECT_EQ(chip.frequency_hz, 216e6);
  EXPECT_EQ(chip.compute_cores(), 1U);
  EXPECT_EQ(chip.cores[0].kind, CoreKind::array);
  EXPECT_TRUE(chip.cores[0].runs_vector_operators);
  EXPECT_EQ(chip.cores[0].lanes(), 2);
  EXPECT_EQ(chip.cores[0].top(MemoryOperand::I1)->size.value, 256 * 1024 * 8);
  EXPECT_FALSE(chip.cores[1].memories[0].non_volatile);
  EXPECT_EQ(way(chip, 1, 0), Names{"dram>0"});
  EXPECT_EQ(offchip_port(chip).write_pj_per_bit, 200); // 1600 pJ per 8 bits
}

TEST(DataHardware, HoldsOperandsOf32Bits) {
  for (const char* name : {"edge_tpu", "tpu_like_quad_core", "fusemax", "single_core_mcu"}) {
    const Chip chip = read_chip(kData + name + ".yaml");
    for (std::size_t i = 0; i < chip.compute_cores(); ++i) {
      for (const Memory& memory : chip.cores[i].memories) {
        EXPECT_GE(memory.size.value, 32) << name << ' ' << memory.name;
        for (const MemoryPort& port : memory.ports) {
          EXPECT_GE(port.bandwidth_max, 32) << name << ' ' << memory.name << ' ' << port.name;
        }
      }
    }
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet
