// monet compare: differences add up, layers match, conditions, and what it refuses.
#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

using Json = nlohmann::json;

const std::string kTraining = repository("data/training/sgd.yaml");

/// Writes the result of a step of resnet8 as NAME.json.
void model(const Scratch& scratch, const std::string& name,
           const std::vector<std::string>& options) {
  std::vector<std::string> command{"schedule",
                                   "--hardware",
                                   repository("data/hardware/npu_small.yaml"),
                                   "--workload",
                                   repository("data/workload/resnet8_16.onnx"),
                                   "--mode",
                                   "layer-by-layer",
                                   "--json",
                                   name + ".json"};
  command.insert(command.end(), options.begin(), options.end());
  const Ran ran = run_monet(command, scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
}

/// Sum of the values of one result over rows.
std::int64_t sum_of(const Json& rows, const char* key, std::size_t result) {
  std::int64_t sum = 0;
  for (const Json& row : rows)
    sum += row.at(key)[result].is_null() ? 0 : row.at(key)[result].get<std::int64_t>();
  return sum;
}

TEST(Compare, DifferencesAddUpToThatOfTheLatency) {
  const Scratch scratch;
  model(scratch, "a", {"--batch", "1", "--training", kTraining});
  model(scratch, "b", {"--batch", "2", "--training", kTraining});
  model(scratch, "c", {"--batch", "1"});
  const Ran ran =
      run_monet({"compare", "a.json", "b.json", "c.json", "--json", "-"}, scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json found = Json::parse(ran.out);
  EXPECT_EQ(
      schema_violations(Json::parse(read_file(repository("docs/comparison.schema.json"))), found),
      std::vector<std::string>{});
  const Json& latency = found.at("totals")[0];
  ASSERT_EQ(latency.at("name"), "latency");
  for (std::size_t i = 0; i < 3; ++i) {
    const Json read = Json::parse(read_file(scratch / (std::string{"abc"[i]} + ".json")));
    EXPECT_EQ(latency.at("values")[i], read.at("latency_cycles"));
    EXPECT_EQ(sum_of(found.at("causes"), "values", i), read.at("latency_cycles"));
    EXPECT_EQ(sum_of(found.at("phases"), "critical_path_cycles", i), read.at("latency_cycles"));
    EXPECT_EQ(sum_of(found.at("layers"), "critical_path_cycles", i), read.at("latency_cycles"));
  }
  // Inference has the forward layers alone.
  for (const Json& layer : found.at("layers"))
    EXPECT_EQ(layer.at("critical_path_cycles")[2].is_null(), layer.at("phase") != "forward");
  EXPECT_EQ(found.at("settings").dump().find("batch") != std::string::npos, true);
}

TEST(Compare, EqualResultsDifferInNothing) {
  const Scratch scratch;
  model(scratch, "a", {"--batch", "1", "--training", kTraining});
  const Ran ran = run_monet(
      {"compare", "a.json", "a.json", "--fail-if", "latency > 1x", "--csv", "c.csv", "-o", "out"},
      scratch.path());
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("all layers have equal cycles"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("no setting differs"), std::string::npos) << ran.out;
  EXPECT_EQ(
      read_file(scratch / "c.csv").find("what,name,unit,a.json,a.json\ntotal,latency,cycles,"), 0U);
  EXPECT_NE(read_file(scratch / "out/compare.html").find("\"kind\":\"comparison\""),
            std::string::npos);
  const Ran again = run_monet({"report", "out/compare.json", "-o", "again.html"}, scratch.path());
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST(Compare, ConditionsDecideTheExitCode) {
  const Scratch scratch;
  model(scratch, "a", {"--batch", "1", "--training", kTraining});
  model(scratch, "b", {"--batch", "2", "--training", kTraining});
  const auto code = [&](const std::string& condition) {
    return run_monet({"compare", "a.json", "b.json", "--fail-if", condition}, scratch.path()).code;
  };
  EXPECT_EQ(code("latency > 1.01x"), 1);
  EXPECT_EQ(code("latency < 1.01x"), 0);
  EXPECT_EQ(code("macs > 2x"), 0); // twice the batch: exactly twice the MACs
  EXPECT_EQ(code("macs>1.999x"), 1);
  EXPECT_EQ(code("memory > 1"), 1);
  EXPECT_EQ(code("memory > 1e15"), 0);
  EXPECT_EQ(code("speed > 1x"), 2);
  EXPECT_EQ(code("latency 1x"), 2);
}

TEST(Compare, RefusesWhatIsNoResult) {
  const Scratch scratch;
  scratch.file("empty.json", "{}");
  scratch.file("cut.json", R"({"kind": "training", "layers": []})");
  scratch.file("old.json", R"({"kind": "training", "layers": [{"name": "a"}]})");
  const auto refused = [&](const std::string& file, const std::string& message) {
    const Ran ran = run_monet({"compare", file, file}, scratch.path());
    EXPECT_EQ(ran.code, 3) << ran.err;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  };
  refused("empty.json", "empty.json: is not a result of one step");
  refused("cut.json", "is not a complete result");
  refused("old.json", "old.json: is of an older version");
  refused(".", "has neither result.json nor cluster.json");
  EXPECT_EQ(run_monet({"compare", "empty.json"}, scratch.path()).code, 2);
}

TEST(Compare, ClusterStepsByTheTimeOfTheBusiestStage) {
  const Scratch scratch;
  for (const char* recompute : {"none", "full"}) {
    const Ran ran = run_monet({"cluster", repository("examples/cluster/gpt3_175b.yaml"), "--set",
                               std::string("recompute=") + recompute, "--allow-overflow", "--json",
                               std::string(recompute) + ".json"},
                              scratch.path());
    ASSERT_EQ(ran.code, 0) << ran.err;
  }
  const Ran ran = run_monet({"compare", "none.json", "full.json", "--json", "-"}, scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json found = Json::parse(ran.out);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(sum_of(found.at("causes"), "values", i), found.at("totals")[0].at("values")[i]);
  EXPECT_EQ(found.at("settings")[0].at("key"), "set recompute");
}

} // namespace
} // namespace monet::test
