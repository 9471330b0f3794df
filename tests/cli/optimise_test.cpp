// monet optimise: what its searches have in common, and the joint search.
#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <sstream>

namespace monet::test {
namespace {

using Json = nlohmann::json;

std::vector<std::string> search_network(const std::string& kind, const std::string& network,
                                        std::vector<std::string> more) {
  std::vector<std::string> all{
      "optimise",   kind,    "--hardware", repository("data/hardware/tpu_like_quad_core.yaml"),
      "--workload", network, "--training", repository("data/training/adam.yaml"),
      "--json",     "-"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> search(const std::string& kind, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--batch", "1"});
  if (kind == "allocation" || kind == "checkpointing") // or choosing what is fused comes first
    more.insert(more.end(), {"--mode", "layer-by-layer"});
  return search_network(kind, repository("data/workload/gpt2_nano.onnx"), more);
}

/// A network of three products, which the joint search is soon done with.
const std::string kSmallNetwork = "gated_mlp";

std::vector<std::string> search_jointly(const std::vector<std::string>& more) {
  return search_network("joint", small_network(kSmallNetwork), more);
}

/// The result without what differs between runs.
Json result_of(const Ran& ran) {
  Json json = Json::parse(ran.out);
  EXPECT_EQ(schema_violations(parse_file(repository("docs/optimise.schema.json")), json),
            std::vector<std::string>{});
  json.erase("seconds");
  return json;
}

TEST(OptimiseJoint, CornersAreNoWorseTogetherThanAlone) {
  const Ran ran =
      run_monet(search_jointly({"--budget", "95%", "--jobs", "2", "--verify", "--evaluations", "10",
                                "--levels", "2", "--rounds", "1"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = result_of(ran);
  const Json& corners = json.at("compared");
  ASSERT_EQ(corners.size(), 4U);
  EXPECT_EQ(corners[0].at("name"), "base");
  EXPECT_EQ(corners[3].at("name"), "both");
  EXPECT_TRUE(corners[3].at("within_budget"));
  EXPECT_EQ(json.at("best"), corners[3].at("latency_cycles"));
  EXPECT_LE(json.at("bound"), json.at("best"));
  EXPECT_LE(json.at("peak_bytes"), json.at("budget_bytes"));
  for (const Json& corner : corners) {
    if (corner.at("within_budget")) {
      EXPECT_LE(corners[3].at("latency_cycles"), corner.at("latency_cycles"));
    }
  }
  const auto chosen = [](const Json& point) { return point.at("chosen").get<bool>(); };
  const Json& front = json.at("front");
  EXPECT_EQ(std::count_if(front.begin(), front.end(), chosen), 1);
}

TEST(OptimiseJoint, ItsPlanIsTheSameOnTwoThreadsAndRepeatedByTheScheduleCommand) {
  for (const char* objective : {"latency", "energy"}) {
    const Scratch scratch;
    std::vector<std::string> options{"--budget",
                                     "95%",
                                     "--plan-out",
                                     scratch / "plan",
                                     "--objective",
                                     objective,
                                     "--levels",
                                     "1",
                                     "--rounds",
                                     "1",
                                     "--core-evaluations",
                                     "15",
                                     "--group-evaluations",
                                     "10"};
    const Ran ran = run_monet(search_jointly(options));
    ASSERT_EQ(ran.code, 0) << ran.err;
    const Json json = result_of(ran);
    if (objective == std::string_view("energy")) {
      options.insert(options.end(), {"--jobs", "2"});
      EXPECT_EQ(result_of(run_monet(search_jointly(options))), json);
    }
    std::istringstream words(json.at("repeat").get<std::string>());
    std::vector<std::string> command{std::istream_iterator<std::string>(words), {}};
    ASSERT_EQ(command.front(), "monet");
    command.erase(command.begin());
    const std::string out = scratch / "repeated.json";
    command.insert(command.end(), {"--json", out});
    const Ran again = run_monet(command);
    ASSERT_EQ(again.code, 0) << again.err;
    const Json step = parse_file(out);
    const Json& both = json.at("compared").back();
    EXPECT_EQ(step.at("latency_cycles"), both.at("latency_cycles"));
    EXPECT_EQ(step.at("energy_pj"), both.at("energy_pj"));
    EXPECT_EQ(step.at("peak_memory_bytes"), both.at("peak_memory_bytes"));
  }
}

TEST(OptimiseJoint, ABudgetThatNothingMeetsIsInfeasible) {
  const Ran ran = run_monet(search_jointly({"--budget", "1KiB", "--levels", "1"}));
  EXPECT_EQ(ran.code, 4) << ran.err;
  EXPECT_NE(ran.err.find("infeasible: no plan of the step fits into 1.00 KiB (1,024 bytes)"),
            std::string::npos)
      << ran.err;
  EXPECT_EQ(ran.out, "");
}

TEST(OptimiseJoint, BadInputIsSaidWithItsPlace) {
  const Scratch scratch;
  const std::string file = scratch.file("training.yaml", "loss: cross_entropi\n");
  const Ran ran = run_monet({"optimise", "joint", "--hardware",
                             repository("data/hardware/tpu_like_quad_core.yaml"), "--workload",
                             repository("data/workload/gpt2_nano.onnx"), "--training", file});
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("training.yaml:1:7"), std::string::npos) << ran.err;
}

class EverySearch : public ::testing::TestWithParam<std::string> {
protected:
  /// Cycles of the step as `monet schedule` runs it with the search's options.
  static std::int64_t scheduled(const std::string& kind) {
    std::vector<std::string> options = search(kind);
    options.erase(options.begin(), options.begin() + 2); // optimise KIND
    options.insert(options.begin(), "schedule");
    const Ran ran = run_monet(options);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(ran.out).at("latency_cycles").get<std::int64_t>();
  }
};

TEST_P(EverySearch, EndedEarlyIsNoWorseThanTheScheduleCommand) {
  if (GetParam() == "checkpointing")
    GTEST_SKIP() << "its costs are those of a model";
  const std::int64_t automatic = scheduled(GetParam());
  const auto check = [&](const Ran& ran) {
    const Json json = result_of(ran);
    EXPECT_LE(json.at("best"), automatic);
    EXPECT_EQ(json.at("start"), automatic);
    EXPECT_FALSE(json.at("worse_than_start"));
  };
  check(run_limited(search(GetParam()), 0.01));
  const Ran ran = run_interrupted_at_work(search(GetParam()), 0.2);
  EXPECT_TRUE(ran.code == 130 || ran.code == 0) << ran.err;
  check(ran);
}

TEST_P(EverySearch, InterruptedGivesAValidResult) {
  for (const double seconds : {0.1, 0.35}) {
    const Ran ran = run_interrupted_at_work(search(GetParam()), seconds);
    if (ran.code == 0)
      continue; // it was faster
    EXPECT_EQ(ran.code, 130) << ran.err;
    const Json json = result_of(ran);
    EXPECT_NE(ran.err.find("interrupted: this is the best so far, gap "), std::string::npos)
        << ran.err;
    EXPECT_TRUE(json.contains("gap"));
  }
}

TEST_P(EverySearch, ATimeLimitEndsItWithTheBestSoFar) {
  const Ran ran = run_limited(search(GetParam(), {}), 0.05);
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Json json = result_of(ran);
  if (json.at("interrupted")) {
    EXPECT_NE(ran.err.find("time limit reached: this is the best so far"), std::string::npos);
  }
}

TEST(OptimiseFusion, MapsEinsumsExactly) {
  if (!has_component("reference"))
    GTEST_SKIP();
  const std::vector<std::string> einsum{"optimise", "fusion", "--model", "einsum", "--json", "-"};
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), einsum.begin(), einsum.end());
    return run_monet(more);
  };
  const Ran chain = run({"--matmuls", "64,64,64,64"});
  ASSERT_EQ(chain.code, 0) << chain.err;
  const Json front = result_of(chain).at("front");
  EXPECT_EQ(front.size(), 18U);
  EXPECT_EQ(front.back(), Json({{"buffer_bits", 33288}, {"dram_bits", 131072}, {"chosen", true}}));
  const std::string file = repository("examples/core/four_matmuls.yaml");
  const Ran layers = run({"--workload", file, "--buffer", "16384"});
  ASSERT_EQ(layers.code, 0) << layers.err;
  const Json json = result_of(layers);
  EXPECT_EQ(json.at("best"), 589824);
  EXPECT_EQ(json.at("gap"), 0);
  EXPECT_TRUE(json.at("exact"));
  EXPECT_EQ(json.at("groups").at(0).at("operators").at(0), "matmul1");
  EXPECT_EQ(run({"--workload", file, "--buffer", "20"}).code, 4);
  EXPECT_EQ(run({"--matmuls", "64,64"}).code, 2);
  EXPECT_EQ(run({"--matmuls", "64,64,64", "--workload", file}).code, 2);
}

class OptimiseExperiment : public ::testing::Test {
protected:
  Ran run(const std::string& optimise) {
    scratch_.file("e.yaml", "workload: {network: " + small_network(kSmallNetwork) +
                                "}\ntraining: {loss: cross_entropy}\nhardware: " +
                                repository("data/hardware/tpu_like_quad_core.yaml") +
                                "\noptimise: " + optimise + "\n");
    return run_monet({"run", scratch_ / "e.yaml", "-o", scratch_ / "out"});
  }
  Scratch scratch_;
};

TEST_F(OptimiseExperiment, SearchesOneOnWhatTheOtherMadeOfTheStep) {
  const Ran ran = run("{checkpointing: {budget: 80%, memory: stored}, fusion: {evaluations: 3}, "
                      "allocation: {evaluations: 3}}");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json result = parse_file(scratch_ / "out/result.json");
  EXPECT_EQ(schema_violations(parse_file(repository("docs/result.schema.json")), result),
            std::vector<std::string>{});
  const Json& optimise = result.at("optimise");
  ASSERT_EQ(optimise.at("searches").size(), 3U);
  EXPECT_LE(optimise.at("searches")[0].at("stored_bytes"),
            optimise.at("searches")[0].at("budget_bytes"));
  EXPECT_EQ(optimise.at("searches")[2].at("best"), result.at("latency_cycles"));
  const Json& phases = result.at("layers");
  EXPECT_TRUE(std::any_of(phases.begin(), phases.end(),
                          [](const Json& layer) { return layer.at("phase") == "recompute"; }));
  ASSERT_EQ(optimise.at("worse").size(), 1U); // what runs again takes time
  EXPECT_EQ(optimise.at("worse")[0].at("after"), result.at("latency_cycles"));
  EXPECT_EQ(ran.out.rfind("worse than before the searches: latency 1", 0), 0U) << ran.out;
  EXPECT_EQ(optimise.at("interrupted"), false);
}

TEST_F(OptimiseExperiment, WithoutABudgetIsNeverWorse) {
  const Ran ran = run("{fusion: {evaluations: 3, objective: energy}, "
                      "allocation: {evaluations: 3, objective: energy}}");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json optimise = parse_file(scratch_ / "out/result.json").at("optimise");
  EXPECT_TRUE(optimise.at("worse").empty()) << optimise.at("worse");
  EXPECT_EQ(ran.out.find("worse"), std::string::npos) << ran.out;
}

TEST_F(OptimiseExperiment, MistakesAreSaidWithTheirPlaces) {
  const Ran ran =
      run("{fusoin: {}, checkpointing: {budget: lots}, allocation: {objective: speed}}");
  EXPECT_EQ(ran.code, 3);
  for (const char* part : {"e.yaml:4:12", "did you mean 'fusion'", "budget 'lots'", "'speed'"})
    EXPECT_NE(ran.err.find(part), std::string::npos) << part << " in " << ran.err;
  EXPECT_EQ(run("{checkpointing: {budget: 1}}").code, 4);
}

TEST_P(EverySearch, ShowsInAReportTheStepsItCompared) {
  const Scratch scratch;
  const Ran ran = run_limited(search(GetParam(), {"--report", scratch / "out"}), 0.3);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json result = parse_file(scratch / "out/result.json");
  EXPECT_EQ(schema_violations(parse_file(repository("docs/result.schema.json")), result),
            std::vector<std::string>{});
  const Json& optimise = result.at("optimise");
  EXPECT_EQ(optimise.at("searches").at(0).at("kind"), GetParam());
  EXPECT_EQ(optimise.at("compared").at(1).at("latency_cycles"), result.at("latency_cycles"));
  EXPECT_EQ(run_monet({"report", scratch / "out/result.json", "-o", scratch / "again.html"}).code,
            0);
  EXPECT_EQ(read_file(scratch / "again.html"), read_file(scratch / "out/report.html"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EverySearch,
                         ::testing::Values("allocation", "fusion", "checkpointing", "joint"),
                         [](const auto& kind) { return kind.param; });

} // namespace
} // namespace monet::test
