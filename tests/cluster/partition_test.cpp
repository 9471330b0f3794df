// What ranks compute together is what one device computes.
#include "cluster/networks.hpp"
#include "cluster/ranks.hpp"
#include "level.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include "monet/workload/onnx_reader.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace monet {

namespace {

void expect_same(const TrainingGraph& step, const std::vector<MeshAxis>& mesh, int steps) {
  const RankStep ranks = partition_step(step, mesh);
  verify(ranks.step);
  const auto found = test::differences(step, ranks, steps);
  ASSERT_FALSE(found.empty());
  EXPECT_LE(found.front().relative, 1e-11) << found.front().tensor << " with " << test::words(mesh);
}

} // namespace

TEST(Partition, RandomStrategiesOfAnMlpComputeWhatOneDeviceComputes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 150; ++i) {
    const TrainingOptions options = test::some_options(random);
    const TrainingGraph step =
        fold_views(make_training_graph(test::small_mlp(16 / options.micro_batches), options));
    SCOPED_TRACE(i);
    expect_same(step, test::some_mesh(random, {}), 2);
  }
}

TEST(Partition, RandomStrategiesOfATransformerComputeWhatOneDeviceComputes) {
  std::mt19937_64 random(2);
  for (int i = 0; i < test::cases(6, 60, 60); ++i) {
    const TrainingOptions options = test::some_options(random);
    const TrainingGraph step =
        fold_views(make_training_graph(test::read_network("gpt2_nano.onnx", 4), options));
    SCOPED_TRACE(i);
    expect_same(step, test::some_mesh(random, {.tokens = true}), 1);
  }
}

TEST(Partition, IntegersThroughLinearNetworksStayTheSameToTheBit) {
  TrainingOptions options;
  options.loss = Mse{.reduction = Reduction::sum};
  options.update.optimizer = Sgd{.learning_rate = 1.0};
  const TrainingGraph step = fold_views(make_training_graph(test::small_mlp(8, true), options));
  for (const std::int64_t tensor : {1, 2, 4}) {
    for (const int zero : {0, 1, 2, 3}) {
      const std::vector<MeshAxis> mesh{{.name = "data", .size = 2, .inputs = 0, .zero = zero},
                                       {.name = "tensor", .size = tensor, .weights = true}};
      const RankStep ranks = partition_step(step, mesh);
      const auto found = test::differences(step, ranks, 1, true);
      EXPECT_EQ(found.front().relative, 0) << found.front().tensor << test::words(mesh);
    }
  }
}

TEST(Partition, BatchNormalisationOverRanksIsThatOfMicroBatches) {
  TrainingOptions options;
  options.update.optimizer = Sgd{.learning_rate = 0.1, .momentum = 0.9};
  const TrainingGraph whole =
      fold_views(make_training_graph(test::read_network("resnet20_cifar.onnx", 4), options));
  options.micro_batches = 2;
  const TrainingGraph micro =
      fold_views(make_training_graph(test::read_network("resnet20_cifar.onnx", 2), options));
  for (const int zero : {0, 3}) {
    const std::vector<MeshAxis> mesh{{.name = "data", .size = 2, .inputs = 0, .zero = zero}};
    const RankStep ranks = partition_step(whole, mesh);
    verify(ranks.step);
    const auto found = test::differences_of_micro_batches(micro, whole, ranks);
    EXPECT_LE(found.front().relative, 1e-10) << found.front().tensor;
  }
}

TEST(Partition, DataParallelExchangesEachGradientOnce) {
  const TrainingGraph step =
      fold_views(make_training_graph(test::read_network("gpt2_nano.onnx", 4), TrainingOptions{}));
  const RankStep ranks =
      partition_step(step, std::vector<MeshAxis>{{.name = "data", .size = 4, .inputs = 0}});
  std::int64_t bytes = 0;
  for (const Operator& op : ranks.step.graph.operators()) {
    if (is_collective(op) && op.phase != Phase::loss) {
      EXPECT_EQ(op.op_type, "AllReduce") << op.name;
      bytes += collective_bytes(ranks.step.graph, op);
    }
  }
  std::int64_t gradients = 0;
  for (const ParameterRecord& record : step.parameters)
    gradients += bytes_of(size_of(step.graph.tensor(record.gradient)));
  EXPECT_EQ(bytes, gradients);
}

TEST(Partition, TensorParallelIsMegatrons) {
  const TrainingGraph step =
      fold_views(make_training_graph(test::read_network("gpt2_nano.onnx", 4), TrainingOptions{}));
  const auto of_phase = [](const RankStep& ranks, Phase phase, std::string_view what) {
    return std::ranges::count_if(ranks.step.graph.operators(), [&](const Operator& op) {
      return op.phase == phase && op.op_type == what;
    });
  };
  const RankStep plain =
      partition_step(step, std::vector<MeshAxis>{{.name = "tensor", .size = 2, .weights = true}});
  // Two layers, each with one after attention and one after its products; one of the embedding.
  EXPECT_EQ(of_phase(plain, Phase::forward, "AllReduce"), 5);
  EXPECT_EQ(of_phase(plain, Phase::backward, "AllReduce"), 5);
  EXPECT_EQ(of_phase(plain, Phase::forward, "AllGather"), 0);
  EXPECT_EQ(of_phase(plain, Phase::backward, "AllGather"), 0);
  const RankStep between = partition_step(
      step, std::vector<MeshAxis>{
                {.name = "tensor", .size = 2, .inputs = 1, .weights = true, .between = true}});
  EXPECT_EQ(of_phase(between, Phase::forward, "ReduceScatter"), 5);
  EXPECT_EQ(of_phase(between, Phase::forward, "AllGather"), 5);
  EXPECT_EQ(of_phase(between, Phase::backward, "ReduceScatter"), 5);
  EXPECT_EQ(of_phase(between, Phase::forward, "AllReduce"), 0);
}

TEST(Partition, SaysWhatDoesNotDivide) {
  const TrainingGraph step =
      fold_views(make_training_graph(test::read_network("gpt2_nano.onnx", 4), TrainingOptions{}));
  EXPECT_THROW(
      partition_step(step, std::vector<MeshAxis>{{.name = "data", .size = 3, .inputs = 0}}),
      InfeasibleError);
  EXPECT_THROW(
      partition_step(step, std::vector<MeshAxis>{{.name = "tensor", .size = 3, .weights = true}}),
      InfeasibleError);
}

} // namespace monet
