#include "base/shared/rng.hpp"
#include "explore/space/yaml_template.hpp"

#include "monet/base/files.hpp"
#include "monet/explore/space.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace monet {
namespace {

std::string source(const std::string& path) {
  return std::string(MONET_SOURCE_DIR) + "/" + path;
}

/// A space of small chips: n cores in a row on a bus, with an off-chip memory.
std::string toy(const std::string& parameters, const std::string& more = "") {
  return "workload: {network: " + source("data/workload/gpt2_nano.onnx") + ", batch: 1}\n" +
         parameters + more + R"(
chip:
  cores: [{for: {i: n}, value: core}, dram]
  offchip_core_id: ${n}
  core_connectivity:
    - {for: {i: [1, n]}, type: link, cores: ["${i - 1}", "${i}"], bandwidth: 64}
    - {type: bus, cores: [{for: {i: n + 1}, value: "${i}"}], bandwidth: "${bus}"}
cores:
  core:
    name: core
    memories:
      sram:
        size: ${kb * 8192}
        r_cost: 1
        w_cost: 1
        area: ${kb / 100}
        latency: 1
        operands: [I1, I2, O]
        ports:
          - {name: rw, type: read_write, bandwidth_min: 64, bandwidth_max: 64, allocation: ["I1, tl", "I2, tl", "O, tl", "O, th", "I1, fh", "I2, fh", "O, fh", "O, fl"]}
        served_dimensions: [D1]
    operational_array: {unit_energy: 1, unit_area: 0, dimensions: [D1], sizes: [8]}
  dram: )" +
         source("data/hardware/cores/dram_64bit.yaml") + "\n";
}
const char* const kParameters = "parameters: {n: [1, 2, 4], bus: [64, 128], kb: [16, 32]}\n";

TEST(Space, NumbersDesignsAsDigits) {
  const Space space = parse_space(toy(kParameters), "toy.yaml");
  EXPECT_EQ(space.size(), 12U);
  std::set<std::vector<std::uint32_t>> seen;
  for (DesignId id = 0; id < space.size(); ++id) {
    const auto choices = space.choices(id);
    EXPECT_EQ(space.id_of(choices), id);
    seen.insert(choices);
  }
  EXPECT_EQ(seen.size(), 12U);
  EXPECT_EQ(space.choices(7), (std::vector<std::uint32_t>{1, 1, 1}));
}

TEST(Space, MakesTheChipOfADesign) {
  const Space space = parse_space(toy(kParameters), "toy.yaml");
  const Chip chip = space.chip(11); // n 4, bus 128, kb 32
  ASSERT_EQ(chip.cores.size(), 5U);
  EXPECT_EQ(chip.cores[3].memories[0].size.value, 32 * 8192);
  EXPECT_DOUBLE_EQ(chip.area_mm2(), 4 * 0.32);
  // Three links of the row each way, and the bus with its off-chip part.
  const auto wide = [](const Link& link) { return link.bandwidth_bits_per_cycle == 128; };
  EXPECT_EQ(std::count_if(chip.links.begin(), chip.links.end(), wide), 1);
  EXPECT_EQ(chip.links.size(), 7U);
  EXPECT_EQ(space.chip(0).links.size(), 1U) << "no link where there is one core";
}

TEST(Space, WritesFilesThatMakeTheSameChip) {
  for (const char* file : {"data/spaces/edge_study.yaml", "data/spaces/edge.yaml",
                           "data/spaces/fusemax.yaml", "data/spaces/heterogeneous.yaml"}) {
    const Space space = read_space(source(file));
    RandomStream random(7);
    for (int round = 0; round < 5; ++round) {
      DesignId id = random.below(space.size());
      while (!space.broken_constraint(id).empty())
        id = random.below(space.size());
      const auto texts = space.hardware_files(id);
      const FileOpener open = [&](const std::string& name, const SourceLoc& where) {
        for (const auto& [known, text] : texts) {
          if (known == name)
            return FileText{name, text};
        }
        throw InputError(where, "no file " + name);
      };
      const Chip made = space.chip(id);
      const Chip read = parse_chip(texts.front().second, "system.yaml", open);
      ASSERT_EQ(made.cores.size(), read.cores.size());
      ASSERT_EQ(made.links.size(), read.links.size());
      EXPECT_EQ(made.frequency_hz, read.frequency_hz);
      EXPECT_EQ(made.area_mm2(), read.area_mm2());
      EXPECT_EQ(peak_power_w(made), peak_power_w(read));
      for (std::size_t i = 0; i < made.links.size(); ++i) {
        EXPECT_EQ(made.links[i].cores, read.links[i].cores);
        EXPECT_EQ(made.links[i].bandwidth_bits_per_cycle, read.links[i].bandwidth_bits_per_cycle);
      }
    }
  }
}

TEST(Space, WritesTextsThatReadBack) {
  for (const char* text :
       {"-1", "-1.5e3", "-1> ", "-1: x", "-1 #", "a ", " a", "- a", "null", "1,2"}) {
    YamlNode node;
    node.kind = YamlNode::Kind::map;
    node.entries.emplace_back();
    node.entries.back().key = "key";
    node.entries.back().value.kind = YamlNode::Kind::scalar;
    node.entries.back().value.scalar = text;
    const YamlNode read = parse_yaml(yaml_text(node), "again.yaml");
    ASSERT_EQ(read.entries.size(), 1U) << text;
    EXPECT_EQ(read.entries[0].value.scalar, text);
  }
}

