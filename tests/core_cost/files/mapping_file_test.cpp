#include "monet/base/warnings.hpp"
#include "monet/core_cost/mapping_file.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

std::string message_of(std::string_view text) {
  try {
    parse_mapping(text, "map.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(MappingFile, ReadsSpatialMappingsAndOperandLinks) {
  const MappingFile file = parse_mapping(R"(
- name: default
  spatial_mapping:
    D1: ["K, 32"]
    D2:
      - C, 8
      - [FX, 3]
  memory_operand_links: {O: O, W: I2, I: I1}
  spatial_mapping_hint: {D1: [K, OX], D2: [C]}
  temporal_ordering:
    - [OX, 112]
    - ["*", "*"]
    - [K, 2]
)",
                                         "map.yaml");
  ASSERT_EQ(file.entries.size(), 1U);
  const MappingEntry& entry = file.entries[0];
  EXPECT_EQ(entry.where.to_string(), "map.yaml:2:3");
  EXPECT_FALSE(entry.core_allocation.has_value());
  ASSERT_EQ(entry.spatial_mapping.size(), 2U);
  EXPECT_EQ(entry.spatial_mapping.at("D1").at(0).dim, "K");
  EXPECT_EQ(entry.spatial_mapping.at("D1").at(0).factor, 32);
  // Two layer dims on one array dim, in both notations.
  ASSERT_EQ(entry.spatial_mapping.at("D2").size(), 2U);
  EXPECT_EQ(entry.spatial_mapping.at("D2")[0].dim, "C");
  EXPECT_EQ(entry.spatial_mapping.at("D2")[1].dim, "FX");
  EXPECT_EQ(entry.spatial_mapping.at("D2")[1].factor, 3);
  EXPECT_EQ(entry.memory_operand_links.at("W"), MemoryOperand::I2);
  EXPECT_EQ(entry.memory_operand_links.at("I"), MemoryOperand::I1);
  EXPECT_EQ(entry.memory_operand_links.at("O"), MemoryOperand::O);
  EXPECT_EQ(entry.spatial_mapping_hint.at("D1"), (std::vector<std::string>{"K", "OX"}));
  ASSERT_EQ(entry.temporal_ordering.size(), 3U);
  EXPECT_EQ(entry.temporal_ordering[0],
            std::pair(std::string("OX"), std::optional<std::int64_t>(112)));
  EXPECT_EQ(entry.temporal_ordering[1].first, "*");
  EXPECT_FALSE(entry.temporal_ordering[1].second.has_value());
}

TEST(MappingFile, ReadsAllocationsAndTilings) {
  const MappingFile file = parse_mapping(R"(
- name: default
  core_allocation: &all [0, 1, 2, 3]
  core_allocation_is_fixed: True
  intra_core_tiling:
    - OY, all
  inter_core_tiling:
    - K, *
- name: Add
  core_allocation: *all
  intra_core_tiling: []
  inter_core_tiling:
    - H, 4
- name: Gemm
  core_allocation: 5
)",
                                         "map.yaml");
  ASSERT_EQ(file.entries.size(), 3U);
  const MappingEntry& first = file.entries[0];
  EXPECT_EQ(first.core_allocation, (std::vector<std::int64_t>{0, 1, 2, 3}));
  ASSERT_EQ(first.intra_core_tiling.size(), 1U);
  EXPECT_EQ(first.intra_core_tiling[0].dim, "OY");
  EXPECT_EQ(first.intra_core_tiling[0].amount, TilingFactor::Amount::all);
  EXPECT_EQ(first.inter_core_tiling.at(0).amount, TilingFactor::Amount::chosen);
  EXPECT_EQ(file.entries[1].core_allocation, first.core_allocation);
  EXPECT_TRUE(file.entries[1].intra_core_tiling.empty());
  EXPECT_EQ(file.entries[1].inter_core_tiling.at(0).amount, TilingFactor::Amount::number);
  EXPECT_EQ(file.entries[1].inter_core_tiling.at(0).factor, 4);
  EXPECT_EQ(file.entries[2].core_allocation, (std::vector<std::int64_t>{5}));
}

TEST(MappingFile, FindsByNodeThenByTypeThenTheDefault) {
  const MappingFile file =
      parse_mapping("[{name: default}, {name: Conv}, {name: conv1}]", "m.yaml");
  EXPECT_EQ(file.find("conv1", "Conv"), &file.entries[2]);
  EXPECT_EQ(file.find("conv2", "Conv"), &file.entries[1]);
  EXPECT_EQ(file.find("fc", "Gemm"), &file.entries[0]);
  const MappingFile without_default = parse_mapping("[{name: Conv}]", "m.yaml");
  EXPECT_EQ(without_default.find("fc", "Gemm"), nullptr);
}

