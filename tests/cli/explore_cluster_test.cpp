// monet explore of clusters and strategies: one table for any threads, processes and kills, and
// designs that `monet cluster` models again.
#include "base/shared/rng.hpp"
#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

namespace monet::test {
namespace {

using Json = nlohmann::json;

class ExploreCluster : public ::testing::Test {
protected:
  ExploreCluster() {
    space_ =
        scratch_.file("clusters.yaml", fmt::format(R"(
name: clusters of a test
cluster: {{file: {}, devices: "${{devices}}"}}
workload: {{transformer: {{layers: 4, hidden: 512, heads: 8, sequence: 256, vocabulary: 1024}}}}
training: {}
parameters:
  devices: [4, 8]
  tensor: [1, 2, 4]
  pipeline: [1, 2, 4]
  schedule: [gpipe, 1f1b]
  zero: [0, 1]
  recompute: [none, full]
constraints: [pipeline > 1 or schedule == '1f1b']
parallel: {{data: rest, tensor: "${{tensor}}", pipeline: "${{pipeline}}", schedule: "${{schedule}}",
           zero: "${{zero}}", recompute: "${{recompute}}", global_batch: 16}}
)",
                                                   repository("data/cluster/dgx_a100.yaml"),
                                                   repository("data/training/bf16_mixed.yaml")));
  }

  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"explore", space_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Of a run without a store.
  std::string table(const std::string& jobs) const {
    const Ran ran = run_monet(
        arguments({"--jobs", jobs, "--export-csv", scratch_ / ("table" + jobs + ".csv")}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return read_file(scratch_ / ("table" + jobs + ".csv"));
  }

  Scratch scratch_;
  std::string space_;
};

TEST_F(ExploreCluster, OneTableForThreadsAndProcesses) {
  const std::string one = table("1");
  // 2 * 3 * 5 * 2 * 2 designs keep the constraint.
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 121);
  EXPECT_NE(one.find("data cannot be the rest"), std::string::npos); // 4 * 4 of 4 or 8
  EXPECT_EQ(table("2"), one);
  if (!has_component("mpi"))
    return;
  std::string command = "mpirun --allow-run-as-root --oversubscribe -n 3 '" MONET_BINARY "'";
  for (const std::string& argument : arguments(
           {"--jobs", "1", "--store", scratch_ / "mpi.db", "--export-csv", scratch_ / "mpi.csv"}))
    command += " '" + argument + "'";
  const int status = std::system((command + " >/dev/null 2>'" + (scratch_ / "err") + "'").c_str());
  EXPECT_EQ(status, 0) << read_file(scratch_ / "err");
  EXPECT_NE(read_file(scratch_ / "err").find("3 processes, "), std::string::npos);
  EXPECT_EQ(read_file(scratch_ / "mpi.csv"), one);
}

TEST_F(ExploreCluster, KilledAndResumedGivesTheSameTable) {
  const std::string one = table("1");
  const std::string store = scratch_ / "s.db";
  RandomStream random(6);
  int killed = 0;
  for (int kill = 0; kill < 6; ++kill) {
    const Ran ran = run_signalled(arguments({"--store", store, "--resume", "--jobs", "1"}), SIGKILL,
                                  0.3 * random.unit());
    EXPECT_TRUE(ran.code == 0 || ran.code == 137) << ran.err;
    killed += ran.code == 137 ? 1 : 0;
  }
  EXPECT_GT(killed, 1);
  const Ran ran = run_monet(
      arguments({"--store", store, "--resume", "--export-csv", scratch_ / "resumed.csv"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(read_file(scratch_ / "resumed.csv"), one);
  const Ran again = run_monet(arguments({"--store", store, "--resume"}));
  EXPECT_NE(again.err.find("0 designs evaluated now, 120 from"), std::string::npos) << again.err;
}

TEST_F(ExploreCluster, WritesDesignsThatTheClusterCommandModelsAgain) {
  const Ran ran = run_monet(arguments({"-o", scratch_ / "out", "--jobs", "2"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("Front of training: latency, memory"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("energy"), std::string::npos) << ran.out;
  const Json json = parse_file(scratch_ / "out/explore.json");
  EXPECT_EQ(schema_violations(parse_file(repository("docs/explore.schema.json")), json),
            std::vector<std::string>{});
  EXPECT_NE(read_file(scratch_ / "out/report.html").find("\"kind\":\"explore\""),
            std::string::npos);
  EXPECT_EQ(json.at("fronts").at("training: latency, memory").at("run"), "training");
  EXPECT_GT(json.at("fronts").at("training: latency, memory").at("designs").size(), 1U);
  for (const char* objective : {"latency", "memory"}) {
    const Json& best = json.at("best").at("training").at(objective);
    const std::string folder = scratch_ / ("out/designs/" + best.at("id").dump());
    const Json written = parse_file(folder + "/cluster.json");
    EXPECT_EQ(schema_violations(parse_file(repository("docs/cluster.schema.json")), written),
              std::vector<std::string>{});
    const Ran modelled = run_monet({"cluster", folder + "/experiment.yaml", "--json", "-"});
    ASSERT_EQ(modelled.code, 0) << modelled.err;
    const Json again = Json::parse(modelled.out);
    for (const Json& step : {written, again}) {
      EXPECT_EQ(step.at("time_ns"), best.at("latency_cycles"));
      EXPECT_EQ(step.at("memory").at("largest_bytes"), best.at("peak_memory_bytes"));
      EXPECT_EQ(step.at("tokens_per_second"), best.at("tokens_per_second"));
    }
  }
}

TEST_F(ExploreCluster, StrategiesFindTheFrontsOfAll) {
  const auto front = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"--json", "-"};
    all.insert(all.end(), more.begin(), more.end());
    const Ran ran = run_monet(arguments(all));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(ran.out).at("fronts");
  };
  EXPECT_EQ(front({"--strategy", "racing"}).at("training: latency, memory").at("designs"),
            front({}).at("training: latency, memory").at("designs"));
  EXPECT_FALSE(front({"--strategy", "nsga2", "--budget", "60"})
                   .at("training: latency, memory")
                   .at("designs")
                   .empty());
}

} // namespace
} // namespace monet::test
