#include "cli/run_monet.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

std::vector<std::string> arguments(std::vector<std::string> more) {
  std::vector<std::string> all{"core",
                               "--hardware",
                               repository("data/hardware/cores/edge_tpu_pe.yaml"),
                               "--workload",
                               repository("data/workload/resnet18_cifar.onnx"),
                               "--batch",
                               "1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Core, LayersAddUp) {
  const Ran ran = run_monet(arguments({"--json", "-"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  std::int64_t cycles = 0;
  for (const auto& layer : json.at("layers")) {
    cycles += layer.at("latency_cycles").get<std::int64_t>();
    EXPECT_GE(layer.at("latency_cycles"), layer.at("ideal_cycles")) << layer.at("name");
    EXPECT_GT(layer.at("energy_pj").get<double>(), 0);
    EXPECT_LE(layer.at("utilisation").get<double>(), 1);
  }
  EXPECT_EQ(cycles, json.at("latency_cycles").get<std::int64_t>());
  EXPECT_GE(json.at("layers").size(), 21U); // 20 convolutions and the classifier
}

TEST(Core, TheTableListsTheLayersAndTheTotal) {
  const Ran ran = run_monet(arguments({}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.rfind("layer ", 0), 0U);
  EXPECT_NE(ran.out.find("\ntotal "), std::string::npos);
}

TEST(Core, AMappingFileSetsTheUnrolling) {
  const Scratch scratch;
  const std::string mapping = scratch.file(
      "m.yaml",
      "- name: default\n  spatial_mapping:\n    D1:\n      - K, 2\n    D2:\n      - C, 4\n"
      "  memory_operand_links: {O: O, W: I2, I: I1}\n");
  const Ran ran = run_monet(arguments({"--mapping", mapping, "--json", "-"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const auto& layer : nlohmann::json::parse(ran.out).at("layers")) {
    if (layer.at("op_type") != "Conv" || layer.at("dims").value("C", 0) % 4 != 0)
      continue;
    EXPECT_EQ(layer.at("spatial_mapping").at("D1").dump(), "[[\"K\",2.0]]") << layer.at("name");
  }
}

TEST(Core, AMappingFilesProblemsAreLocated) {
  const Scratch scratch;
  const std::string mapping =
      scratch.file("m.yaml", "- name: Conv\n  spatial_mapping:\n    D1:\n      - K, 2\n"
                             "  temporal_ordering:\n    - [OX, 4]\n");
  const Ran ran = run_monet(arguments({"--mapping", mapping}));
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("m.yaml:1:"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("'temporal_ordering' is not available yet"), std::string::npos) << ran.err;
}

} // namespace
} // namespace monet::test
