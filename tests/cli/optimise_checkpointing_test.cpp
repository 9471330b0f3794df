#include "cli/run_monet.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace monet::test {
namespace {

using Json = nlohmann::json;

std::vector<std::string> checkpointing(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "optimise",   "checkpointing",
      "--hardware", repository("data/hardware/tpu_like_quad_core.yaml"),
      "--workload", repository("data/workload/gpt2_nano.onnx"),
      "--batch",    "1",
      "--training", repository("data/training/sgd.yaml")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Json without_seconds(Json result) {
  result.erase("seconds");
  if (result.contains("genetic")) {
    result["genetic"].erase("genetic_seconds");
    result["genetic"].erase("exact_seconds");
  }
  return result;
}

TEST(OptimiseCheckpointing, ABudgetGivesAStepWithItsBound) {
  const Scratch scratch;
  const Ran ran = run_monet(checkpointing({"--memory", "stored", "--budget", "50%", "--mode",
                                           "fused", "-o", "step.onnx", "--json", "found.json"}),
                            scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json result = parse_file(scratch / "found.json");
  EXPECT_LT(result["start"], result["best"]); // what runs again costs something
  EXPECT_EQ(result["worse_than_start"], true);
  EXPECT_EQ(ran.out.rfind("worse than the start of the search: latency ", 0), 0U) << ran.out;
  EXPECT_EQ(result["kind"], "checkpointing");
  EXPECT_EQ(result["budget_bytes"], result["unconstrained_bytes"].get<std::int64_t>() / 2);
  EXPECT_LE(result["stored_bytes"], result["budget_bytes"]);
  EXPECT_LE(result["bound"].get<double>(), result["best"].get<double>());
  EXPECT_LT(result["gap"].get<double>(), 0.01);
  EXPECT_GT(result["overhead"].get<double>(), 0);
  EXPECT_FALSE(result["recomputed"].empty());
  ASSERT_EQ(result["memory"].size(), 2U);
  EXPECT_GT(result["memory"][1]["at"].size(), result["memory"][0]["at"].size());
  EXPECT_EQ(result["compared"].size(), 4U); // layer by layer and fused, before and after
  EXPECT_GT(result["compared"][1]["latency_cycles"].get<double>(),
            result["compared"][0]["latency_cycles"].get<double>());
  const Ran again =
      run_monet({"graph", "step.onnx", "--inference", "--execute", "--json", "-"}, scratch.path());
  ASSERT_EQ(again.code, 0) << again.err;
  const Json graph = Json::parse(again.out);
  EXPECT_EQ(graph["memory"]["peak_bytes"], result["peak_bytes"]);
}

TEST(OptimiseCheckpointing, ASweepIsMonotoneAndTheSameOnTwoThreads) {
  const std::vector<std::string> sweep{"--sweep", "--steps", "2",        "--objective", "energy",
                                       "--json",  "-",       "--memory", "peak",        "--jobs"};
  std::vector<std::string> one = sweep;
  one.push_back("1");
  const Ran ran = run_monet(checkpointing(one));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json result = Json::parse(ran.out);
  double best = 0;
  double bound = 0;
  for (const Json& row : result["budgets"]) {
    EXPECT_GE(row["bound"].get<double>(), bound);
    bound = row["bound"].get<double>();
    if (row["best"].is_null())
      continue;
    EXPECT_GE(row["best"].get<double>(), best);
    EXPECT_LE(row["peak_bytes"], row["budget_bytes"]);
    best = row["best"].get<double>();
  }
  std::vector<std::string> two = sweep;
  two.push_back("2");
  EXPECT_EQ(without_seconds(result),
            without_seconds(Json::parse(run_monet(checkpointing(two)).out)));
}

TEST(OptimiseCheckpointing, ComparesWithTheGeneticAlgorithm) {
  const Ran ran =
      run_monet(checkpointing({"--method", "genetic", "--memory", "stored", "--population", "8",
                               "--generations", "3", "--budget", "90%", "--json", "-"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json result = Json::parse(ran.out);
  ASSERT_FALSE(result["genetic"]["points"].empty());
  for (const Json& point : result["genetic"]["points"]) {
    for (const char* key : {"latency_cycles", "energy_pj", "stored_bytes"})
      EXPECT_LE(point["exact"][key].get<double>(), point[key].get<double>());
  }
}

TEST(OptimiseCheckpointing, PinsAreRespected) {
  const std::vector<std::string> half{"--memory", "stored", "--budget", "50%", "--json", "-"};
  std::vector<std::string> pinned = half;
  pinned.insert(pinned.end(), {"--keep", "*Softmax*", "--recompute", "*act*"});
  const Ran ran = run_monet(checkpointing(pinned));
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const Json& row : Json::parse(ran.out)["recomputed"])
    EXPECT_EQ(row["operator"].get<std::string>().find("Softmax"), std::string::npos);
}

TEST(OptimiseCheckpointing, FailuresHaveTheirExitCodes) {
  const Ran less = run_monet(checkpointing({"--budget", "1 KiB"}));
  EXPECT_EQ(less.code, 4);
  EXPECT_NE(less.err.find("are the least that are proven"), std::string::npos) << less.err;
  const Scratch scratch;
  const std::string network = repository("data/workload/gpt2_nano.onnx");
  const std::string chip = repository("data/hardware/tpu_like_quad_core.yaml");
  const std::string inference = scratch.file("e.yaml", "workload: {network: " + network +
                                                           ", batch: 1}\nhardware: " + chip + "\n");
  const Ran of_file = run_monet({"optimise", "checkpointing", inference, "--budget", "80%"});
  EXPECT_EQ(of_file.code, 3);
  EXPECT_EQ(of_file.err, "error: " + inference +
                             ": inference stores no activations to recompute (add 'training:')\n");
  const Ran of_options = run_monet({"optimise", "checkpointing", "--hardware", chip, "--workload",
                                    network, "--batch", "1", "--budget", "80%"});
  EXPECT_EQ(of_options.code, 3);
  EXPECT_EQ(of_options.err,
            "error: " + network +
                ": inference stores no activations to recompute (add --training)\n");
  EXPECT_EQ(run_monet(checkpointing({"--budget", "half"})).code, 2);
  EXPECT_EQ(run_monet(checkpointing({"--budget", "-5%"})).code, 2);
  EXPECT_EQ(run_monet(checkpointing({"--sweep", "--budget", "50%"})).code, 2);
  EXPECT_EQ(run_monet(checkpointing({"--keep", "nothing like it"})).code, 3);
}

} // namespace
} // namespace monet::test
