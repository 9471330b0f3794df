// What ranks compute together is what one device computes.
#include "cluster/ranks.hpp"

#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/operators.hpp"
#include "monet/workload/views.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace monet {

namespace {

using Random = std::mt19937_64;

std::int64_t pick(Random& random, std::initializer_list<std::int64_t> from) {
  const auto at = static_cast<std::ptrdiff_t>(random() % from.size());
  return *(from.begin() + at);
}

Graph read_network(const std::string& name, std::int64_t batch) {
  OnnxReadOptions read;
  read.batch = batch;
  return read_onnx(MONET_SOURCE_DIR "/data/workload/" + name, read);
}

/// x [B, 24] -> three products with biases and activations -> 8 classes.
Graph small_mlp(std::int64_t batch, bool linear = false) {
  Graph graph;
  graph.name = "mlp";
  TensorId x = graph.add_tensor({.name = "x", .shape = {batch, 24}, .kind = TensorKind::input});
  graph.inputs = {x};
  const std::vector<std::int64_t> widths{24, 48, 16, 8};
  const auto append = [&](const std::string& type, const std::string& name,
                          std::vector<std::optional<TensorId>> inputs, std::int64_t width) {
    const TensorId made = graph.add_tensor({.name = name, .shape = {batch, width}});
    build_nest(graph, graph.add_operator({.name = name + ".op",
                                          .op_type = type,
                                          .inputs = std::move(inputs),
                                          .outputs = {made}}));
    return made;
  };
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::string layer = fmt::format("{}", i);
    const TensorId weight = graph.add_tensor(
        {.name = "w" + layer, .shape = {widths[i], widths[i + 1]}, .kind = TensorKind::parameter});
    x = append("MatMul", "y" + layer, {x, weight}, widths[i + 1]);
    if (linear)
      continue;
    const TensorId bias = graph.add_tensor(
        {.name = "b" + layer, .shape = {widths[i + 1]}, .kind = TensorKind::parameter});
    x = append("Add", "z" + layer, {x, bias}, widths[i + 1]);
    if (i + 2 < widths.size())
      x = append("Gelu", "a" + layer, {x}, widths[i + 1]);
  }
  graph.outputs = {x};
  return graph;
}

TrainingOptions some_options(Random& random) {
  TrainingOptions options;
  CrossEntropy loss;
  if (random() % 4 == 0)
    loss.label_smoothing = 0.1;
  if (random() % 4 == 0)
    loss.ignore_index = 3;
  options.loss = loss;
  switch (random() % 5) {
  case 0:
    options.update.optimizer = Sgd{.learning_rate = 0.1};
    break;
  case 1:
    options.update.optimizer = Sgd{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
    break;
  case 2:
    options.update.optimizer = Adam{.epsilon = 1e-4};
    break;
  case 3:
    options.update.optimizer = AdamW{.epsilon = 1e-4};
    break;
  default:
    options.update.optimizer = Lamb{.epsilon = 1e-4};
  }
  if (random() % 3 == 0)
    options.update.clip_global_norm = 0.5;
  if (random() % 4 == 0)
    options.update.loss_scale = LossScaleOptions{.initial = 8.0};
  options.micro_batches = pick(random, {1, 1, 2});
  return options;
}

struct Sizes {
  bool tokens = false; ///< inputs have a second axis of tokens
  std::int64_t tensor = 4;
};

std::vector<MeshAxis> some_mesh(Random& random, const Sizes& sizes) {
  std::vector<MeshAxis> mesh;
  const std::int64_t data = pick(random, {1, 2, 4});
  const std::int64_t context = sizes.tokens ? pick(random, {1, 1, 2}) : 1;
  const std::int64_t tensor = std::min<std::int64_t>(pick(random, {1, 2, 4}), sizes.tensor);
  mesh.push_back(
      {.name = "data", .size = data, .inputs = 0, .zero = static_cast<int>(random() % 4)});
  mesh.push_back({.name = "context", .size = context, .inputs = 1});
  MeshAxis last{.name = "tensor", .size = tensor, .weights = true};
  if (sizes.tokens && random() % 2 == 0) {
    last.inputs = 1;
    last.between = true;
  }
  mesh.push_back(last);
  return mesh;
}

std::string words(const std::vector<MeshAxis>& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh)
    text +=
        fmt::format("{}={} zero={} between={}; ", axis.name, axis.size, axis.zero, axis.between);
  return text;
}

