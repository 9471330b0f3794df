// monet cluster: what it writes, and what it refuses.
#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"
#include "report/trace_rules.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

class ClusterCommand : public ::testing::Test {
protected:
  /// A small transformer on a DGX A100; `change` takes the place of the key that it begins with.
  std::string experiment(const std::string& change = "") const {
    std::map<std::string, std::string> keys{
        {"cluster", repository("data/cluster/dgx_a100.yaml")},
        {"workload",
         "{transformer: {layers: 4, hidden: 512, heads: 8, sequence: 256, vocabulary: 1024}}"},
        {"training", repository("data/training/bf16_mixed.yaml")},
        {"parallel", "{data: 2, tensor: 2, pipeline: 2, micro_batch: 1, global_batch: 8}"}};
    if (!change.empty())
      keys[change.substr(0, change.find(':'))] = change.substr(change.find(':') + 2);
    std::string text;
    for (const auto& [key, value] : keys)
      text += fmt::format("{}: {}\n", key, value);
    return scratch_.file("e.yaml", text);
  }
  Ran cluster(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all{"cluster"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_monet(all, scratch_.path());
  }
  /// `monet report` makes the page of a result again.
  void expect_page_again(const std::string& result, const std::string& page) const {
    const Ran ran = run_monet({"report", scratch_ / result, "-o", scratch_ / "again.html"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(read_file(scratch_ / "again.html"), read_file(scratch_ / page));
  }
  void expect_whole_result(const std::string& folder) const {
    const auto json = parse_file(scratch_ / (folder + "/cluster.json"));
    EXPECT_EQ(schema_violations(parse_file(repository("docs/cluster.schema.json")), json),
              std::vector<std::string>{});
    EXPECT_EQ(trace_violations(parse_file(scratch_ / (folder + "/trace.json"))),
              std::vector<std::string>{});
    expect_page_again(folder + "/cluster.json", folder + "/report.html");
    EXPECT_GT(json.at("time_ns"), 0);
    for (const auto& stage : json.at("stages")) {
      std::int64_t sum = 0;
      for (const auto& [key, part] : stage.at("share").items())
        sum += part.get<std::int64_t>();
      EXPECT_EQ(sum, json.at("time_ns"));
      EXPECT_LE(stage.at("memory").at("total_bytes"), json.at("memory").at("largest_bytes"));
    }
  }

  Scratch scratch_;
};

TEST_F(ClusterCommand, WritesTableJsonTraceAndPage) {
  const Ran ran = cluster({experiment(), "-o", "out"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("\nreport: out/report.html\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("e\n8 devices of DGX A100 ("), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("tokens/s; MFU "), std::string::npos) << ran.out;
  expect_whole_result("out");
}

TEST_F(ClusterCommand, ExamplesRun) {
  for (const char* name : {"gpt3_175b", "resnet18_edge"}) {
    const Ran ran =
        cluster({repository(fmt::format("examples/cluster/{}.yaml", name)), "-o", name});
    EXPECT_EQ(ran.code, 0) << name << "\n" << ran.err;
    expect_whole_result(name);
  }
}

TEST_F(ClusterCommand, TheSameBytesAgain) {
  const Ran first = cluster({experiment(), "--json", "-"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(nlohmann::json::parse(first.out).at("kind"), "cluster");
  EXPECT_EQ(cluster({experiment(), "--json", "-"}).out, first.out);
}

TEST_F(ClusterCommand, SetReplacesKeysOfParallel) {
  const Ran ran =
      cluster({experiment(), "--set", "tensor=1", "--set", "data=4", "--json", "c.json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = parse_file(scratch_ / "c.json");
  EXPECT_EQ(json.at("strategy").at("tensor"), 1);
  EXPECT_EQ(json.at("strategy").at("data"), 4);
  EXPECT_EQ(json.at("strategy").at("pipeline"), 2);
  EXPECT_EQ(json.at("provenance").at("options").at("set data"), "4");
}

TEST_F(ClusterCommand, WrongCommandLinesExitWith2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{}, "experiment is required"},
      {{experiment(), "--set", "tensor"}, "--set: 'tensor' is not of the form key=value"},
      {{experiment(), "--set", "=2"}, "--set: '=2' is not of the form key=value"},
      {{experiment(), "--set", "zero=1", "--set", "zero=2"}, "--set: 'zero' is given twice"}};
  for (const auto& [arguments, message] : cases) {
    const Ran ran = cluster(arguments);
    EXPECT_EQ(ran.code, 2) << message;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  }
}

TEST_F(ClusterCommand, WrongFilesExitWith3AndSayWhere) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"paralel: {data: 8}", "e.yaml:2:1: unknown key 'paralel'"},
      {"cluster: none.yaml", "none.yaml' cannot be opened"},
      {"cluster: {devices: 8}", "e.yaml:1:10: key 'file' is missing"},
      {"cluster: {file: a.yaml, devices: 0}", "e.yaml:1:34: 'devices' must be 1 to "},
      {"cluster: {file: a.yaml, device: 2}",
       "e.yaml:1:25: unknown key 'device' (did you mean 'devices'?)"},
      {"workload: {}", "e.yaml:4:11: 'workload' names neither a 'network' nor a 'transformer'"},
      {"workload: {network: none.onnx}", "none.onnx"},
      {"workload: {network: none.onnx, batch: 4}",
       "e.yaml:4:32: 'batch' follows from micro_batch and data of 'parallel'"},
      {"workload: {transformer: {layers: 2}}", "'hidden' is missing"},
      {"workload: {transformer: {layers: 2}, network: n.onnx}", "there is a 'transformer' already"},
      {"training: {micro_batches: 2}", "e.yaml:3:11: 'micro_batches' follows from 'parallel'"},
      {"training: {los: mse}", "unknown key 'los' (did you mean 'loss'?)"},
      {fmt::format("cluster: {{attention_share: 2, file: {}}}",
                   repository("data/cluster/dgx_a100.yaml")),
       "e.yaml:1:28: 'attention_share' must be 1e-06 to 1"},
      {"parallel: {offload: some}",
       "e.yaml:2:21: 'some' is not one of none, states, activations, both"},
      {fmt::format("cluster: {{host_ns_per_kernel: 9, file: {}}}",
                   repository("data/cluster/edge_tpu_x4.yaml")),
       "e.yaml:1:31: 'host_ns_per_kernel' is of devices that are kernel tables"},
      {"parallel: {tensors: 2}", "unknown key 'tensors' (did you mean 'tensor'?)"}};
  for (const auto& [change, message] : cases) {
    const Ran ran = cluster({experiment(change), "-o", "out"});
    EXPECT_EQ(ran.code, 3) << change << "\n" << ran.out;
    EXPECT_NE(ran.err.find(message), std::string::npos) << change << "\n" << ran.err;
    EXPECT_FALSE(fs::exists(scratch_ / "out")) << change;
  }
  const Ran ran = cluster({experiment(), "--set", "tensr=2"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("--set tensr=2: unknown key 'tensr'"), std::string::npos) << ran.err;
}

TEST_F(ClusterCommand, WhatDoesNotFitExitsWith4) {
  Ran ran = cluster({experiment(), "--set", "data=3", "-o", "out"});
  EXPECT_EQ(ran.code, 4) << ran.err;
  EXPECT_EQ(ran.err.rfind("infeasible: ", 0), 0U) << ran.err;
  EXPECT_NE(ran.err.find("12"), std::string::npos) << ran.err; // 3 * 2 * 2 devices
  EXPECT_FALSE(fs::exists(scratch_ / "out"));
  ran = cluster({experiment(
      fmt::format("cluster: {{file: {}, devices: 9}}", repository("data/cluster/dgx_a100.yaml")))});
  EXPECT_EQ(ran.code, 4) << ran.err;
  ran = cluster({repository("examples/cluster/resnet18_edge.yaml"), "--set", "offload=states"});
  EXPECT_EQ(ran.code, 4) << ran.err;
  EXPECT_NE(ran.err.find("offload is states, and neither the cluster nor its device has a "
                         "host_link"),
            std::string::npos)
      << ran.err;
}

/// 64 samples of 2048 tokens at a time, every activation kept.
TEST_F(ClusterCommand, MemoryThatOverflowsExitsWith4UnlessAllowed) {
  const std::string file =
      experiment("workload: {transformer: {layers: 48, hidden: 8192, heads: 64, sequence: 2048, "
                 "vocabulary: 51200}}");
  const std::vector<std::string> arguments{
      file, "--set", "micro_batch=16", "--set", "global_batch=128", "-o", "out"};
  Ran ran = cluster(arguments);
  EXPECT_EQ(ran.code, 4) << ran.out;
  EXPECT_EQ(ran.err.rfind("infeasible: a device of stage ", 0), 0U) << ran.err;
  EXPECT_NE(ran.err.find("stored_activations "), std::string::npos) << ran.err;
  EXPECT_FALSE(fs::exists(scratch_ / "out"));
  std::vector<std::string> allowed = arguments;
  allowed.emplace_back("--allow-overflow");
  ran = cluster(allowed);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find(": does not fit"), std::string::npos) << ran.out;
  EXPECT_EQ(parse_file(scratch_ / "out/cluster.json").at("memory").at("fits"), false);
}

TEST_F(ClusterCommand, PlansAndModelsThePlan) {
  const std::string file = experiment("parallel: {global_batch: 8, context: 1, zero: [0, 2]}");
  const Ran plan = run_monet({"optimise", "parallelism", file, "--objective", "front", "--jobs",
                              "2", "-o", "plan", "--json", "-"},
                             scratch_.path());
  ASSERT_EQ(plan.code, 0) << plan.err;
  const auto json = nlohmann::json::parse(plan.out);
  EXPECT_EQ(schema_violations(parse_file(repository("docs/optimise.schema.json")), json),
            std::vector<std::string>{});
  EXPECT_EQ(json.at("gap"), 0);
  EXPECT_GT(json.at("front").size(), 1U);
  EXPECT_EQ(parse_file(scratch_ / "plan/parallelism.json").at("best_strategy"),
            json.at("best_strategy"));
  expect_page_again("plan/parallelism.json", "plan/report.html");
  expect_whole_result("plan/best");
  // The printed command models what was planned.
  std::vector<std::string> words{file};
  std::istringstream settings(json.at("repeat").get<std::string>().substr(
      json.at("repeat").get<std::string>().find(" --set")));
  for (std::string word; settings >> word;)
    words.push_back(word);
  words.insert(words.end(), {"--json", "again.json"});
  const Ran again = cluster(words);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(parse_file(scratch_ / "again.json").at("time_ns"),
            json.at("best_strategy").at("time_ns"));
}

TEST_F(ClusterCommand, PlansThatCannotBeMadeSayWhy) {
  const auto plan = [&](const std::string& parallel, const std::string& objective = "latency") {
    return run_monet(
        {"optimise", "parallelism", experiment("parallel: " + parallel), "--objective", objective},
        scratch_.path());
  };
  const Ran nothing = plan("{tensor: 3, global_batch: 8}");
  EXPECT_EQ(nothing.code, 4);
  EXPECT_NE(nothing.err.find("no strategy divides a step of 8 samples over 8 devices"),
            std::string::npos)
      << nothing.err;
  EXPECT_EQ(plan("{tensor: [], global_batch: 8}").code, 3);
  EXPECT_EQ(plan("{tensor: 2}").code, 3);
  const Ran energy = plan("{global_batch: 8, context: 1}", "energy");
  EXPECT_EQ(energy.code, 4);
  EXPECT_NE(energy.err.find("energy is known for chips only"), std::string::npos) << energy.err;
}

TEST_F(ClusterCommand, ReportRefusesHalfAResult) {
  scratch_.file("c.json", R"({"schema_version": 1, "kind": "cluster", "name": "n"})");
  const Ran ran = run_monet({"report", scratch_ / "c.json", "-o", scratch_ / "r.html"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("'timeline' is not an object"), std::string::npos) << ran.err;
}

} // namespace
} // namespace monet::test
