// Both gradients of a product in one operator: the numbers are those of two, bit for bit, whatever
// else the step does.
#include "execute/step_results.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace monet {
namespace {

/// Every kind of product between layers that are trained, each with a gradient of its input.
Graph products_network() {
  TinyNetwork n;
  const auto pads = with("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  TensorId x = n.op("Conv", {n.input("x", {4, 3, 6, 6}), n.parameter("w1", {4, 3, 3, 3})},
                    {4, 4, 6, 6}, pads);
  Attributes strided = pads;
  strided.set("strides", std::vector<std::int64_t>{2, 2});
  x = n.op("Conv", {n.op("Relu", {x}, {4, 4, 6, 6}), n.parameter("w2", {6, 4, 3, 3})}, {4, 6, 3, 3},
           strided);
  x = n.op("ConvTranspose", {n.op("Gelu", {x}, {4, 6, 3, 3}), n.parameter("w3", {6, 2, 2, 2})},
           {4, 2, 4, 4});
  x = n.op("Reshape", {x, n.integers("shape", {4, 32})}, {4, 32});
  Attributes gemm = with("alpha", 0.5);
  gemm.set("transB", std::int64_t{1});
  x = n.op("Gemm", {x, n.parameter("w4", {12, 32}), n.parameter("b4", {12})}, {4, 12}, gemm);
  x = n.op("MatMul", {n.op("Relu", {x}, {4, 12}), n.parameter("w5", {12, 8})}, {4, 8});
  x = n.op("Einsum", {x, n.parameter("w6", {8, 5})}, {4, 5},
           with("equation", std::string("bi,io->bo")));
  n.output(x);
  return n.graph;
}
constexpr int kPairs = 5; // all but the first convolution

/// Names of tensors whose numbers differ, or that one step lacks.
std::vector<std::string> differences(const TrainingGraph& a, const TrainingGraph& b) {
  const auto left = test::results(a);
  auto right = test::results(b);
  std::vector<std::string> names;
  for (const auto& [name, numbers] : left) {
    const auto found = right.find(name);
    if (found == right.end() || found->second != numbers)
      names.push_back(name);
    right.erase(name);
  }
  for (const auto& [name, numbers] : right)
    names.push_back(name);
  return names;
}
const std::vector<std::string> kNone;

/// The step with pairs, whose numbers are those of the step without.
TrainingGraph expect_same(TrainingOptions options, int pairs) {
  options.loss = Mse{};
  const TrainingGraph separate = make_training_graph(products_network(), options);
  options.paired_gradients = {"*"};
  TrainingGraph paired = make_training_graph(products_network(), options);
  verify(paired);
  EXPECT_EQ(count_ops(separate.graph, "ProductGrad", Phase::backward), 0);
  EXPECT_EQ(count_ops(paired.graph, "ProductGrad", Phase::backward), pairs);
  EXPECT_EQ(differences(paired, separate), kNone);
  EXPECT_EQ(differences(fold_views(paired), fold_views(separate)), kNone);
  EXPECT_EQ(paired.stored_bytes, separate.stored_bytes);
  return paired;
}

TEST(PairedGradients, EveryKindOfProduct) {
  expect_same({}, kPairs);
}

TEST(PairedGradients, WithEverythingElseThatAStepDoes) {
  TrainingOptions options;
  options.micro_batches = 2;
  expect_same(options, 2 * kPairs);
  options = {};
  options.sam_rho = 0.05;
  expect_same(options, 2 * kPairs);
  options = {};
  options.storage.recompute = {"*"};
  expect_same(options, kPairs);
  options = {};
  options.storage.offload = {"*"};
  expect_same(options, kPairs);
  options = {};
  options.storage.policy = StorePolicy::pytorch_eager;
  expect_same(options, kPairs);
  options = {};
  options.update.clip_global_norm = 0.5;
  expect_same(options, kPairs);
  options = {};
  options.precision.weights = options.precision.activations = options.precision.gradients =
      ElementType::bf16;
  expect_same(options, kPairs);
}

TEST(PairedGradients, FrozenWeightsHaveNoPartner) {
  TrainingOptions options;
  options.trainable.freeze = {"w3", "w5"};
  expect_same(options, kPairs - 2);
}

TEST(PairedGradients, AreWrittenAndRead) {
  TrainingOptions options;
  const TrainingGraph step = expect_same(options, kPairs);
  const Graph read = read_onnx_bytes(write_onnx(step.graph), "step.onnx");
  EXPECT_EQ(count_ops(read, "ProductGrad", Phase::backward), kPairs);
  for (const Operator& op : read.operators()) {
    if (op.op_type != "ProductGrad")
      continue;
    EXPECT_EQ(op.gradient_of, GradientOf::both);
    EXPECT_EQ(op.nest.products.size(), 2U);
  }
}

} // namespace
} // namespace monet
