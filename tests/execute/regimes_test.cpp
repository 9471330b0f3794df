// Training regimes by their numbers: micro-batches, adapters, scaled losses, skipped steps.
#include "training_graph/read_options.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace monet {
namespace {

using Numbers = std::vector<double>;

/// x [batch, 3] -> Gemm -> Tanh -> MatMul -> Add: [batch, 2].
TinyNetwork layers(std::int64_t batch) {
  TinyNetwork n;
  const TensorId x = n.input("x", {batch, 3});
  const TensorId h = n.op("Gemm", {x, n.parameter("w1", {4, 3}), n.parameter("b1", {4})},
                          {batch, 4}, with("transB", std::int64_t{1}));
  const TensorId t = n.op("Tanh", {h}, {batch, 4});
  const TensorId y = n.op("MatMul", {t, n.parameter("w2", {4, 2})}, {batch, 2});
  n.output(n.op("Add", {y, n.parameter("b2", {2})}, {batch, 2}));
  return n;
}

Numbers pattern(std::int64_t count, double phase) {
  Numbers values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(1.7 * static_cast<double>(i) + phase));
  return values;
}

/// Weights by name, so that several graphs have the same.
void set_weights(Execution& execution, const Graph& graph) {
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    if (tensor.kind != TensorKind::parameter || tensor.producer)
      continue;
    const double phase = static_cast<double>(tensor.name.front()) + 3.0 * tensor.name.back();
    execution.set(TensorId(i), pattern(element_count(tensor), phase));
  }
}

Numbers gradient(const Execution& execution, const TrainingGraph& step, std::string_view weight) {
  for (const ParameterRecord& record : step.parameters) {
    if (step.graph.tensor(record.weight).name == weight)
      return execution.get(record.gradient);
  }
  return {};
}

/// What plain descent with a rate of 1 takes from a weight: its gradient, in the weight's layout
/// also where views are folded.
Numbers change(const Execution& execution, const TrainingGraph& step, std::string_view weight) {
  for (const ParameterRecord& record : step.parameters) {
    if (step.graph.tensor(record.weight).name != weight)
      continue;
    Numbers result = execution.get(record.weight);
    const Numbers after = execution.get(record.updated);
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] -= after[i];
    return result;
  }
  return {};
}

void expect_near(const Numbers& actual, const Numbers& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

/// Four micro-batches of two samples against a batch of eight.
TEST(MicroBatches, GradientsAreThoseOfTheWholeBatch) {
  const Numbers x = pattern(8 * 3, 0.1);
  const Numbers labels{0, 1, 1, 0, 1, 0, 0, 1};
  const TrainingGraph whole =
      make_training_graph(layers(8).graph, read_options("{loss: cross_entropy}"));
  Execution one(whole.graph);
  set_weights(one, whole.graph);
  one.set(*whole.graph.find_tensor("x"), x);
  one.set(*whole.graph.find_tensor("labels"), labels);
  fill(one, whole, 0);
  one.run();

  const TrainingGraph unfolded =
      make_training_graph(layers(2).graph, read_options("{loss: cross_entropy, micro_batches: 4}"));
  for (const TrainingGraph& step : {unfolded, fold_views(unfolded)}) {
    verify(step);
    Execution parts(step.graph);
    set_weights(parts, step.graph);
    for (std::size_t m = 0; m < 4; ++m) {
      const std::string suffix = m == 0 ? "" : ".micro_" + std::to_string(m + 1);
      parts.set(
          *step.graph.find_tensor("x" + suffix),
          Numbers(x.begin() + 6 * static_cast<int>(m), x.begin() + 6 * static_cast<int>(m + 1)));
      parts.set(*step.graph.find_tensor("labels" + suffix),
                Numbers(labels.begin() + 2 * static_cast<int>(m),
                        labels.begin() + 2 * static_cast<int>(m + 1)));
    }
    fill(parts, step, 0);
    parts.run();
    EXPECT_NEAR(parts.get(*step.loss)[0], one.get(*whole.loss)[0], 1e-14);
    for (const std::string name : {"w1", "b1", "w2", "b2"}) {
      expect_near(gradient(parts, step, name), gradient(one, whole, name), 1e-14);
    }
    EXPECT_EQ(step.parameters.size(), 4U);
  }
  const MacSplit of_whole = count_macs(whole.graph);
  const MacSplit of_parts = count_macs(unfolded.graph);
  EXPECT_EQ(of_parts.forward, of_whole.forward);
  EXPECT_EQ(of_parts.backward_weight, of_whole.backward_weight);
  EXPECT_EQ(of_parts.backward_input, of_whole.backward_input);
  EXPECT_EQ(count_ops(unfolded.graph, "AdamUpdate", Phase::update), 4);
}

TEST(MicroBatches, RunningStatisticsPassFromOneToTheNext) {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 3, 2, 2});
  n.output(n.op("BatchNormalization",
                {x, n.parameter("scale", {3}), n.parameter("bias", {3}), n.buffer("mean", {3}),
                 n.buffer("var", {3})},
                {2, 3, 2, 2}));
  const TrainingGraph step =
      make_training_graph(n.graph, read_options("{loss: mse, micro_batches: 3}"));
  verify(step);
  verify(fold_views(step));
  std::vector<TensorId> readers;
  for (const Operator& op : step.graph.operators()) {
    if (op.op_type == "BatchNormalization")
      readers.push_back(*op.inputs[3]);
  }
  ASSERT_EQ(readers.size(), 3U);
  const TensorId mean = *step.graph.find_tensor("mean");
  EXPECT_EQ(readers[0], mean);
  EXPECT_EQ(step.graph.tensor(readers[1]).alias_of, mean);
  EXPECT_EQ(step.graph.tensor(readers[2]).alias_of, mean);
  EXPECT_NE(readers[1], readers[2]);
}

