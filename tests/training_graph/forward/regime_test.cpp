// Which parameters are trained: patterns, layers, adapters.
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/warnings.hpp"
#include "monet/base/yaml.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>

#include <set>

namespace monet {
namespace MONET_TEST_FILE {

using Names = std::set<std::string>;

/// Three layers: an embedding with a normalisation, two products with biases.
TinyNetwork network() {
  TinyNetwork n;
  const TensorId ids = n.input("ids", {2, 3}, ElementType::int64);
  const TensorId e = n.op("Gather", {n.parameter("table", {5, 4}), ids}, {2, 3, 4});
  const TensorId l = n.op("LayerNormalization",
                          {e, n.parameter("scale", {4}), n.parameter("shift", {4})}, {2, 3, 4});
  const TensorId h = n.op("MatMul", {l, n.parameter("w1", {4, 6})}, {2, 3, 6});
  const TensorId a = n.op("Add", {h, n.parameter("b1", {6})}, {2, 3, 6});
  const TensorId y = n.op("MatMul", {a, n.parameter("w2", {6, 2})}, {2, 3, 2});
  n.output(n.op("Add", {y, n.parameter("b2", {2})}, {2, 3, 2}));
  return n;
}

Names trained(const std::string& text) {
  ProblemList problems;
  const TrainingOptions options =
      read_training_options(parse_yaml("{loss: mse, " + text + "}", "t.yaml"), problems);
  problems.throw_if_any();
  const TrainingGraph step = make_training_graph(network().graph, options);
  verify(step);
  Names names;
  for (const ParameterRecord& record : step.parameters)
    names.insert(step.graph.tensor(record.weight).name);
  return names;
}

std::string message(const std::string& text) {
  try {
    trained(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Regimes, LayersAreCountedFromBothEnds) {
  EXPECT_EQ(trained("trainable: {train_last: 1}"), (Names{"w2", "b2"}));
  EXPECT_EQ(trained("trainable: {train_last: 2}"), (Names{"w1", "b1", "w2", "b2"}));
  EXPECT_EQ(trained("trainable: {layers: {from: 1, to: 1}}"), (Names{"w1", "b1"}));
  EXPECT_EQ(trained("trainable: {layers: {to: 0}}"), (Names{"table", "scale", "shift"}));
  EXPECT_EQ(trained("trainable: {train_last: 2, freeze: 'b*'}"), (Names{"w1", "w2"}));
}

TEST(Regimes, PatternsChooseWhatIsTrained) {
  EXPECT_EQ(trained("trainable: {train: ['b*']}"), (Names{"b1", "b2"}));
  EXPECT_EQ(trained("trainable: {lora: {targets: w2}, train: [b1]}"),
            (Names{"b1", "w2.lora_A", "w2.lora_B"}));
}

TEST(Regimes, WhatTheNetworkLacksIsAnError) {
  EXPECT_EQ(message("trainable: {train_last: 4}"),
            "tiny.onnx: layers -4 to -1 are to be trained, but the network has 3 layers");
  EXPECT_EQ(message("trainable: {layers: {from: 2, to: 1}}"),
            "tiny.onnx: layers 2 to 1 are to be trained, but the network has 3 layers");
  EXPECT_EQ(message("trainable: {train: [w3]}"),
            "tiny.onnx: no parameter matches the train pattern 'w3'");
}

TEST(Regimes, BuffersMayBeFrozenAndGuessesAreWarnings) {
  TinyNetwork n = network();
  const TensorId y = n.graph.outputs.front();
  n.graph.outputs.clear();
  n.output(n.op("Mul", {y, n.buffer("slopes.1", {2})}, {2, 3, 2}));
  n.graph.buffers = {{"slopes.1", "numbers in order", true, 2}, {"mask", "its name", false, 9}};
  TrainingOptions options;
  options.loss = NoLoss{};
  options.trainable.freeze = {"slopes.*"};
  const WarningScope scope;
  EXPECT_EQ(make_training_graph(n.graph, options).parameters.size(), 7U);
  ASSERT_EQ(scope.warnings().size(), 1U);
  EXPECT_EQ(scope.warnings().front().to_string(),
            "tiny.onnx [tensor 'slopes.1']: 2 numbers are treated as a buffer and not trained, "
            "because of numbers in order (to train them set `trainable: {parameters: "
            "['slopes.1']}`)");
}

TEST(Regimes, DoubtfulAndEqualWeightsAreWarnings) {
  TinyNetwork n = network();
  n.graph.doubtful = {{"scale", "numbers in sequence", true, 4}};
  n.graph.equal_weights = {{"onnx::MatMul_3", "table", true, true},
                           {"b1", "w2", false, false},
                           {"gone", "w2", false, false}};
  TrainingOptions options;
  options.loss = NoLoss{};
  const WarningScope scope;
  make_training_graph(n.graph, options);
  std::vector<std::string> texts;
  for (const InputProblem& warning : scope.warnings())
    texts.push_back(warning.to_string());
  EXPECT_EQ(texts,
            (std::vector<std::string>{
                "tiny.onnx: 'b1' is 'w2', bit for bit: they are trained separately (to train "
                "them as one parameter set `trainable: {ties: ['b1']}`)",
                "tiny.onnx [tensor 'onnx::MatMul_3']: 'onnx::MatMul_3' is the transpose of "
                "'table', bit for bit: both are trained as one parameter (to train them separately "
                "set `trainable: {ties: none}`)",
                "tiny.onnx [tensor 'scale']: 4 numbers are treated as a parameter and trained, but "
                "may be a buffer, because of numbers in sequence (to keep "
                "them set `trainable: {buffers: ['scale']}`)"}));
}

TEST(Regimes, BatchNormCanKeepItsStatistics) {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 3, 4, 4});
  const TensorId s = n.op("Conv", {x, n.parameter("w", {3, 3, 1, 1})}, {2, 3, 4, 4});
  n.output(n.op("BatchNormalization",
                {s, n.parameter("scale", {3}), n.parameter("bias", {3}), n.buffer("mean", {3}),
                 n.buffer("var", {3})},
                {2, 3, 4, 4}));
  TrainingOptions options;
  options.loss = NoLoss{};
  options.frozen_batch_norm = true;
  options.trainable.freeze = {"scale", "bias", "w"};
  // Nothing below: the operator itself is what is looked at.
  TinyNetwork head = n;
  const TensorId y = head.graph.outputs.front();
  head.graph.outputs.clear();
  head.output(head.op("Mul", {y, head.parameter("gain", {4})}, {2, 3, 4, 4}));
  const TrainingGraph step = make_training_graph(head.graph, options);
  verify(step);
  const Operator* norm = find_op(step.graph, "BatchNormalization", Phase::forward);
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->outputs.size(), 1U);
  EXPECT_EQ(norm->attributes.integer("training_mode", 1), 0);
}

} // namespace MONET_TEST_FILE
} // namespace monet
