// Designs with a short training: each arithmetic is trained once, whatever the chips, threads and
// interruptions are.
#include "explore/evaluate/short_trainings.hpp"
#include "explore/toys.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/fit/run.hpp"

#include <atomic>
#include <thread>

namespace monet::test {
namespace {

/// Two chips and three arithmetics; trainings of three steps.
Space accuracy_space(const std::string& more = "") {
  const std::string source = std::string(MONET_SOURCE_DIR) + "/data/";
  return parse_space("workload: {network: " + source + "workload/resnet8_16.onnx, batch: 4}\n" +
                         R"(
parameters: {chip: [npu_small, edge_tpu_22nm], arithmetic: [fp32, mxfp8, nothing]}
runs: [training]
training:
  loss: cross_entropy
  optimizer: {type: sgd, learning_rate: 0.1, momentum: 0.9}
  variants:
    arithmetic:
      fp32: {}
      mxfp8: {precision: {weights: mxfp8_e4m3, master_weights: fp32, activations: mxfp8_e4m3, gradients: mxfp8_e4m3, blocks: {shape: 8x8}}}
      nothing: {optimizer: {learning_rate: 9.0e+5}, precision: fp16}
accuracy:
  data: {format: generated, train: 32, test: 20, classes: 4}
  steps: 3
  seeds: [1, 2]
fronts: [{run: training, objectives: [energy, error]}, {run: training, objectives: [latency, error]}]
)" + more + "chip: " + source +
                         "hardware/${chip}.yaml\n",
                     "accuracy.yaml");
}

/// Keeps trainings like a file, and counts those that are put.
class CountingStore : public DesignStore {
public:
  std::vector<std::optional<DesignResult>> find(std::span<const DesignId> ids) override {
    return designs_->find(ids);
  }
  std::vector<DesignId> claim(std::span<const DesignId> ids, std::size_t most) override {
    return designs_->claim(ids, most);
  }
  void put(std::span<const DesignResult> results) override { designs_->put(results); }
  void each(const std::function<void(const DesignResult&)>& row) override { designs_->each(row); }
  std::uint64_t size() override { return designs_->size(); }
  std::vector<TrainingRecord> trainings() override { return kept; }
  std::optional<TrainingRecord> find_training(const std::string& key, std::uint64_t seed) override {
    for (const TrainingRecord& record : kept) {
      if (record.key == key && record.seed == seed)
        return record;
    }
    return std::nullopt;
  }
  void put_training(const TrainingRecord& record) override { kept.push_back(record); }

  std::vector<TrainingRecord> kept;

private:
  std::unique_ptr<DesignStore> designs_ = memory_store();
};

std::vector<DesignResult> explored(const Space& space, DesignStore& store, int jobs,
                                   const std::string& strategy = "exhaustive") {
  const auto evaluator = make_evaluator(space, &store);
  const auto chosen = make_strategy(space, *evaluator, {strategy, 0, 1, jobs});
  return explore(space, *chosen, store, *thread_runner(*evaluator, jobs), {}).results;
}

double error_of(const DesignResult& result) {
  return result.metrics.at(0).value;
}

TEST(Accuracy, IsTrainedOnceForAllChips) {
  const Space space = accuracy_space();
  CountingStore store;
  const std::vector<DesignResult> results = explored(space, store, 1);
  ASSERT_EQ(results.size(), 6U);
  EXPECT_EQ(store.kept.size(), 6U) << "three arithmetics, two seeds";
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(results[i].feasible) << results[i].reason;
    EXPECT_EQ(results[i].metrics, results[i + 3].metrics);
    EXPECT_NE(results[i].runs, results[i + 3].runs);
  }
  for (const int jobs : {2, 5}) {
    CountingStore other;
    EXPECT_EQ(explored(space, other, jobs), results);
    EXPECT_EQ(other.kept.size(), 6U);
  }
}

TEST(Accuracy, IsWhatTrainRunsComeTo) {
  const Space space = accuracy_space();
  const DesignResult result = make_evaluator(space)->evaluate(1);
  const TrainStudy study = *space.short_training(1);
  const TrainingData data = load_data(study.data.at(0));
  const TrainSetup setup = prepare_training(study.variants.at(0), data);
  double right = 0;
  for (const std::uint64_t seed : {1U, 2U}) {
    TrainRunOptions options;
    options.seed = seed;
    TrainRun run(setup, options);
    while (!run.is_over())
      run.step();
    run.test();
    right += run.history().tests.back().accuracy / 2;
  }
  EXPECT_NEAR(error_of(result), 1 - right, 1e-12);
  EXPECT_GT(result.metrics.at(1).value, 0) << "gradients in eight bits";
  EXPECT_EQ(make_evaluator(space)->evaluate(0).metrics.at(1).value, 0);
}