/// The change of a weight is alpha/rank * B*A; gradients of A and B follow from that of the weight.
TEST(Lora, GradientsFollowFromThatOfTheWeight) {
  const TrainingGraph plain =
      make_training_graph(layers(2).graph, read_options("{loss: cross_entropy}"));
  const TrainingGraph step = make_training_graph(
      layers(2).graph,
      read_options("{loss: cross_entropy, trainable: {lora: {rank: 2, alpha: 6, targets: [w1]}}}"));
  verify(step);
  verify(fold_views(step));
  ASSERT_EQ(step.parameters.size(), 2U);
  EXPECT_EQ(trained_count(step), 2 * (3 + 4));

  Execution adapted(step.graph);
  set_weights(adapted, step.graph);
  const Numbers a = pattern(2 * 3, 0.3); // [rank, in]
  const Numbers b = pattern(4 * 2, 0.9); // [out, rank]
  adapted.set(*step.graph.find_tensor("w1.lora_A"), a);
  adapted.set(*step.graph.find_tensor("w1.lora_B"), b);
  fill(adapted, step, 5);
  adapted.run();

  Execution merged(plain.graph); // w1 + 3 * B*A
  set_weights(merged, plain.graph);
  const TensorId w1 = *plain.graph.find_tensor("w1");
  Numbers weight = merged.get(w1);
  for (std::size_t o = 0; o < 4; ++o) {
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t r = 0; r < 2; ++r)
        weight[o * 3 + i] += 3.0 * b[o * 2 + r] * a[r * 3 + i];
    }
  }
  merged.set(w1, weight);
  fill(merged, plain, 5);
  merged.run();
  EXPECT_NEAR(adapted.get(*step.loss)[0], merged.get(*plain.loss)[0], 1e-13);

  const Numbers dw = gradient(merged, plain, "w1");
  Numbers da(6, 0.0);
  Numbers db(8, 0.0);
  for (std::size_t o = 0; o < 4; ++o) {
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t r = 0; r < 2; ++r) {
        da[r * 3 + i] += 3.0 * b[o * 2 + r] * dw[o * 3 + i];
        db[o * 2 + r] += 3.0 * a[r * 3 + i] * dw[o * 3 + i];
      }
    }
  }
  expect_near(gradient(adapted, step, "w1.lora_A"), da, 1e-13);
  expect_near(gradient(adapted, step, "w1.lora_B"), db, 1e-13);
}

TEST(Lora, ConvolutionsAndProductsOnEitherSideHaveAdapters) {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 4, 6, 5});
  Attributes conv;
  conv.set("strides", std::vector<std::int64_t>{2, 1});
  conv.set("pads", std::vector<std::int64_t>{1, 0, 1, 0});
  conv.set("group", std::int64_t{2});
  const TensorId c = n.op("Conv", {x, n.parameter("kernel", {6, 2, 3, 3})}, {2, 6, 3, 3}, conv);
  const TensorId right = n.op("MatMul", {c, n.parameter("right", {3, 7})}, {2, 6, 3, 7});
  const TensorId y = n.op("MatMul", {n.parameter("left", {5, 3}), right}, {2, 6, 5, 7});
  n.output(n.op("Reshape", {y, n.integers("shape", {12, 35})}, {12, 35}));
  const TrainingGraph step = make_training_graph(
      n.graph, read_options("{loss: cross_entropy, trainable: {lora: {rank: 3}}}"));
  verify(step);
  EXPECT_EQ(step.parameters.size(), 6U);
  // per group of the kernel: 3 x (2*3*3) down, 3 x 3 up
  EXPECT_EQ(trained_count(step), 2 * 3 * 18 + 6 * 3 + 3 * (3 + 7) + 3 * (5 + 3));
  Execution execution(step.graph);
  fill(execution, step, 1);
  execution.run();
  EXPECT_TRUE(std::isfinite(execution.get(*step.loss)[0]));
}