TEST(MappingFile, ReportsEveryProblemOfAFile) {
  EXPECT_EQ(message_of("- name: Conv\n"
                       "  spatial_mapping: {D1: [K 32]}\n"
                       "  core_alocation: [0]\n"
                       "- name: Conv\n"
                       "  memory_operand_links: {W: I3}\n"
                       "- inter_core_tiling: [\"K, 0\"]\n"
                       "  core_allocation: [-1]\n"),
            "map.yaml:2:26: expected a pair like 'K, 32'\n"
            "map.yaml:3:3: unknown key 'core_alocation' (did you mean 'core_allocation'?)\n"
            "map.yaml:5:29: 'W' must be linked to a memory operand: I1, I2 or O\n"
            "map.yaml:4:3: an entry for 'Conv' is given twice (first at line 1)\n"
            "map.yaml:6:3: key 'name' is missing\n"
            "map.yaml:7:21: -1 is not a core id\n"
            "map.yaml:6:23: factor 0 must be at least 1");
}

TEST(MappingFile, RejectsWhatIsNoList) {
  EXPECT_EQ(message_of("name: Conv"),
            "map.yaml:1:1: expected a list of entries, each with a `name`");
  EXPECT_EQ(message_of(""), "map.yaml:1:1: expected a list of entries, each with a `name`");
  EXPECT_EQ(message_of("[]"), "map.yaml:1:1: expected a list of entries, each with a `name`");
  EXPECT_EQ(message_of("- {name: a, spatial_mapping: {D1: K}}"),
            "map.yaml:1:35: 'D1' must be a list");
  EXPECT_EQ(message_of("- {name: a, intra_core_tiling: OY}"),
            "map.yaml:1:32: 'intra_core_tiling' must be a list");
}