TEST(Space, ShipsTheStudysSpaces) {
  const Space edge = read_space(source("data/spaces/edge_study.yaml"));
  EXPECT_EQ(edge.size(), 10'000U);
  // Multipliers, memory and number of elements, counted by hand: the sums of the values' products.
  std::map<std::size_t, int> elements;
  double multipliers = 0;
  double megabytes = 0;
  for (DesignId id = 0; id < edge.size(); id += 7) {
    const Chip chip = edge.chip(id);
    ++elements[chip.cores.size() - 3];
    multipliers += static_cast<double>(chip.cores[0].lanes());
    megabytes += static_cast<double>(chip.cores[0].memories.back().size.value) / (1 << 23);
  }
  EXPECT_EQ(elements.size(), 12U) << "products of two of 1, 2, 4, 6, 8";
  EXPECT_NEAR(multipliers / 1429, (16 + 32 + 64 + 128) / 4.0 * (1 + 2 + 4 + 8) / 4.0, 5);
  EXPECT_NEAR(megabytes / 1429, (0.5 + 1 + 2 + 3 + 4) / 5, 0.05);
  // 8 x 8 elements: 2 * 7 * 8 links of the mesh and 2 * 64 to the auxiliary cores, both ways.
  EXPECT_EQ(edge.chip(9999).links.size(), 2 * (112 + 128) + 1U);
  EXPECT_EQ(read_space(source("data/spaces/fusemax_study.yaml")).size(), 5'120U);
  const Space mixed = read_space(source("data/spaces/heterogeneous.yaml"));
  RandomStream random(1);
  int kept = 0;
  for (int i = 0; i < 2000; ++i)
    kept += mixed.broken_constraint(random.below(mixed.size())).empty() ? 1 : 0;
  EXPECT_GT(static_cast<double>(mixed.size()) * kept / 2000, 1e6);
}

TEST(Space, ReadsTheExampleOfTheDocs) {
  const Space space = read_space(source("examples/spaces/small_edge.yaml"));
  EXPECT_EQ(space.size(), 18U);
  EXPECT_EQ(space.broken_constraint(0), "elements > 1 or memory_kb >= 512");
  EXPECT_EQ(space.fronts.size(), 3U);
}

TEST(Space, ReadsRangesNamesAndConstraints) {
  const Space space =
      parse_space(toy("parameters: {n: {from: 1, to: 4}, bus: {from: 64, to: 512, factor: 2}, "
                      "kb: {from: 8, to: 9, step: 0.25}, kind: [a, '1', b]}\n",
                      "let: {twice: 2 * n}\nconstraints: [twice < 8, kind != 'b' or n == 1]\n"
                      "budgets: {area_mm2: 3}\n"),
                  "toy.yaml");
  EXPECT_EQ(space.size(), 4U * 4 * 5 * 3);
  EXPECT_EQ(space.parameters[2].values[4].text, "9");
  EXPECT_FALSE(space.parameters[3].values[1].is_number) << "quoted";
  EXPECT_EQ(space.budgets.area_mm2, 3);
  EXPECT_EQ(space.broken_constraint(space.id_of({3, 0, 0, 0})), "twice < 8");
  EXPECT_EQ(space.broken_constraint(space.id_of({1, 0, 0, 2})), "kind != 'b' or n == 1");
  EXPECT_EQ(space.broken_constraint(space.id_of({0, 0, 0, 2})), "");
  EXPECT_EQ(space.workload.runs, std::vector<std::string>{"inference"});
  EXPECT_EQ(space.fronts.size(), 2U);
}

TEST(Space, ChangesItsHashWithAnythingThatDecidesResults) {
  const Space a = parse_space(toy(kParameters), "toy.yaml");
  EXPECT_EQ(a.content_hash, parse_space(toy(kParameters), "other/name.yaml").content_hash);
  EXPECT_NE(
      a.content_hash,
      parse_space(toy("parameters: {n: [1, 2], bus: [64], kb: [16]}\n"), "toy.yaml").content_hash);
}

std::string problem_of(const std::string& text) {
  try {
    parse_space(text, "toy.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Space, RefusesWhatMakesNoSense) {
  const auto says = [](const std::string& text, const std::string& what) {
    const std::string problem = problem_of(text);
    EXPECT_NE(problem.find(what), std::string::npos) << what << "\n" << problem;
    EXPECT_NE(problem.find("toy.yaml:"), std::string::npos) << problem;
  };
  says(toy("parameters: {n: [1, 1], bus: [64], kb: [16]}\n"), "value 1 is there twice");
  says(toy("parameters: {n: [], bus: [64], kb: [16]}\n"), "has no values");
  says(toy("parameters: {n: [1], bus: [64], kb: [16], and: [1]}\n"), "'and' is not a name");
  says(toy("parameters: {n: [1], bus: [64], kbs: [16]}\n"), "did you mean 'kbs'?");
  says(toy(kParameters, "let: {n: 4}\n"), "'n' is there already");
  says(toy(kParameters, "runs: [training]\n"), "needs 'training:'");
  says(toy(kParameters, "fronts: [{run: inference, objectives: [latency, speed]}]\n"),
       "unknown objective 'speed'");
  says(toy(kParameters, "strategies: all\n"), "strategies");
  says(toy(kParameters, "optimise: {fusion: {evaluations: 0}}\n"), "1 to 1000000");
  says(toy(kParameters, "optimise: {allocations: {}}\n"), "did you mean 'allocation'?");
  says(toy("parameters: {n: [1.5], bus: [64], kb: [16]}\n"), "whole number");
  says(toy("parameters: {n: [1], bus: [64], kb: [0]}\n"), "size");
  says(toy("parameters: {n: {from: 1, to: 1e9}, bus: [64], kb: [16]}\n"), "more than 1000000");
}

} // namespace
} // namespace monet
