// Blocks that share a scale lie along the axes that products add up: which, and what that takes.
#include "training_graph/read_options.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/yaml.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace monet {
namespace {

/// Weights, activations and gradients in one type.
std::string all_in(const std::string& type, const std::string& more = "") {
  return "{optimizer: sgd, precision: {weights: " + type + ", activations: " + type +
         ", gradients: " + type + more + "}}";
}

TrainingGraph step_in(const Graph& network, const std::string& text) {
  TrainingGraph step = make_training_graph(network, read_options(text));
  verify(step);
  verify(fold_views(step));
  return step;
}

/// x [64, 64] -> MatMul -> MatMul -> MatMul [64, 64]: the second one has both gradients.
TinyNetwork three_products() {
  TinyNetwork n;
  TensorId x = n.input("x", {64, 64});
  for (const char* weight : {"w0", "w1", "w2"})
    x = n.op("MatMul", {x, n.parameter(weight, {64, 64})}, {64, 64});
  n.output(x);
  return n;
}

std::string type_of(const TrainingGraph& step, std::string_view name) {
  return name_of(step.graph.tensor(step.graph.find_tensor(name).value()).type);
}

/// Bits of what the products of the layer with that weight read, by what it is: each tensor and
/// copy once.
struct OperandBits {
  std::int64_t weight = 0;
  std::int64_t activation = 0;
  std::int64_t error = 0;
};
OperandBits operands_of(const TrainingGraph& step, std::string_view forward) {
  std::map<std::string, std::set<TensorId>> read;
  for (const Operator& op : step.graph.operators()) {
    const bool is_forward = op.name == forward;
    const bool backward = op.forward_op && step.graph.op(*op.forward_op).name == forward &&
                          op.gradient_of != GradientOf::none;
    if (op.nest.compute != ComputeKind::mac || !(is_forward || backward))
      continue;
    const TensorId first = *op.inputs[0];
    const TensorId second = *op.inputs[1];
    if (is_forward) {
      read["A"].insert(first);
      read["W"].insert(second);
    } else if (op.gradient_of == GradientOf::weight) {
      read["A"].insert(first);
      read["E"].insert(second);
    } else {
      read["E"].insert(first);
      read["W"].insert(second);
    }
  }
  const auto bits = [&](const std::string& what) {
    std::int64_t sum = 0;
    for (const TensorId id : read[what])
      sum += size_of(step.graph.tensor(id)).value;
    return sum;
  };
  return {bits("W"), bits("A"), bits("E")};
}

/// 2 (w + 8 / 32) bits an element in two copies of vectors, w + 8 / 64 in squares: -50.8, -51.0 and
/// -51.5 % for 8, 6 and 4 bits.
TEST(BlockCopies, SquaresTakeHalfOfTwoVectors) {
  const Graph network = three_products().graph;
  constexpr std::int64_t kElements = 64 * 64;
  for (const auto& [type, width] : std::map<std::string, std::int64_t>{
           {"mxfp8_e4m3", 8}, {"mxfp6_e3m2", 6}, {"mxfp4_e2m1", 4}}) {
    for (const char* how : {"copy", "requantise"}) {
      const OperandBits vectors = operands_of(
          step_in(network, all_in(type, std::string(", blocks: {transposed: ") + how + "}")),
          "MatMul_1");
      const OperandBits squares =
          operands_of(step_in(network, all_in(type, ", blocks: {shape: 8x8}")), "MatMul_1");
      for (const auto part :
           {&OperandBits::weight, &OperandBits::activation, &OperandBits::error}) {
        EXPECT_EQ(vectors.*part, 2 * (kElements * width + kElements / 32 * 8)) << type << how;
        EXPECT_EQ(squares.*part, kElements * width + kElements / 64 * 8) << type;
      }
    }
  }
}

TEST(BlockCopies, AreMadeAtOnceOrBeforeTheirReader) {
  const Graph network = three_products().graph;
  const TrainingGraph copies = step_in(network, all_in("mxfp8_e4m3"));
  // What is computed: both inner activations, dY of the loss and both inner gradients.
  EXPECT_EQ(count_ops(copies.graph, "Quantise", Phase::forward), 2);
  EXPECT_EQ(count_ops(copies.graph, "Quantise", Phase::backward), 2);
  EXPECT_EQ(find_op(copies.graph, "Quantise", Phase::forward)->outputs.size(), 2U);
  // What is given: x for dW of the first layer, the weights of the others for dX.
  EXPECT_EQ(count_ops(copies.graph, "Requantise", Phase::forward), 0);
  EXPECT_EQ(count_ops(copies.graph, "Requantise", Phase::backward), 3);
  const TrainingGraph again =
      step_in(network, all_in("mxfp8_e4m3", ", blocks: {transposed: requantise}"));
  EXPECT_EQ(count_ops(again.graph, "Quantise", Phase::forward), 0);
  EXPECT_EQ(count_ops(again.graph, "Quantise", Phase::backward), 0);
  EXPECT_EQ(count_ops(again.graph, "Requantise", Phase::forward), 0);
  // dW reads another X in three layers, another dY where there is dX, too; dX another W.
  EXPECT_EQ(count_ops(again.graph, "Requantise", Phase::backward), 7);
  EXPECT_EQ(find_op(copies.graph, "Quantise", Phase::forward)->nest.work,
            (VectorWork{0, 2, 0, 2, 0, 0}));
  // The second copy waits for backward, or the only one.
  EXPECT_EQ(copies.stored_bytes, again.stored_bytes);
  const TrainingGraph squares = step_in(network, all_in("mxfp8_e4m3", ", blocks: {shape: 8x8}"));
  for (const Operator& op : squares.graph.operators())
    EXPECT_TRUE(op.op_type != "Quantise" && op.op_type != "Requantise") << op.name;
}

TEST(BlockCopies, LieAlongWhatIsAddedUp) {
  const TrainingGraph step = step_in(three_products().graph, all_in("mxfp8_e4m3"));
  EXPECT_EQ(type_of(step, "MatMul_0"), "mxfp8_e4m3"); // [M, K], forward adds up K
  EXPECT_EQ(type_of(step, "MatMul_0.axis0"), "mxfp8_e4m3_32x1");
  EXPECT_EQ(type_of(step, "w1"), "mxfp8_e4m3_32x1"); // [K, N]
  EXPECT_EQ(type_of(step, "w1.axis1"), "mxfp8_e4m3");
  EXPECT_EQ(type_of(step, "MatMul_0.wide"), "fp32");
}

/// Forward adds up channels, dX kernels and dW images; only where there is one image, its rows.
TEST(BlockCopies, OfConvolutions) {
  const auto network = [](std::int64_t images) {
    TinyNetwork n;
    const TensorId x = n.input("x", {images, 8, 10, 10});
    const TensorId y = n.op("Conv", {x, n.parameter("k1", {16, 8, 3, 3})}, {images, 16, 8, 8});
    n.output(n.op("Conv", {y, n.parameter("k2", {24, 16, 3, 3})}, {images, 24, 6, 6}));
    return n.graph;
  };
  const TrainingGraph step = step_in(network(4), all_in("mxfp8_e4m3"));
  EXPECT_EQ(type_of(step, "Conv_0"), "mxfp8_e4m3_32x1x1");
  EXPECT_EQ(type_of(step, "Conv_0.axis0"), "mxfp8_e4m3_32x1x1x1");
  EXPECT_EQ(type_of(step, "k2"), "mxfp8_e4m3_32x1x1");
  EXPECT_EQ(type_of(step, "k2.axis0"), "mxfp8_e4m3_32x1x1x1");
  EXPECT_EQ(type_of(step, "Conv_0.grad"), "mxfp8_e4m3_32x1x1x1"); // no dX before it
  const TrainingGraph squares = step_in(network(4), all_in("mxfp8_e4m3", ", blocks: {shape: 8x8}"));
  EXPECT_EQ(type_of(squares, "Conv_0"), "mxfp8_e4m3_8x8x1x1");
  EXPECT_EQ(type_of(squares, "k2"), "mxfp8_e4m3_8x8x1x1");
  // 4 x 16 x 8 x 8 numbers, a scale for each place and each of two blocks of channels.
  EXPECT_EQ(size_of(squares.graph.tensor(*squares.graph.find_tensor("Conv_0"))).value,
            4 * 16 * 64 * 8 + 2 * 64 * 8);
  const TrainingGraph one = step_in(network(1), all_in("mxfp8_e4m3"));
  EXPECT_EQ(type_of(one, "Conv_0.axis3"), "mxfp8_e4m3");
}

/// Heads of 16 numbers: the product of queries and keys adds up the last axis of what is stored.
TEST(BlockCopies, SeeThroughViews) {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 32, 64});
  const auto heads = [&](const char* weight) {
    const TensorId y = n.op("MatMul", {x, n.parameter(weight, {64, 64})}, {2, 32, 64});
    const TensorId parted =
        n.op("Reshape", {y, n.integers(weight + std::string("s"), {2, 32, 4, 16})}, {2, 32, 4, 16});
    return n.op("Transpose", {parted}, {2, 4, 32, 16},
                with("perm", std::vector<std::int64_t>{0, 2, 1, 3}));
  };
  const TensorId q = heads("q");
  const TensorId k = n.op("Transpose", {heads("k")}, {2, 4, 16, 32},
                          with("perm", std::vector<std::int64_t>{0, 1, 3, 2}));
  n.output(n.op("MatMul", {q, k}, {2, 4, 32, 32}));
  const TrainingGraph step = step_in(n.graph, all_in("mxfp8_e4m3"));
  EXPECT_EQ(type_of(step, "MatMul_0"), "mxfp8_e4m3");            // queries
  EXPECT_EQ(type_of(step, "MatMul_0.axis1"), "mxfp8_e4m3_32x1"); // dK adds up their places
  EXPECT_EQ(type_of(step, "MatMul_3"), "mxfp8_e4m3");
  EXPECT_EQ(type_of(step, "MatMul_3.axis1"), "mxfp8_e4m3_32x1");
  // The copies' views fold away as those of the tensors do.
  EXPECT_EQ(count_ops(fold_views(step).graph, "Copy", Phase::backward), 0);
  EXPECT_EQ(count_ops(fold_views(step).graph, "Copy", Phase::forward), 0);
}

