// Results of a step on a cluster, from one that is made by hand.
#include "report/json_schema.hpp"
#include "report/shared/cluster_result.hpp"
#include "report/trace_rules.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <tuple>

namespace monet::test {
namespace {

using ClusterJson = nlohmann::ordered_json;

/// Two stages of 1F1B with three micro-batches: passes of 4, 4 and 2 us, of a backward pass 1 us
/// made again, sends of 1 us, then 3 us of gradients and 2 us of update.
struct HandMadeCluster {
  explicit HandMadeCluster(std::int64_t chunks = 1, std::int64_t micro_batches = 3) {
    cluster.name = "two racks";
    cluster.devices = 4;
    cluster.tiers.resize(1);
    cluster.tiers[0].name = "wire";
    cluster.tiers[0].size = 4;
    cluster.tiers[0].bandwidth_gb_per_s = 2.5;
    device.table.emplace();
    device.table->name = "abacus";
    workload.transformer.emplace();
    workload.transformer->layers = 4;
    step.strategy.axes[AxisRole::data] = 2;
    step.strategy.axes[AxisRole::pipeline] = 2;
    step.strategy.axes[AxisRole::virtual_stages] = chunks;
    step.strategy.schedule = chunks > 1 ? PipelineKind::interleaved : PipelineKind::one_f_one_b;
    step.strategy.global_batch = 2 * micro_batches;
    run(chunks, micro_batches);
    fill();
  }

  ClusterJson json() const {
    return cluster_json({name, &cluster, &device, &workload, "", &step}, {});
  }

  std::string name = "by hand";
  Cluster cluster;
  ClusterDevice device;
  ClusterWorkload workload;
  ClusterStep step;

  void set_limit(std::int64_t bytes) {
    for (StageResult& stage : step.stages)
      stage.memory.limit = bytes;
  }

private:
  void run(std::int64_t chunks, std::int64_t micro_batches) {
    PipelineProblem problem;
    problem.kind = step.strategy.schedule;
    problem.stages = 2;
    problem.chunks = chunks;
    problem.micro_batches = micro_batches;
    const auto parts = static_cast<std::size_t>(2 * chunks);
    problem.costs.assign(parts, {4000, 3000, 2000, 1000, 0, 0});
    problem.forward_sends.assign(parts - 1, 1000);
    problem.backward_sends = problem.forward_sends;
    problem.tails.assign(2, {3000, 2000});
    step.timeline = simulate(problem);
    step.time = step.timeline.period;
  }

