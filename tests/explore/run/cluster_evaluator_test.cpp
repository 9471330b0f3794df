// Designs of a space of clusters come to what a cluster's model alone gives.
#include "monet/explore/explore.hpp"
#include "monet/explore/space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace monet {
namespace {

std::string cluster_source(const std::string& path) {
  return std::string(MONET_SOURCE_DIR) + "/" + path;
}

Space small_clusters(const std::string& more = "") {
  return parse_space(R"(
parameters:
  devices: [4, 8]
  tensor: [1, 2, 3]
  pipeline: [1, 2]
  zero: [0, 1]
workload: {transformer: {layers: 4, hidden: 512, heads: 8, sequence: 256, vocabulary: 1024}}
parallel: {data: rest, tensor: "${tensor}", pipeline: "${pipeline}", zero: "${zero}", global_batch: 16}
cluster: {file: )" + cluster_source("data/cluster/dgx_a100.yaml") +
                         R"(, devices: "${devices}"}
)" + more,
                     "clusters.yaml");
}

DesignResult alone_on(const Space& space, DesignId id) {
  const DesignedCluster made = cluster_of(space, id);
  ClusterModel model(made.cluster, made.device, made.workload);
  const ClusterStep step = model.model(strategy_of(space, id, made.cluster.devices));
  DesignResult result;
  result.id = id;
  result.feasible = true;
  result.frequency_hz = 1e9;
  result.runs = {{step.time, step.energy_pj, step.largest_memory}};
  result.metrics = {{"samples_per_second", step.samples_per_second},
                    {"tokens_per_second", step.tokens_per_second},
                    {"mfu", step.mfu}};
  return result;
}

TEST(ClusterEvaluator, GivesWhatTheModelGivesWhateverCameBefore) {
  const Space space = small_clusters();
  const auto evaluator = make_evaluator(space);
  std::size_t feasible = 0;
  for (DesignId id = space.size(); id-- > 0;) {
    const DesignResult result = evaluator->evaluate(id);
    if (space.choices(id)[1] == 2) { // three tensor ranks
      EXPECT_FALSE(result.feasible);
      EXPECT_NE(result.reason.find("data cannot be the rest: context * tensor"), std::string::npos)
          << result.reason;
      continue;
    }
    EXPECT_EQ(result, alone_on(space, id)) << id;
    feasible += result.feasible ? 1 : 0;
  }
  EXPECT_EQ(feasible, 16U);
}

TEST(ClusterEvaluator, ThreadsGiveTheSame) {
  const Space space = small_clusters();
  const auto evaluator = make_evaluator(space);
  std::vector<std::vector<DesignResult>> found(3);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] {
      for (DesignId i = 0; i < space.size(); ++i)
        found[t].push_back(evaluator->evaluate((i + 5 * t) % space.size()));
    });
  for (std::thread& thread : threads)
    thread.join();
  for (auto& results : found)
    std::ranges::sort(results, {}, &DesignResult::id);
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[2], found[0]);
}

TEST(ClusterEvaluator, MemoryAndBudgetsAreReasons) {
  const Space space = small_clusters("budgets: {peak_memory_bytes: 1}\n");
  EXPECT_NE(make_evaluator(space)->evaluate(0).reason.find("over the budget of 1"),
            std::string::npos);
  // A device that has room for the transformer on eight ranks, and not on four.
  const Space small = parse_space(R"(
parameters: {bytes: [1e6, 1e11]}
workload: {transformer: {layers: 4, hidden: 512, heads: 8, sequence: 256, vocabulary: 1024}}
parallel: {data: rest, global_batch: 16}
cluster: {file: )" + cluster_source("data/cluster/dgx_a100.yaml") +
                                      R"(, memory_bytes: "${bytes}"}
)",
                                  "clusters.yaml");
  const auto evaluator = make_evaluator(small);
  const DesignResult full = evaluator->evaluate(0);
  EXPECT_FALSE(full.feasible);
  EXPECT_TRUE(full.runs.empty());
  EXPECT_NE(full.reason.find("a device of stage 0 keeps "), std::string::npos) << full.reason;
  EXPECT_TRUE(evaluator->evaluate(1).feasible);
}

TEST(ClusterEvaluator, AreasAndPowersAreThoseOfAllChips) {
  const Space space = parse_space(R"(
parameters: {devices: [1, 4]}
workload: {transformer: {layers: 1, hidden: 32, heads: 2, sequence: 16, vocabulary: 32}}
parallel: {data: rest, global_batch: 4}
cluster: {file: )" + cluster_source("data/cluster/edge_tpu_x4.yaml") +
                                      R"(, devices: "${devices}"}
chip: )" + cluster_source("data/hardware/edge_tpu_22nm.yaml") +
                                      R"(
)",
                                  "clusters.yaml");
  const auto evaluator = make_evaluator(space);
  const Chip chip = space.chip(0);
  for (const DesignId id : {0U, 1U}) {
    const double devices = id == 0 ? 1 : 4;
    const DesignResult result = evaluator->evaluate(id);
    ASSERT_TRUE(result.feasible) << result.reason;
    EXPECT_EQ(result.area_mm2, devices * chip.area_mm2());
    EXPECT_EQ(result.peak_power_w, devices * peak_power_w(chip).value());
    EXPECT_GT(result.runs[0].energy_pj, 0);
    DesignResult expected = alone_on(space, id);
    expected.area_mm2 = result.area_mm2;
    expected.peak_power_w = result.peak_power_w;
    EXPECT_EQ(result, expected);
    const DesignBound bound = evaluator->bound(id);
    EXPECT_TRUE(bound.feasible);
    EXPECT_EQ(bound.area_mm2, result.area_mm2);
  }
}

} // namespace
} // namespace monet