TEST(Accuracy, OfWhatDivergesIsThatOfTheWeightsAsLeft) {
  const Space space = accuracy_space();
  const TrainStudy study = *space.short_training(2);
  const TrainingData data = load_data(study.data.at(0));
  const TrainSetup setup = prepare_training(study.variants.at(0), data);
  double right = 0;
  for (const std::uint64_t seed : {1U, 2U}) {
    TrainRunOptions options;
    options.seed = seed;
    TrainRun run(setup, options);
    while (!run.is_over())
      run.step();
    ASSERT_EQ(run.history().non_finite.size(), 1U) << "it does not diverge";
    EXPECT_LT(run.steps(), 3);
    run.test();
    right += run.history().tests.back().accuracy / 2;
  }
  const DesignResult result = make_evaluator(space)->evaluate(2);
  ASSERT_TRUE(result.feasible) << result.reason;
  EXPECT_NEAR(error_of(result), 1 - right, 1e-12);
}

TEST(Accuracy, IsTakenFromTheStoreOnResume) {
  const Space space = accuracy_space();
  CountingStore whole;
  const std::vector<DesignResult> results = explored(space, whole, 1);
  CountingStore half; // no designs, but what was trained for them, told apart from what is trained
  for (TrainingRecord record : whole.kept) {
    record.error = 0.125;
    half.kept.push_back(record);
  }
  const std::vector<DesignResult> again = explored(space, half, 2);
  EXPECT_EQ(half.kept.size(), 6U);
  for (const DesignResult& result : again)
    EXPECT_EQ(error_of(result), 0.125);
}

TEST(Accuracy, IsHeldToItsBudget) {
  const DesignResult free = make_evaluator(accuracy_space())->evaluate(1);
  const auto within = [](double budget) {
    return make_evaluator(accuracy_space(fmt::format("budgets: {{error: {}}}\n", budget)))
        ->evaluate(1);
  };
  EXPECT_EQ(within(error_of(free)), free);
  const DesignResult over = within(error_of(free) - 0.01);
  EXPECT_FALSE(over.feasible);
  EXPECT_NE(over.reason.find("is over the budget of"), std::string::npos) << over.reason;
  EXPECT_TRUE(over.metrics.empty());
}

TEST(Accuracy, IsNotTrainedForWhatCannotRun) {
  const Space space = accuracy_space("budgets: {peak_memory_bytes: 1000}\n");
  CountingStore store;
  for (const DesignResult& result : explored(space, store, 2)) {
    EXPECT_FALSE(result.feasible);
    EXPECT_TRUE(result.metrics.empty());
  }
  EXPECT_TRUE(store.kept.empty());
}

TEST(Accuracy, HasTheSameFrontsWhenRaced) {
  const Space space = accuracy_space();
  CountingStore all, raced;
  const std::vector<DesignResult> results = explored(space, all, 2);
  const std::vector<DesignResult> some = explored(space, raced, 2, "racing");
  for (const FrontRequest& front : space.fronts)
    EXPECT_EQ(front_of(some, front), front_of(results, front));
  EXPECT_LE(some.size(), results.size());
}

TEST(TrainingCache, MakesEachOnceAndSharesThemOut) {
  TrainingCache cache(nullptr);
  std::atomic<int> made{0};
  const std::vector<std::uint64_t> seeds{4, 2, 9};
  const auto make = [&](std::uint64_t seed) {
    ++made;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return TrainingRecord{"k", seed, 0.5, static_cast<double>(seed)};
  };
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const auto records = cache.of("k", seeds, make);
      ASSERT_EQ(records.size(), 3U);
      EXPECT_EQ(records[1].gradients_flushed, 2);
    });
  threads.clear();
  EXPECT_EQ(made, 3);
  EXPECT_EQ(cache.take_new().size(), 3U);
  cache.learn(std::vector<TrainingRecord>{{"other", 1, 0.25, 0}});
  EXPECT_TRUE(cache.take_new().empty()) << "who told us knows it";
  EXPECT_EQ(cache.of("other", std::vector<std::uint64_t>{1}, make).at(0).error, 0.25);
  EXPECT_EQ(made, 3);
}

TEST(TrainingCache, IsMadeByAnotherWhereOneFails) {
  TrainingCache cache(nullptr);
  const std::vector<std::uint64_t> seeds{1};
  const auto fail = [](std::uint64_t) -> TrainingRecord { throw Stopped("stopped"); };
  EXPECT_THROW(cache.of("k", seeds, fail), Stopped);
  const auto make = [](std::uint64_t seed) { return TrainingRecord{"k", seed, 0.5, 0}; };
  EXPECT_EQ(cache.of("k", seeds, make).at(0).error, 0.5);
}

TEST(TrainingCache, HeedsTheWishToStopWhileItWaits) {
  TrainingCache cache(nullptr);
  const std::vector<std::uint64_t> seeds{1};
  std::atomic<bool> begun{false}, stop{false}, has_thrown{false};
  std::jthread slow([&] {
    cache.of("k", seeds, [&](std::uint64_t seed) {
      begun = true;
      has_thrown.wait(false);
      return TrainingRecord{"k", seed, 0.5, 0};
    });
  });
  while (!begun)
    std::this_thread::yield();
  const StopScope scope(StopRequest{&stop});
  stop = true;
  EXPECT_THROW(cache.of("k", seeds, [](std::uint64_t) { return TrainingRecord{}; }), Stopped);
  has_thrown = true;
  has_thrown.notify_all();
}

} // namespace
} // namespace monet::test
