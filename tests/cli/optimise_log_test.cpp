#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace MONET_TEST_FILE {

using nlohmann::json;

const std::string kSmall = "tests/fixtures/remat/small.log";
const std::string kConvolutions = "tests/fixtures/remat/convolutions.log";

std::vector<std::string> checkpointing(const std::string& log, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"optimise", "checkpointing", "--log", repository(log)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void expect_schema(const json& result) {
  EXPECT_EQ(schema_violations(parse_file(repository("docs/optimise.schema.json")), result),
            std::vector<std::string>{});
}

json without_seconds(json result) {
  result.erase("seconds");
  for (json& row : result["budgets"])
    row.erase("seconds");
  return result;
}

TEST(OptimiseLog, ABudgetGivesAPlanWithItsBound) {
  const Ran ran = run_monet(
      checkpointing(kConvolutions, {"--budget", "80%", "--time-limit", "2", "--json", "-"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json result = json::parse(ran.out);
  expect_schema(result);
  EXPECT_EQ(result["kind"], "optimise checkpointing-log");
  EXPECT_EQ(result["budget_bytes"], result["unconstrained_peak_bytes"].get<int>() * 80 / 100);
  EXPECT_LE(result["peak_bytes"], result["budget_bytes"]);
  EXPECT_LE(result["bound"].get<double>(), result["best"].get<double>());
  EXPECT_GT(result["overhead"].get<double>(), 0);
  EXPECT_GT(result["plan"].size(), result["operators"].get<std::size_t>());
  int plans = 0;
  for (const json& other : result["compared"]) {
    if (other["best"].is_null())
      continue;
    ++plans;
    EXPECT_GE(other["best"].get<double>(), result["best"].get<double>()) << other;
  }
  EXPECT_GT(plans, 3);
}

TEST(OptimiseLog, ASweepIsMonotoneAndTheSameOnTwoThreads) {
  const Ran one = run_monet(checkpointing(
      kConvolutions, {"--sweep", "--least", "60%", "--method", "search", "--json", "-"}));
  ASSERT_EQ(one.code, 0) << one.err;
  const json result = json::parse(one.out);
  expect_schema(result);
  ASSERT_GE(result["budgets"].size(), 4U);
  double budget = 1e18;
  double best = 0;
  double bound = 0;
  for (const json& row : result["budgets"]) {
    EXPECT_LT(row["budget_bytes"].get<double>(), budget);
    EXPECT_GE(row["best"].get<double>(), best);
    EXPECT_GE(row["bound"].get<double>(), bound);
    EXPECT_LE(row["peak_bytes"], row["budget_bytes"]);
    budget = row["budget_bytes"].get<double>();
    best = row["best"].get<double>();
    bound = row["bound"].get<double>();
  }
  const Ran two = run_monet(checkpointing(kConvolutions, {"--sweep", "--least", "60%", "--method",
                                                          "search", "--jobs", "2", "--json", "-"}));
  EXPECT_EQ(without_seconds(result), without_seconds(json::parse(two.out)));
}

TEST(OptimiseLog, OneHeuristicAlone) {
  const Ran ran = run_monet(
      checkpointing(kConvolutions, {"--budget", "80%", "--method", "dtr", "--json", "-"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json result = json::parse(ran.out);
  EXPECT_EQ(result["method"], "dtr");
  EXPECT_EQ(result["best"], result["compared"][2]["best"]);
}

TEST(OptimiseLog, CutShortItGivesTheBestSoFar) {
  for (const double seconds : {0.02, 0.2}) {
    const Ran ran =
        run_interrupted_at_work(checkpointing(kConvolutions, {"--sweep", "--json", "-"}), seconds);
    if (ran.code == 0)
      continue;
    EXPECT_EQ(ran.code, 130) << ran.err;
    if (ran.code == 130)
      expect_schema(json::parse(ran.out));
  }
  const Ran limited =
      run_limited(checkpointing(kConvolutions, {"--budget", "50%", "--json", "-"}), 0.3);
  ASSERT_EQ(limited.code, 0) << limited.err;
  const json result = json::parse(limited.out);
  expect_schema(result);
  EXPECT_LE(result["bound"].get<double>(), result["best"].get<double>());
}

TEST(OptimiseLog, FailuresHaveTheirExitCodes) {
  const Ran less = run_monet(checkpointing(kSmall, {"--budget", "60%"}));
  EXPECT_EQ(less.code, 4);
  EXPECT_NE(less.err.find("need 74 bytes, 30 bytes too many"), std::string::npos) << less.err;
  EXPECT_EQ(run_monet(checkpointing("README.md", {"--budget", "60%"})).code, 3);
  EXPECT_EQ(run_monet(checkpointing("tests/none.log", {"--budget", "60%"})).code, 3);
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                {"--budget", "x"},
                                                {"--budget", "50%", "--sweep"},
                                                {"--sweep", "--method", "genetic"},
                                                {"--sweep", "--batch", "2"},
                                                {"--sweep", "e.yaml"}})
    EXPECT_EQ(run_monet(checkpointing(kSmall, wrong)).code, 2);
}

} // namespace MONET_TEST_FILE
} // namespace monet::test