void expect_same(const TrainingGraph& step, const std::vector<MeshAxis>& mesh, int steps) {
  const RankStep ranks = partition_step(step, mesh);
  verify(ranks.step);
  const auto found = test::differences(step, ranks, steps);
  ASSERT_FALSE(found.empty());
  EXPECT_LE(found.front().relative, 1e-11) << found.front().tensor << " with " << words(mesh);
}

} // namespace

TEST(Partition, RandomStrategiesOfAnMlpComputeWhatOneDeviceComputes) {
  Random random(1);
  for (int i = 0; i < 150; ++i) {
    const TrainingOptions options = some_options(random);
    const TrainingGraph step =
        fold_views(make_training_graph(small_mlp(16 / options.micro_batches), options));
    SCOPED_TRACE(i);
    expect_same(step, some_mesh(random, {}), 2);
  }
}

TEST(Partition, RandomStrategiesOfATransformerComputeWhatOneDeviceComputes) {
  Random random(2);
  for (int i = 0; i < 60; ++i) {
    const TrainingOptions options = some_options(random);
    const TrainingGraph step =
        fold_views(make_training_graph(read_network("gpt2_nano.onnx", 4), options));
    SCOPED_TRACE(i);
    expect_same(step, some_mesh(random, {.tokens = true}), 1);
  }
}

TEST(Partition, IntegersThroughLinearNetworksStayTheSameToTheBit) {
  TrainingOptions options;
  options.loss = Mse{.reduction = Reduction::sum};
  options.update.optimizer = Sgd{.learning_rate = 1.0};
  const TrainingGraph step = fold_views(make_training_graph(small_mlp(8, true), options));
  for (const std::int64_t tensor : {1, 2, 4}) {
    for (const int zero : {0, 1, 2, 3}) {
      const std::vector<MeshAxis> mesh{{.name = "data", .size = 2, .inputs = 0, .zero = zero},
                                       {.name = "tensor", .size = tensor, .weights = true}};
      const RankStep ranks = partition_step(step, mesh);
      const auto found = test::differences(step, ranks, 1, true);
      EXPECT_EQ(found.front().relative, 0) << found.front().tensor << words(mesh);
    }
  }
}

TEST(Partition, BatchNormalisationOverRanksIsThatOfMicroBatches) {
  TrainingOptions options;
  options.update.optimizer = Sgd{.learning_rate = 0.1, .momentum = 0.9};
  const TrainingGraph whole =
      fold_views(make_training_graph(read_network("resnet20_cifar.onnx", 4), options));
  options.micro_batches = 2;
  const TrainingGraph micro =
      fold_views(make_training_graph(read_network("resnet20_cifar.onnx", 2), options));
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
      fold_views(make_training_graph(read_network("gpt2_nano.onnx", 4), TrainingOptions{}));
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
      fold_views(make_training_graph(read_network("gpt2_nano.onnx", 4), TrainingOptions{}));
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
      fold_views(make_training_graph(read_network("gpt2_nano.onnx", 4), TrainingOptions{}));
  EXPECT_THROW(
      partition_step(step, std::vector<MeshAxis>{{.name = "data", .size = 3, .inputs = 0}}),
      InfeasibleError);
  EXPECT_THROW(
      partition_step(step, std::vector<MeshAxis>{{.name = "tensor", .size = 3, .weights = true}}),
      InfeasibleError);
}

} // namespace monet