  void fill() {
    step.samples_per_second = 1e9 * 6 / static_cast<double>(step.time);
    step.tokens_per_second = step.samples_per_second;
    step.mfu = 0.25;
    step.mfu_with_masked = 0.27;
    step.hfu = 0.3;
    for (const StageTimes& times : step.timeline.stages) {
      StageResult stage;
      stage.memory.bytes = {100, 50, 200, 1000, 30, 7};
      stage.memory.workspace = 20;
      stage.memory.in_flight = times.max_held;
      stage.blocks = 2;
      stage.first_block = static_cast<std::int64_t>(step.stages.size()) * 2;
      stage.parameters = 50;
      stage.share.recompute = times.busy / 10;
      stage.share.compute = times.busy - stage.share.recompute;
      stage.share.sends = times.exposed;
      stage.share.gradients = 3000;
      stage.share.update = 2000;
      stage.share.bubble = times.bubble;
      step.stages.push_back(stage);
    }
    step.stages[1].memory.bytes[3] = 400;
    step.largest_memory = 1400;
    set_limit(2000);
    BlockCost layer;
    layer.name = "layer";
    layer.count = 4;
    layer.forward = 2000;
    step.blocks = {layer};
  }
};

std::size_t times_of(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

TEST(ClusterJson, IsAsItsSchemaSays) {
  const auto schema =
      nlohmann::json::parse(read_file(std::string(MONET_SOURCE_DIR) + "/docs/cluster.schema.json"));
  HandMadeCluster made;
  EXPECT_EQ(schema_violations(schema, made.json()), std::vector<std::string>{});
  made.workload.transformer.reset();
  made.set_limit(0);
  made.step.mfu = made.step.mfu_with_masked = made.step.hfu = made.step.tokens_per_second = 0;
  const ClusterJson json = made.json();
  EXPECT_EQ(schema_violations(schema, json), std::vector<std::string>{});
  for (const char* key : {"mfu", "mfu_with_masked", "hfu", "tokens_per_second", "energy_pj"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
  EXPECT_TRUE(json.at("memory").at("limit_bytes").is_null());
}

// F0 4, send 1, F0 4 on stage 1, B0 4+2 on stage 1, send 1: by hand for the first micro-batch.
TEST(ClusterJson, FiguresAreThoseAddedUpByHand) {
  const ClusterJson json = HandMadeCluster().json();
  EXPECT_EQ(json.at("timeline").at("passes").at(0).dump(), "[0,0,0,0,0,4000]");
  EXPECT_EQ(json.at("timeline").at("sends").at(0).dump(), "[0,1,0,0,0,4000,5000]");
  EXPECT_EQ(json.at("stages").at(0).at("memory").at("total_bytes"), 1400);
  EXPECT_EQ(json.at("stages").at(1).at("memory").at("total_bytes"), 800);
  EXPECT_EQ(json.at("memory").at("fits"), true);
  EXPECT_EQ(json.at("strategy").at("micro_batches"), 3);
  for (const ClusterJson& stage : json.at("stages")) {
    std::int64_t sum = 0;
    for (const auto& [key, part] : stage.at("share").items())
      sum += part.get<std::int64_t>();
    EXPECT_EQ(sum, json.at("time_ns"));
    sum = 0;
    for (const auto& [key, part] : stage.at("memory").items())
      sum += key == "total_bytes" || key == "offloaded_activations_bytes"
                 ? 0
                 : part.get<std::int64_t>();
    EXPECT_EQ(sum, stage.at("memory").at("total_bytes"));
  }
}

TEST(ClusterJson, OfLongStepsTheFirstPassesAreListed) {
  const HandMadeCluster made(1, 20'000); // 3 passes, 2 stages
  const ClusterJson json = made.json();
  const ClusterJson& timeline = json.at("timeline");
  EXPECT_LE(timeline.at("passes").size(), kMaxListedPasses);
  EXPECT_GE(timeline.at("passes").size(), kMaxListedPasses - 2);
  const auto until = timeline.at("listed_until_ns").get<std::int64_t>();
  EXPECT_LT(until, made.step.time);
  std::size_t earlier = 0;
  for (const auto& runs : made.step.timeline.runs)
    earlier += static_cast<std::size_t>(
        std::ranges::count_if(runs, [&](const PipelineRun& run) { return run.start < until; }));
  EXPECT_EQ(timeline.at("passes").size(), earlier);
  EXPECT_EQ(HandMadeCluster().json().at("timeline").at("listed_until_ns"),
            HandMadeCluster().step.timeline.makespan);
  EXPECT_LT(json.dump().size(), 10'000'000U);
}

TEST(ClusterTrace, HasEveryPassOnceAndKeepsTheRules) {
  for (const std::int64_t chunks : {1, 2}) {
    const HandMadeCluster made(chunks, 4);
    const auto trace = nlohmann::json::parse(cluster_trace(made.json()));
    EXPECT_EQ(trace_violations(trace), std::vector<std::string>{});
    std::multiset<std::string> shown, expected;
    for (const auto& event : trace.at("traceEvents")) {
      if (event.at("ph") == "X" && event.at("pid") == 1)
        shown.insert(event.at("name").get<std::string>() + " " + event.at("ts").dump() + " " +
                     event.at("dur").dump());
    }
    for (const auto& runs : made.step.timeline.runs) {
      for (const PipelineRun& run : runs)
        expected.insert(to_string(run.task, chunks) + " " +
                        nlohmann::json(static_cast<double>(run.start) / 1000).dump() + " " +
                        nlohmann::json(static_cast<double>(run.end - run.start) / 1000).dump());
    }
    EXPECT_TRUE(std::ranges::includes(shown, expected));
    EXPECT_EQ(shown.size(), expected.size() + 4); // gradients and update of two stages
    EXPECT_EQ(times_of(trace.dump(), R"("cat":"activation")") +
                  times_of(trace.dump(), R"("cat":"gradient")"),
              made.step.timeline.sends.size());
  }
}

TEST(ClusterTable, IsTameAndListsSomeOfManyStages) {
  HandMadeCluster made;
  made.name = made.cluster.name = made.device.table->name = made.step.blocks[0].name = "\x1B[2J";
  made.step.stages.resize(200, made.step.stages[0]);
  made.step.timeline.stages.resize(200, made.step.timeline.stages[0]);
  made.step.timeline.runs.resize(200);
  const std::string table = cluster_table(made.json());
  EXPECT_EQ(table.find('\x1B'), std::string::npos);
  EXPECT_NE(table.find("Of 200 stages the first and the last 16"), std::string::npos);
}

TEST(ClusterTable, SaysTimeRatesMemoryAndShares) {
  const std::string table = cluster_table(HandMadeCluster().json());
  for (const char* text :
       {"by hand\n4 devices of two racks (abacus): ", "MFU 25.00 %, HFU 30.00 %",
        "1.37 KiB a device at most, of 1.95 KiB\n", "stored activations", "bubble %", "layer "})
    EXPECT_NE(table.find(text), std::string::npos) << text << "\n" << table;
}

TEST(ClusterMemory, OverflowNamesTheStageAndItsOwners) {
  HandMadeCluster made;
  EXPECT_EQ(memory_overflow(made.step), "");
  made.set_limit(1400);
  EXPECT_EQ(memory_overflow(made.step), "");
  made.set_limit(1399);
  EXPECT_EQ(memory_overflow(made.step),
            "a device of stage 0 keeps 1.37 KiB (1,400 bytes), 1 B more than it has: "
            "stored_activations 0.98 KiB (1,000 bytes), optimizer_state 200 B, parameters 100 B, "
            "gradients 50 B, "
            "temporaries 30 B, workspace 20 B");
  EXPECT_NE(cluster_table(made.json()).find(": does not fit"), std::string::npos);
}

} // namespace
} // namespace monet::test
