// Element types by role: bytes, casts, and that ONNX accepts what is written.
#include "training_graph/read_options.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

namespace monet {
namespace {

/// Three layers of a convolutional network with everything that reduces.
TinyNetwork network() {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 3, 6, 6});
  const TensorId c =
      n.op("Conv", {x, n.parameter("w", {4, 3, 3, 3}), n.parameter("b", {4})}, {2, 4, 4, 4});
  const TensorId y = n.op("BatchNormalization",
                          {c, n.parameter("scale", {4}), n.parameter("shift", {4}),
                           n.buffer("mean", {4}), n.buffer("var", {4})},
                          {2, 4, 4, 4});
  const TensorId r = n.op("Relu", {y}, {2, 4, 4, 4});
  const TensorId p =
      n.op("MaxPool", {r}, {2, 4, 2, 2}, with("kernel_shape", std::vector<std::int64_t>{3, 3}));
  const TensorId f = n.op("Flatten", {p}, {2, 16});
  const TensorId g = n.op("Gemm", {f, n.parameter("w2", {8, 16}), n.parameter("b2", {8})}, {2, 8},
                          with("transB", std::int64_t{1}));
  const TensorId s = n.op("Softmax", {g}, {2, 8}, with("axis", std::int64_t{-1}));
  n.output(n.op("MatMul", {s, n.parameter("w3", {8, 5})}, {2, 5}));
  return n;
}

TrainingGraph step_of(const std::string& options) {
  const TrainingGraph step =
      make_training_graph(network().graph, read_options("{" + options + "}"));
  verify(step);
  verify(fold_views(step));
  return step;
}

ElementType type_named(const Graph& graph, std::string_view tensor) {
  return graph.tensor(graph.find_tensor(tensor).value()).type;
}

TEST(Sizes, BlocksShareAScale) {
  Tensor tensor;
  tensor.type = ElementType::mxfp4_e2m1;
  tensor.shape = {3, 32};
  EXPECT_EQ(size_of(tensor).value, 3 * (32 * 4 + 8));
  tensor.shape = {3, 33}; // two blocks a row, the second one padded
  EXPECT_EQ(size_of(tensor).value, 3 * 2 * (32 * 4 + 8));
  tensor.shape = {4, 2, 3, 3}; // rows of a kernel: 72 elements
  EXPECT_EQ(size_of(tensor).value, 3 * (32 * 4 + 8));
  tensor.type = ElementType::mxfp6_e3m2;
  tensor.shape = {};
  EXPECT_EQ(size_of(tensor).value, 32 * 6 + 8);
  tensor.shape = {0, 5};
  EXPECT_EQ(size_of(tensor).value, 0);
  EXPECT_EQ(storage_of(ElementType::mxint8, 64).value, 64 * 8 + 2 * 8);
  EXPECT_EQ(storage_of(ElementType::bf16, 5).value, 80);
}

TEST(Casts, AreAbsentWhereAnArrayTakesBothTypes) {
  for (const std::string precision :
       {"{}", "{weights: bf16, master_weights: fp32, activations: bf16, gradients: bf16}",
        "{weights: fp8_e4m3, activations: fp8_e4m3, gradients: fp8_e5m2, master_weights: fp32}",
        "{weights: mxfp4_e2m1, activations: mxfp8_e4m3, gradients: mxfp8_e5m2}",
        "{weights: fp32, activations: tf32}"}) {
    const TrainingGraph step = step_of("precision: " + precision);
    EXPECT_EQ(count_ops(step.graph, "Cast", Phase::forward), 0) << precision;
    EXPECT_EQ(count_ops(step.graph, "Cast", Phase::backward), 0) << precision;
  }
}

/// As torch.autocast does: every weight and bias of a product once a step.
TEST(Casts, BringWeightsToTheTypeOfActivations) {
  const TrainingGraph step = step_of("precision: {activations: bf16, gradients: bf16}");
  EXPECT_EQ(count_ops(step.graph, "Cast", Phase::forward), 5); // w, b, w2, b2, w3
  const Operator* conv = find_op(step.graph, "Conv", Phase::forward);
  EXPECT_EQ(step.graph.tensor(*conv->inputs[1]).type, ElementType::bf16);
  const Operator* cast = find_op(step.graph, "Cast", Phase::forward);
  EXPECT_EQ(cast->nest.work.total(), 1); // it costs what it costs
  const MacSplit macs = count_macs(step.graph);
  EXPECT_EQ(macs.backward_weight, macs.forward); // still gradients of weights
  for (const ParameterRecord& record : step.parameters)
    EXPECT_EQ(step.graph.tensor(record.weight).type, ElementType::fp32);
}

TEST(Casts, BringBackwardOperandsToTheWiderType) {
  const TrainingGraph step =
      step_of("precision: {weights: fp8_e4m3, activations: fp8_e4m3, gradients: bf16}");
  int products = 0;
  for (const Operator& op : step.graph.operators()) {
    if (op.phase != Phase::backward || op.nest.compute != ComputeKind::mac)
      continue;
    EXPECT_EQ(step.graph.tensor(*op.inputs[0]).type, ElementType::bf16) << op.name;
    EXPECT_EQ(step.graph.tensor(*op.inputs[1]).type, ElementType::bf16) << op.name;
    ++products;
  }
  EXPECT_EQ(products, 5);
}