TEST(BlockCopies, ComeFromWhatIsInFullPrecision) {
  const Graph network = three_products().graph;
  // Casts of weights in single precision write both.
  const TrainingGraph cast = step_in(
      network,
      "{optimizer: sgd, precision: {weights: fp32, activations: mxint8, gradients: mxint8}}");
  const Operator& both =
      cast.graph.op(*cast.graph.tensor(*cast.graph.find_tensor("w1.cast")).producer);
  EXPECT_EQ(both.op_type, "Quantise");
  EXPECT_EQ(both.inputs[0], cast.graph.find_tensor("w1"));
  EXPECT_EQ(both.outputs.size(), 2U);
  EXPECT_EQ(count_ops(cast.graph, "Cast", Phase::forward), 1); // w0 has no dX
  // Masters are what the copies of weights are made from.
  const TrainingGraph masters = step_in(network, all_in("mxint8", ", master_weights: fp32"));
  const auto copy = masters.graph.find_tensor("w1.axis1");
  ASSERT_TRUE(copy);
  const Operator& made = masters.graph.op(*masters.graph.tensor(*copy).producer);
  EXPECT_EQ(made.op_type, "Quantise");
  EXPECT_EQ(masters.graph.tensor(*made.inputs[0]).name, "w1.master");
  EXPECT_EQ(count_ops(masters.graph, "Requantise", Phase::backward), 1); // of x
}

