// monet optimise allocation, as users run it.
#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

std::vector<std::string> search(const std::vector<std::string>& more,
                                const std::string& evaluations = "60") {
  std::vector<std::string> arguments{
      "optimise",      "allocation",
      "--hardware",    repository("data/hardware/tpu_like_quad_core.yaml"),
      "--workload",    repository("data/workload/resnet18_cifar.onnx"),
      "--batch",       "1",
      "--evaluations", evaluations,
      "--population",  "10"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(OptimiseAllocation, MappingOutIsScheduledToTheSameCycle) {
  const Scratch scratch;
  const Ran found = run_monet(
      search({"--mode", "fused", "--mapping-out", scratch / "best.yaml", "--stacks-out",
              scratch / "stacks.yaml", "--random", "20", "--json", scratch / "found.json"}));
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = parse_file(scratch / "found.json");
  EXPECT_EQ(json["best"], json["latency_cycles"]);
  EXPECT_LE(json["bound"], json["best"]);
  EXPECT_LE(json["best"], json["compared"][0]["latency_cycles"]); // automatic
  EXPECT_LE(json["best"], json["compared"][2]["latency_cycles"]); // random
  EXPECT_EQ(json["evaluations"], 60);

  const Ran scheduled =
      run_monet({"schedule", "--hardware", repository("data/hardware/tpu_like_quad_core.yaml"),
                 "--workload", repository("data/workload/resnet18_cifar.onnx"), "--batch", "1",
                 "--mode", "fused", "--mapping", scratch / "best.yaml", "--stacks",
                 scratch / "stacks.yaml", "--json", scratch / "scheduled.json"});
  ASSERT_EQ(scheduled.code, 0) << scheduled.err;
  const nlohmann::json again = parse_file(scratch / "scheduled.json");
  for (const char* key : {"latency_cycles", "energy_pj", "peak_memory_bytes"})
    EXPECT_EQ(again[key], json[key]) << key;
}

/// Layer by layer, fused, and on some of the cores alone, by several objectives.
TEST(OptimiseAllocation, MappingOutRepeatsEveryStep) {
  struct Step {
    std::string network;
    std::string hardware;
    std::vector<std::string> options;
  };
  const std::string training = repository("data/training/adam.yaml");
  const std::vector<Step> steps{
      {small_network("gated_mlp"), "tpu_like_quad_core", {"--training", training}},
      {small_network("gated_mlp"), "edge_tpu", {"--mode", "layer-by-layer"}},
      {repository("data/workload/gpt2_nano.onnx"), "tpu_like_quad_core", {"--batch", "1"}},
      {repository("data/workload/ds_cnn.onnx"), "npu_small", {"--batch", "1"}}};
  for (const Step& step : steps) {
    for (const char* objective : {"latency", "energy"}) {
      SCOPED_TRACE(step.network + " on " + step.hardware + " by " + objective);
      const Scratch scratch;
      std::vector<std::string> common{
          "--hardware",  repository("data/hardware/" + step.hardware + ".yaml"),
          "--workload",  step.network,
          "--objective", objective};
      common.insert(common.end(), step.options.begin(), step.options.end());
      std::vector<std::string> find{"optimise",      "allocation",
                                    "--evaluations", "20",
                                    "--mapping-out", scratch / "mapping.yaml",
                                    "--stacks-out",  scratch / "stacks.yaml",
                                    "--json",        scratch / "found.json"};
      find.insert(find.end(), common.begin(), common.end());
      ASSERT_EQ(run_monet(find).code, 0);
      std::vector<std::string> again{"schedule", "--mapping", scratch / "mapping.yaml", "--json",
                                     scratch / "again.json"};
      again.insert(again.end(), common.begin(), common.end());
      if (read_file(scratch / "stacks.yaml") != "stacks: []\n")
        again.insert(again.end(), {"--mode", "fused", "--stacks", scratch / "stacks.yaml"});
      const Ran ran = run_monet(again);
      ASSERT_EQ(ran.code, 0) << ran.err;
      const nlohmann::json found = parse_file(scratch / "found.json");
      const nlohmann::json scheduled = parse_file(scratch / "again.json");
      for (const char* key : {"latency_cycles", "energy_pj", "peak_memory_bytes"})
        EXPECT_EQ(scheduled[key], found[key]) << key;
    }
  }
}

TEST(OptimiseAllocation, FrontsAreTheSameOnOneThreadAndOnTwo) {
  const Scratch scratch;
  std::vector<nlohmann::json> found;
  for (const char* jobs : {"1", "2"}) {
    const Ran ran = run_monet(search(
        {"--objective", "front", "--seed", "7", "--jobs", jobs, "--json", scratch / "found.json"}));
    ASSERT_EQ(ran.code, 0) << ran.err;
    found.push_back(parse_file(scratch / "found.json"));
    found.back().erase("seconds");
  }
  EXPECT_EQ(found[0].dump(), found[1].dump());
  EXPECT_GT(found[0]["front"].size(), 1U);
}

TEST(OptimiseAllocation, ATimeLimitLeavesAResultWithItsGap) {
  nlohmann::json json;
  for (double seconds = 0.4; !json["bound"].is_number(); seconds *= 2) {
    const Ran ran = run_limited(search({"--json", "-"}, "1000000"), seconds);
    ASSERT_EQ(ran.code, 0) << ran.err;
    json = nlohmann::json::parse(ran.out);
  }
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_GE(json["gap"], 0);
  EXPECT_GT(json["bound"], 0);
}

} // namespace
} // namespace monet::test