TEST(Casts, AdaptersTrainBesideFrozenWeightsInBlocks) {
  const TrainingGraph step =
      step_of("precision: {weights: bf16, activations: bf16, gradients: bf16, "
              "frozen_weights: mxfp4_e2m1}, trainable: {lora: {rank: 2, targets: [w2]}}");
  EXPECT_EQ(type_named(step.graph, "w2"), ElementType::mxfp4_e2m1);
  EXPECT_EQ(type_named(step.graph, "w2.cast"), ElementType::bf16);
  EXPECT_EQ(type_named(step.graph, "w2.lora_A"), ElementType::bf16);
}

TEST(Reductions, KeepTheirOwnType) {
  const TrainingGraph step =
      step_of("precision: {weights: bf16, activations: bf16, gradients: bf16, "
              "master_weights: fp32, accumulate: fp32}");
  EXPECT_EQ(step.graph.tensor(*step.loss).type, ElementType::fp32);
  EXPECT_EQ(type_named(step.graph, "log_probabilities"), ElementType::fp32);
  const Operator* norm = find_op(step.graph, "BatchNormalization", Phase::forward);
  EXPECT_EQ(step.graph.tensor(*norm->outputs[3]).type, ElementType::fp32);
  const TrainingGraph half = step_of("precision: {activations: fp16, reductions: fp16}");
  EXPECT_EQ(half.graph.tensor(*half.loss).type, ElementType::fp16);
}

/// ZeRO's count: 2 for the weight, 2 for its gradient, 4 for each of master copy and moments.
TEST(MixedPrecision, AdamKeepsSixteenBytesPerParameter) {
  const TrainingGraph step =
      step_of("precision: {weights: bf16, activations: bf16, gradients: bf16, "
              "master_weights: fp32, optimizer_state: fp32}");
  std::int64_t bits = 0;
  for (const ParameterRecord& record : step.parameters) {
    bits += size_of(step.graph.tensor(record.weight)).value;
    bits += size_of(step.graph.tensor(record.gradient)).value;
    for (const TensorId state : record.states)
      bits += size_of(step.graph.tensor(state)).value;
  }
  EXPECT_EQ(bytes_of({bits}), 16 * trained_count(step));
}

/// ONNX's own inference of types and shapes agrees with what is written.
TEST(Writing, EveryPrecisionPassesTheInferenceOfOnnx) {
  for (const std::string options :
       {"precision: {}",
        "precision: {weights: bf16, master_weights: fp32, activations: bf16, gradients: bf16}",
        "precision: {activations: fp16, gradients: fp16}, loss_scale: dynamic, update: unfused",
        "precision: {weights: fp8_e4m3, activations: fp8_e4m3, gradients: fp8_e5m2}",
        "precision: {weights: int8, activations: mxint8, gradients: bf16}",
        "micro_batches: 2, clip_global_norm: 1",
        "sam: 0.05, loss_scale: dynamic, precision: {weights: bf16, master_weights: fp32, "
        "activations: bf16, gradients: bf16}",
        "sam: 0.05, precision: {weights: int8, activations: mxint8, gradients: fp8_e5m2}",
        "optimizer: muon, update: unfused", "optimizer: adafactor, trainable: {lora: {rank: 2}}"}) {
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(write_onnx(step_of(options).graph)));
    const onnx::ShapeInferenceOptions strict{true, 1, false};
    EXPECT_NO_THROW(
        onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), strict))
        << options;
  }
}

/// The same network, every floating tensor of that type.
Graph written_in(ElementType type) {
  Graph graph = network().graph;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    ElementType& own = graph.tensor(TensorId(i)).type;
    if (is_floating(own))
      own = type;
  }
  return graph;
}

/// Without `precision` types are the file's: gradients and states follow their tensors, sums and
/// statistics stay fp32.
TEST(FileTypes, AreKept) {
  const TrainingGraph step = make_training_graph(written_in(ElementType::fp16), read_options("{}"));
  verify(step);
  verify(fold_views(step));
  for (const char* name : {"w", "x", "Conv_0", "w.grad", "w.first_moment"})
    EXPECT_EQ(type_named(step.graph, name), ElementType::fp16) << name;
  EXPECT_EQ(type_named(step.graph, "log_probabilities"), ElementType::fp32);
  EXPECT_EQ(step.accumulate, ElementType::fp32);
  const TrainingGraph inference = make_inference_graph(written_in(ElementType::bf16));
  EXPECT_EQ(type_named(inference.graph, "Conv_0"), ElementType::bf16);
}

/// Double precision is how networks are written for their numbers.
TEST(FileTypes, DoublesCountAsSingles) {
  const TrainingGraph step = make_training_graph(written_in(ElementType::fp64), read_options("{}"));
  EXPECT_EQ(type_named(step.graph, "w"), ElementType::fp32);
  EXPECT_EQ(type_named(step.graph, "Conv_0"), ElementType::fp32);
  const TrainingGraph wanted =
      make_training_graph(written_in(ElementType::fp64),
                          read_options("{precision: {weights: fp64, activations: fp64}}"));
  EXPECT_EQ(type_named(wanted.graph, "w"), ElementType::fp64);
}

TEST(FileTypes, OptionsHaveTheLastWord) {
  const TrainingGraph step =
      make_training_graph(written_in(ElementType::fp16),
                          read_options("{precision: {activations: bf16, accumulate: int16}}"));
  EXPECT_EQ(type_named(step.graph, "w"), ElementType::fp16);
  EXPECT_EQ(type_named(step.graph, "Conv_0"), ElementType::bf16);
  EXPECT_EQ(type_named(step.graph, "w.grad"), ElementType::fp32);
  EXPECT_EQ(step.accumulate, ElementType::int16);
}

} // namespace
} // namespace monet