TEST(BlockCopies, InferenceNeedsNone) {
  const TrainingGraph step =
      make_inference_graph(three_products().graph, read_options(all_in("mxfp8_e4m3")).precision);
  EXPECT_EQ(type_of(step, "w1"), "mxfp8_e4m3_32x1");
  for (const Operator& op : step.graph.operators())
    EXPECT_EQ(op.op_type, "MatMul");
}

/// PyTorch keeps the result of a ReLU: in blocks, not what it was before them.
TEST(BlockCopies, EagerStorageKeepsBlocks) {
  TinyNetwork n;
  const TensorId x =
      n.op("MatMul", {n.input("x", {64, 64}), n.parameter("w0", {64, 64})}, {64, 64});
  n.output(n.op("MatMul", {n.op("Relu", {x}, {64, 64}), n.parameter("w1", {64, 64})}, {64, 64}));
  std::string text = all_in("mxfp8_e4m3");
  text.insert(1, "store: pytorch-eager, ");
  const TrainingGraph step = step_in(n.graph, text);
  std::set<std::string> stored;
  for (const TensorId id : step.stored_activations)
    stored.insert(step.graph.tensor(id).name);
  // dW of the products reads x and the copy along rows; ReLU's gradient the one along columns.
  EXPECT_EQ(stored, (std::set<std::string>{"x", "Relu_1", "Relu_1.axis0", "labels",
                                           "log_probabilities", "loss"}));
}

} // namespace
} // namespace monet