TEST(Lora, ATargetWithoutAProductIsAnError) {
  try {
    make_training_graph(
        layers(2).graph,
        read_options("{loss: cross_entropy, trainable: {lora: {targets: [w1, b1]}}}"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("matches the LoRA target 'b1'"), std::string::npos);
  }
}

/// Gradients of the trained channels are those rows of the whole gradient, and nothing else is
/// multiplied for them.
/// A tied weight: another operator reads it before the product that makes it one.
TEST(SparseUpdate, SplitsAWeightBeforeItsFirstReader) {
  TinyNetwork n;
  const TensorId x = n.input("x", {4}, ElementType::int64);
  const TensorId table = n.parameter("w", {5, 3});
  const TensorId h = n.op("Tanh", {n.op("Gather", {table, x}, {4, 3})}, {4, 3});
  const TensorId turned =
      n.op("Transpose", {table}, {3, 5}, with("perm", std::vector<std::int64_t>{1, 0}));
  n.output(n.op("MatMul", {h, turned}, {4, 5}));
  const TrainingGraph whole = make_training_graph(n.graph, read_options("{loss: mse}"));
  const TrainingGraph split = make_training_graph(
      n.graph,
      read_options("{loss: mse, trainable: {sparse: {biases: false, channels: {w: 0.6}}}}"));
  verify(split);
  verify(fold_views(split));
  const Numbers weights = pattern(15, 0.3);
  const auto gradient_of = [&](const TrainingGraph& step, std::string_view weight) {
    Execution execution(step.graph);
    set_by_name(execution, step, "w", weights); // the file's weight, whole or in parts
    fill(execution, step, 0);
    execution.run();
    return gradient(execution, step, weight);
  };
  Numbers expected = gradient_of(whole, "w");
  expected.resize(9);
  expect_near(gradient_of(split, "w.trained"), expected, 1e-14);
}

/// A number given for the file's weight reaches both parts, along any axis.
TEST(SparseUpdate, TakesTheNumbersOfTheFile) {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 3});
  n.output(n.op("MatMul", {x, n.parameter("w", {3, 4})}, {2, 4}));
  const TrainingGraph step = make_training_graph(
      n.graph, read_options("{loss: mse, trainable: {sparse: {channels: {w: 0.5}}}}"));
  Execution execution(step.graph);
  EXPECT_EQ(set_by_name(execution, step, "w", Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), 2);
  EXPECT_EQ(execution.get(*step.graph.find_tensor("w.trained")), (Numbers{0, 1, 4, 5, 8, 9}));
  EXPECT_EQ(execution.get(*step.graph.find_tensor("w.frozen")), (Numbers{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(set_by_name(execution, step, "w", Numbers(12, 1.0)), 0) << "what is set stays";
}

TEST(SparseUpdate, ComputesTheFirstChannelsAndBiasesAlone) {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 4, 5, 5});
  Attributes grouped;
  grouped.set("group", std::int64_t{2});
  const TensorId c = n.op("Conv", {x, n.parameter("kernel", {6, 2, 2, 2}), n.parameter("b1", {6})},
                          {2, 6, 4, 4}, grouped);
  const TensorId t = n.op("Tanh", {c}, {2, 6, 4, 4});
  const TensorId f = n.op("Reshape", {t, n.integers("shape", {2, 96})}, {2, 96});
  const TensorId g = n.op("Gemm", {f, n.parameter("w2", {8, 96}), n.parameter("b2", {8})}, {2, 8},
                          with("transB", std::int64_t{1}));
  const TensorId m = n.op("MatMul", {g, n.parameter("w3", {8, 5})}, {2, 5});
  const TensorId w4 = n.op("Transpose", {n.parameter("w4", {6, 5})}, {5, 6},
                           with("perm", std::vector<std::int64_t>{1, 0}));
  n.output(n.op("MatMul", {m, w4}, {2, 6}));
  const TrainingGraph whole = make_training_graph(
      n.graph, read_options("{loss: cross_entropy, optimizer: {type: sgd, learning_rate: 1}}"));
  const TrainingGraph unfolded = make_training_graph(
      n.graph,
      read_options("{loss: cross_entropy, optimizer: {type: sgd, learning_rate: 1}, trainable: "
                   "{sparse: {channels: {kernel: 0.4, w2: 0.25, "
                   "'w3': 0.6, w4: 0.5}}}}"));
  for (const TrainingGraph& step : {unfolded, fold_views(unfolded)}) {
    verify(step);
    Execution all(whole.graph);
    fill(all, whole, 2);
    all.run();
    Execution some(step.graph);
    std::map<std::string, std::size_t> rows{{"kernel", 3}, {"w2", 2}, {"w3", 3}, {"w4", 3}};
    for (const auto& [name, count] : rows) {
      const TensorId id = whole.graph.find_tensor(name).value();
      const auto& shape = whole.graph.tensor(id).shape;
      const bool columns = name == "w3";
      const Numbers values = all.get(id);
      const auto width = static_cast<std::size_t>(
          columns ? shape[1] : element_count(whole.graph.tensor(id)) / shape[0]);
      Numbers first;
      Numbers rest;
      for (std::size_t i = 0; i < values.size(); ++i)
        ((columns ? i % width : i / width) < count ? first : rest).push_back(values[i]);
      ASSERT_TRUE(step.graph.find_tensor(name + ".trained")) << name;
      ASSERT_TRUE(step.graph.find_tensor(name + ".frozen")) << name;
      some.set(*step.graph.find_tensor(name + ".trained"), first);
      some.set(*step.graph.find_tensor(name + ".frozen"), rest);
    }
    for (const std::string name : {"b1", "b2"})
      some.set(*step.graph.find_tensor(name), all.get(*whole.graph.find_tensor(name)));
    fill(some, step, 2);
    some.run();
    EXPECT_NEAR(some.get(*step.loss)[0], all.get(*whole.loss)[0], 1e-13);
    EXPECT_EQ(step.parameters.size(), 6U);
    expect_near(change(some, step, "b1"), change(all, whole, "b1"), 1e-13);
    for (const auto& [name, count] : rows) {
      const bool columns = name == "w3";
      const Numbers full = change(all, whole, name);
      const std::size_t width = columns ? 5 : full.size() / (name == "w2" ? 8 : 6);
      Numbers expected;
      for (std::size_t i = 0; i < full.size(); ++i) {
        if ((columns ? i % width : i / width) < count)
          expected.push_back(full[i]);
      }
      expect_near(change(some, step, name + ".trained"), expected, 1e-13);
    }
  }
  const MacSplit macs = count_macs(unfolded.graph);
  const std::int64_t conv = 2 * 6 * 2 * 16 * 4;
  EXPECT_EQ(macs.backward_weight, conv / 2 + 2 * 96 * 8 / 4 + 2 * 8 * 3 + 2 * 5 * 3);
}

