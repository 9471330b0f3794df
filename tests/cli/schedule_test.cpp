#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

std::vector<std::string> arguments(std::vector<std::string> more) {
  std::vector<std::string> all{"schedule",
                               "--hardware",
                               repository("data/hardware/tpu_like_quad_core.yaml"),
                               "--workload",
                               repository("data/workload/gpt2_nano.onnx"),
                               "--batch",
                               "1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Schedule, WithoutTrainingItIsInference) {
  const Ran ran = run_monet(arguments({"--json", "-"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out); // nothing but JSON on stdout
  EXPECT_EQ(json.at("kind"), "inference");
  EXPECT_EQ(json.at("macs").at("total"), 8388608);
  EXPECT_FALSE(json.contains("inference"));
  EXPECT_EQ(schema_violations(parse_file(repository("docs/result.schema.json")), json),
            std::vector<std::string>{});
}

TEST(Schedule, TrainingComesFromAFile) {
  const Scratch scratch;
  const std::string training = scratch.file("t.yaml", "optimizer: {type: sgd}\n");
  const Ran ran = run_monet(arguments(
      {"--training", training, "--mode", "layer-by-layer", "--json", scratch / "r.json"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.rfind("gpt2_nano on tpu_like_quad_core\n", 0), 0U) << ran.out;
  const auto json = parse_file(scratch / "r.json");
  EXPECT_EQ(json.at("kind"), "training");
  EXPECT_EQ(json.at("memory").at("optimizer_state_bytes"), 0); // plain SGD keeps none
  EXPECT_EQ(json.at("inference").at("kind"), "inference");
  EXPECT_TRUE(json.at("provenance").at("inputs").contains("t.yaml"));
}

// What gradients of products move, by tensor, is all that their operators move.
TEST(Schedule, BytesOfGradientsAddUpToThoseOfTheirLayers) {
  for (const char* gradients : {"separate", "paired"}) {
    SCOPED_TRACE(gradients);
    const Scratch scratch;
    const std::string training = scratch.file(
        "t.yaml", std::string("optimizer: {type: adam}\ngradients: ") + gradients + "\n");
    const Ran ran =
        run_monet({"schedule", "--hardware", repository("data/hardware/edge_tpu.yaml"),
                   "--workload", repository("data/workload/gpt2_nano.onnx"), "--batch", "4",
                   "--mode", "layer-by-layer", "--training", training, "--json", "-"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(schema_violations(parse_file(repository("docs/result.schema.json")), json),
              std::vector<std::string>{});
    std::int64_t layers = 0;
    for (const auto& layer : json.at("layers")) {
      const std::string type = layer.at("op_type");
      if (layer.at("macs") > 0 && type.find("Grad") != std::string::npos)
        layers += layer.at("offchip_bytes").get<std::int64_t>();
    }
    std::int64_t all = 0;
    std::int64_t dy = 0;
    for (const auto& row : json.at("backward")) {
      EXPECT_EQ(row.at("paired"), gradients == std::string("paired")) << row.at("layer");
      for (const char* key :
           {"x_bytes", "w_bytes", "dy_bytes", "dx_bytes", "dw_bytes", "other_bytes"})
        all += row.at(key).get<std::int64_t>();
      dy += row.at("dy_bytes").get<std::int64_t>();
    }
    EXPECT_EQ(all, layers);
    EXPECT_GT(layers, 0);
    EXPECT_GT(dy, 0);
    EXPECT_FALSE(json.at("inference").contains("backward"));
  }
}

// Bits that the copies move: as many in as out, and as many as is stored and not on the device.
TEST(Schedule, WhatIsOffloadedCrossesThePortBothWays) {
  const Scratch scratch;
  const std::string training = scratch.file("t.yaml", "offload: all\n");
  // Where stacks reach over both parts, some are back before others are out.
  const Ran ran = run_monet(arguments({"--training", training, "--mode", "layer-by-layer", "--json",
                                       scratch / "r.json", "--verify"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("\noffloaded activations "), std::string::npos) << ran.out;
  const auto json = parse_file(scratch / "r.json");
  EXPECT_EQ(schema_violations(parse_file(repository("docs/result.schema.json")), json),
            std::vector<std::string>{});
  std::int64_t out = 0;
  std::int64_t in = 0;
  const auto& timeline = json.at("timeline");
  for (const auto& row : timeline.at("transfers")) {
    const auto& layer = json.at("layers").at(row.at(2).get<std::size_t>());
    const std::string tensor = timeline.at("tensors").at(row.at(8).get<std::size_t>());
    if (tensor.ends_with(".offloaded"))
      (layer.at("op_type") == "Offload" ? out : in) += row.at(5).get<std::int64_t>();
  }
  std::int64_t most = 0;
  for (const auto& bytes : timeline.at("memory").at("offloaded_activations_bytes"))
    most = std::max(most, bytes.get<std::int64_t>());
  EXPECT_EQ(out, in);
  EXPECT_EQ(out, 8 * most); // all wait at one moment, between the forward and the backward part
  EXPECT_GT(most, 0);
  for (const auto& layer : json.at("layers")) {
    if (layer.at("op_type") == "Offload" || layer.at("op_type") == "Fetch") {
      EXPECT_GT(layer.at("energy").at("offchip_pj"), 0.0) << layer.at("name");
    }
  }
}

// Columns that do not divide over the array, in a type narrower than the partial sums.
TEST(Schedule, StreamedResultsInHalfPrecisionAreWrittenWhole) {
  const Scratch scratch;
  const std::string training = scratch.file(
      "t.yaml",
      "optimizer: {type: adam}\n"
      "precision: {weights: bf16, activations: bf16, gradients: bf16, accumulate: fp32}\n");
  const Ran ran = run_monet({"schedule", "--hardware", repository("data/hardware/fusemax.yaml"),
                             "--workload", repository("data/workload/gpt2.onnx"), "--batch", "1",
                             "--training", training, "--mode", "layer-by-layer", "--verify"});
  EXPECT_EQ(ran.code, 0) << ran.err;
}

// Sums of 64 bits in registers of 32.
TEST(Schedule, WhatPassesByARegisterFileIsSaid) {
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> all{"schedule",
                                 "--hardware",
                                 repository("data/hardware/edge_tpu.yaml"),
                                 "--workload",
                                 repository("data/workload/resnet18_cifar.onnx"),
                                 "--batch",
                                 "1",
                                 "--mode",
                                 "layer-by-layer"};
    all.insert(all.end(), more.begin(), more.end());
    return run_monet(all);
  };
  const Ran wide = run({"--precision", "{accumulate: fp64}", "--json", "-"});
  ASSERT_EQ(wide.code, 0) << wide.err;
  const auto json = nlohmann::json::parse(wide.out);
  EXPECT_EQ(schema_violations(parse_file(repository("docs/result.schema.json")), json),
            std::vector<std::string>{});
  EXPECT_EQ(json.at("bypassed").dump(),
            R"([{"core":"edge_tpu_pe","element_bits":64,"first":"/conv1/Conv","memory":"rf_sums",)"
            R"("memory_bits":32,"operand":"O","operators":21}])");
  EXPECT_NE(run({"--precision", "{accumulate: fp64}"})
                .out.find("note: elements of 64 bits (O) bypass 'rf_sums' of core 'edge_tpu_pe', "
                          "which holds 32: 21 operators, first '/conv1/Conv'"),
            std::string::npos);
  EXPECT_EQ(run({}).out.find("note:"), std::string::npos);
}

// A bias beside the weights on an array whose registers hold one element.
TEST(Schedule, NetworksWithBiasesTrainOnSmallRegisters) {
  for (const char* network : {"mobilenet_v2", "resnet18_cifar"}) {
    const Ran ran =
        run_monet({"schedule", "--hardware", repository("data/hardware/fusemax.yaml"), "--workload",
                   repository("data/workload/" + std::string(network) + ".onnx"), "--batch", "1",
                   "--training", repository("data/training/adam.yaml"), "--mode", "layer-by-layer",
                   "--verify"});
    EXPECT_EQ(ran.code, 0) << ran.err;
  }
}

TEST(Schedule, VerifyChecksEveryStage) {
  EXPECT_EQ(run_monet(arguments({"--verify"})).code, 0);
}

} // namespace
} // namespace monet::test