TEST(MappingFile, EntriesAreOfLayersOrTypesAndOverTheirLoops) {
  MappingSubjects subjects;
  subjects.layers = {"conv1", "scores"};
  subjects.types = {"Mine"};
  subjects.loops = {"Q"};
  const auto problems_of = [&](const std::string& text) {
    ProblemList problems;
    check_subjects(parse_mapping(text, "m.yaml"), subjects, MappingUse::layers, problems);
    try {
      problems.throw_if_any();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(problems_of("- {name: default, inter_core_tiling: ['K, 4']}\n"
                        "- {name: conv1, spatial_mapping: {D1: ['Q, 4']}}\n"
                        "- {name: Conv, temporal_ordering: [[OX, 4], ['*', '*']]}\n"
                        "- {name: Mine, layer_dimension_names: [V], intra_core_tiling: ['V, 2']}\n"
                        "- {name: scores, allocation_only: true}\n"),
            "");
  EXPECT_EQ(
      problems_of("- name: default\n"
                  "- name: conv2\n"
                  "- {name: Con, inter_core_tiling: ['Z, 4']}\n"
                  "- {name: Gemm, spatial_mapping: {D1: ['OXX, 2']}}\n"
                  "- {name: Conv, allocation_only: true}\n"
                  "- {name: MatMul, spatial_mapping_hint: {D1: [U]}, "
                  "temporal_ordering: [[V, 2]]}\n"),
      "m.yaml:2:3: there is no layer 'conv2', nor a type of operators (did you mean 'conv1'?)\n"
      "m.yaml:3:3: there is no layer 'Con', nor a type of operators (did you mean 'Conv'?)\n"
      "m.yaml:3:3: no layer has a loop 'Z'\n"
      "m.yaml:4:3: no layer has a loop 'OXX' (did you mean 'OX'?)\n"
      "m.yaml:5:3: there is no layer 'Conv'\n"
      "m.yaml:6:3: no layer has a loop 'U'\n"
      "m.yaml:6:3: no layer has a loop 'V'");
}

/// Every form that occurs in the mapping files that Stream ships, about operators that a network
/// may lack.
const char* const kFormsOfStream = R"(
- name: default
  core_allocation: &id001
  - 0
  - 1
  intra_core_tiling: &id002
  - D, 4
  inter_core_tiling:
    - K, *

- core_allocation: *id001
  intra_core_tiling: *id002
  inter_core_tiling:
  - H, 4
  name: MatMul
- name: Conv
  core_allocation: [0,]
  core_allocation_is_fixed: True
  intra_core_tiling:
    - OY, all
  inter_core_tiling: []
- {name: Pool, core_allocation: [0], intra_core_tiling: []}
- {name: MaxPool, core_allocation: [0, 1]}
- {name: AveragePool, core_allocation: [1]}
- {name: GlobalAveragePool, core_allocation: [1]}
- {name: ConvTranspose, core_allocation: [1]}
- {name: Gemm, core_allocation: [0]}
- {name: Relu, core_allocation: [1]}
- {name: Add, core_allocation: [1], intra_core_tiling: ["D, 8"]}
)";

TEST(MappingFile, EntriesForOperatorsThatANetworkLacksArePassedOver) {
  MappingSubjects subjects;
  subjects.layers = {"conv1"};
  subjects.types = {"Conv"};
  ProblemList problems;
  const WarningScope scope;
  const MappingFile mapping = parse_mapping(kFormsOfStream, "m.yaml");
  check_subjects(mapping, subjects, MappingUse::layers, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_TRUE(scope.warnings().empty());
  ASSERT_NE(mapping.find("a", "MatMul"), nullptr);
  EXPECT_EQ(mapping.find("a", "MatMul")->core_allocation, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(mapping.find("a", "MatMul")->intra_core_tiling.front().factor, 4);

  check_subjects(
      parse_mapping("- name: conv1\n- {name: Tokeniser, core_allocation: [0]}\n", "m.yaml"),
      subjects, MappingUse::layers, problems);
  EXPECT_TRUE(problems.empty());
  ASSERT_EQ(scope.warnings().size(), 1U);
  EXPECT_EQ(scope.warnings().front().to_string(),
            "m.yaml:2:3: entry 'Tokeniser' is ignored: there is no such layer, nor a type of "
            "operators");
}

std::string warnings_of_mapping(const std::string& text, const MappingSubjects& subjects,
                                MappingUse use) {
  const WarningScope scope;
  ProblemList problems;
  check_subjects(parse_mapping(text, "m.yaml"), subjects, use, problems);
  EXPECT_TRUE(problems.empty());
  std::string all;
  for (const InputProblem& warning : scope.warnings())
    all += warning.to_string() + "\n";
  return all;
}

/// An entry for one layer says what that layer does; one for several may suit some better.
TEST(MappingFile, UnrollingsWiderThanTheirLayersAreWarnings) {
  MappingSubjects subjects;
  subjects.add("conv1", "Conv", {{"K", 64}, {"C", 3}});
  subjects.add("conv2", "Conv", {{"K", 64}, {"C", 64}});
  subjects.add("fc", "Gemm", {{"K", 10}, {"C", 64}});
  const auto warnings_of = [&](const std::string& text) {
    return warnings_of_mapping(text, subjects, MappingUse::layers);
  };
  EXPECT_EQ(warnings_of("- {name: Conv, spatial_mapping: {D1: ['K, 64'], D2: ['C, 64']}}"), "");
  EXPECT_EQ(warnings_of("- {name: conv1, spatial_mapping: {D1: ['K, 64'], D2: ['C, 8']}}"),
            "m.yaml:1:3: 'C, 8' on D2 is wider than C of 'conv1' (3): lanes stay idle\n");
  EXPECT_EQ(warnings_of("- {name: Gemm, spatial_mapping: {D1: ['K, 8'], D2: ['K, 2']}}"), "");
  EXPECT_EQ(warnings_of("- {name: Gemm, spatial_mapping: {D1: ['K, 8'], D2: ['K, 4']}}"),
            "m.yaml:1:3: 'K, 4' on D2 is wider than K of 'fc' (10): lanes stay idle\n");
  EXPECT_EQ(warnings_of("- {name: default, spatial_mapping: {D1: ['K, 256']}}"),
            "m.yaml:1:3: 'K, 256' on D1 is wider than K of 'conv1' (64) and 2 more layers: lanes "
            "stay idle\n");
}

TEST(MappingFile, KeysWithoutEffectOnAStepAreOneWarning) {
  MappingSubjects subjects;
  subjects.add("conv1", "Conv", {{"K", 64}, {"C", 3}});
  const auto warnings_of = [&](const std::string& text) {
    return warnings_of_mapping(text, subjects, MappingUse::step);
  };
  EXPECT_EQ(warnings_of("- {name: Conv, core_allocation: [0], inter_core_tiling: ['K, 4'], "
                        "memory_operand_links: {O: O, W: I2, I: I1}}"),
            "");
  EXPECT_EQ(warnings_of("- name: default\n- {name: Conv, spatial_mapping: {D1: ['K, 4096']}, "
                        "temporal_ordering: [[C, 3]]}\n"),
            "m.yaml:2:3: spatial_mapping, temporal_ordering of 'Conv' without effect on a step: "
            "unrollings and loop orders are searched within the core file's dataflows\n");
  EXPECT_EQ(warnings_of("- {name: default, memory_operand_links: {O: O, W: I1, I: I2}}\n"
                        "- {name: Conv, spatial_mapping_hint: {D1: [K]}}\n"),
            "m.yaml:1:3: memory_operand_links of 'default' and keys of 1 more without effect on "
            "a step: unrollings and loop orders are searched within the core file's dataflows\n");
}

} // namespace
} // namespace monet