TEST(LossScale, UpdatesAreThoseWithoutIt) {
  const TrainingGraph plain =
      make_training_graph(layers(2).graph, read_options("{loss: cross_entropy}"));
  Execution expected(plain.graph);
  set_weights(expected, plain.graph);
  fill(expected, plain, 3);
  expected.run();
  for (const std::string update : {"fused", "unfused"}) {
    const TrainingGraph step = make_training_graph(
        layers(2).graph,
        read_options(
            "{loss: cross_entropy, loss_scale: {initial: 1024, growth_interval: 1}, update: " +
            update + "}"));
    verify(step);
    verify(fold_views(step));
    Execution scaled(step.graph);
    set_weights(scaled, step.graph);
    fill(scaled, step, 3);
    scaled.run();
    EXPECT_EQ(scaled.get(*step.found_inf)[0], 0.0);
    for (std::size_t i = 0; i < step.parameters.size(); ++i) {
      expect_near(scaled.get(step.parameters[i].updated), expected.get(plain.parameters[i].updated),
                  1e-15);
    }
    scaled.advance();
    EXPECT_EQ(scaled.get(*step.loss_scale)[0], 2048.0); // grown after one finite step
  }
}

TEST(LossScale, AStepThatOverflowsChangesTheScaleAlone) {
  for (const std::string options :
       {"loss_scale: {initial: 1024}", "loss_scale: {initial: 1024}, update: unfused",
        "loss_scale: {initial: 1024}, clip_global_norm: 1"}) {
    const TrainingGraph step = make_training_graph(
        layers(2).graph, read_options("{loss: cross_entropy, " + options + "}"));
    Execution execution(step.graph);
    set_weights(execution, step.graph);
    Numbers x(6, 0.5);
    x[1] = std::numeric_limits<double>::infinity();
    execution.set(*step.graph.find_tensor("x"), x);
    fill(execution, step, 3);
    execution.run();
    EXPECT_EQ(execution.get(*step.found_inf)[0], 1.0);
    for (const ParameterRecord& record : step.parameters) {
      EXPECT_EQ(execution.get(record.updated), execution.get(record.weight));
      for (const TensorId state : record.states) {
        for (const double value : execution.get(state))
          EXPECT_EQ(value, 0.0);
      }
    }
    execution.advance();
    EXPECT_EQ(execution.get(*step.loss_scale)[0], 512.0);
  }
}

} // namespace
} // namespace monet
