// Which chains become one attention operator, and what it costs and keeps. That it computes the
// same numbers is tested with PyTorch's (tests/execute/gradient_cases_test.cpp).
#include "training_graph/tiny_network.hpp"
#include "workload/shared/views.hpp"

#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

constexpr std::int64_t kBatch = 2, kHeads = 3, kRows = 5, kColumns = 7, kWidth = 4;

struct Chain {
  bool scale = true;
  bool mask = false;
  bool trained_mask = false;
  bool scores_are_read = false;
  bool turned_keys = false; ///< heads and width are swapped by one transposition
  std::int64_t axis = -1;
};

TinyNetwork attention(const Chain& chain) {
  TinyNetwork n;
  const std::vector<std::int64_t> scores{kBatch, kHeads, kRows, kColumns};
  const TensorId q = n.parameter("q", {kBatch, kHeads, kRows, kWidth});
  const TensorId v = n.parameter("v", {kBatch, kHeads, kColumns, kWidth});
  const TensorId k = chain.turned_keys ? n.parameter("k", {kBatch, kColumns, kHeads, kWidth})
                                       : n.parameter("k", {kBatch, kHeads, kColumns, kWidth});
  const TensorId turned =
      n.op("Transpose", {k}, {kBatch, kHeads, kWidth, kColumns},
           with("perm", chain.turned_keys ? std::vector<std::int64_t>{0, 2, 3, 1}
                                          : std::vector<std::int64_t>{0, 1, 3, 2}));
  TensorId s = n.op("MatMul", {q, turned}, scores);
  if (chain.scale)
    s = n.op("Div", {s, n.number("root", 2.0)}, scores);
  if (chain.mask) {
    const TensorId mask = chain.trained_mask ? n.parameter("mask", {kRows, kColumns})
                                             : n.input("mask", {kRows, kColumns});
    s = n.op("Add", {s, mask}, scores);
  }
  if (chain.scores_are_read)
    n.output(s);
  const TensorId p = n.op("Softmax", {s}, scores, with("axis", chain.axis));
  n.output(n.op("MatMul", {p, v}, {kBatch, kHeads, kRows, kWidth}));
  return n;
}

TrainingGraph fused(const TinyNetwork& network) {
  TrainingOptions options;
  options.loss = NoLoss{};
  options.attention = AttentionForm::fused;
  TrainingGraph step = make_training_graph(network.graph, options);
  verify(step);
  return step;
}

TEST(FuseAttention, CostsTwoProductsForwardAndFiveBackward) {
  const std::int64_t product = kBatch * kHeads * kRows * kColumns * kWidth;
  for (const bool turned : {false, true}) {
    Chain chain;
    chain.mask = true;
    chain.turned_keys = turned;
    const TrainingGraph step = fused(attention(chain));
    for (const Graph& graph : {step.graph, fold_views(step.graph)}) {
      EXPECT_EQ(count_ops(graph, "Attention", Phase::forward), 1);
      EXPECT_EQ(count_ops(graph, "AttentionGrad", Phase::backward), 1);
      EXPECT_EQ(count_ops(graph, "MatMul", Phase::forward), 0);
      EXPECT_EQ(count_ops(graph, "Softmax", Phase::forward), 0);
      const MacSplit macs = count_macs(graph);
      EXPECT_EQ(macs.forward, 2 * product);
      EXPECT_EQ(macs.backward_input + macs.backward_weight, 5 * product);
    }
  }
}

TEST(FuseAttention, TakesItsOperandsInTheirTypeBesideWiderStatistics) {
  TrainingOptions options;
  options.loss = NoLoss{};
  options.attention = AttentionForm::fused;
  options.precision.weights = ElementType::bf16;
  options.precision.activations = ElementType::bf16;
  options.precision.gradients = ElementType::bf16;
  Chain chain;
  chain.mask = true;
  const TrainingGraph step = make_training_graph(attention(chain).graph, options);
  verify(step);
  EXPECT_EQ(count_ops(step.graph, "AttentionGrad", Phase::backward), 1);
  EXPECT_EQ(count_ops(step.graph, "Cast", Phase::backward), 0);
}

TEST(FuseAttention, KeepsALogarithmPerRowAndNoScores) {
  const TrainingGraph step = fused(attention({}));
  std::int64_t kept = 0;
  for (const TensorId id : step.stored_activations) {
    const Tensor& tensor = step.graph.tensor(id);
    if (tensor.kind == TensorKind::activation)
      kept += element_count(tensor);
  }
  EXPECT_EQ(kept, kBatch * kHeads * kRows * (kWidth + 1)); // O and the logarithms
}

TEST(FuseAttention, OnlyRowsOfQueriesMayBeCut) {
  const TrainingGraph step = fused(attention({}));
  const Operator& op = *find_op(step.graph, "Attention", Phase::forward);
  ASSERT_EQ(op.nest.dims.size(), 5U);
  EXPECT_FALSE(op.nest.dims[2].coupled); // D
  EXPECT_TRUE(op.nest.dims[4].coupled);  // K: a score needs all of it
  EXPECT_EQ(products(op.nest), 2);       // scores, and their product with the values
  EXPECT_TRUE(is_reduction(op.nest, 3)); // C
}

TEST(FuseAttention, LeavesOtherChainsAlone) {
  for (const Chain& chain : {Chain{.mask = true, .trained_mask = true},
                             Chain{.scores_are_read = true}, Chain{.axis = 2}}) {
    const TrainingGraph step = fused(attention(chain));
    EXPECT_EQ(count_ops(step.graph, "Attention", Phase::forward), 0);
    EXPECT_EQ(count_ops(step.graph, "Softmax", Phase::forward), 1);
  }
}

TEST(FuseAttention, FindsEveryLayerOfTheNetworks) {
  for (const auto& [name, layers] :
       {std::pair("gpt2", 12), std::pair("gpt2_nano", 2), std::pair("vit_tiny", 12)}) {
    OnnxReadOptions read;
    read.batch = 1;
    const Graph network =
        read_onnx(fmt::format("{}/data/workload/{}.onnx", MONET_SOURCE_DIR, name), read);
    TrainingOptions options;
    options.attention = AttentionForm::fused;
    const TrainingGraph step = make_training_graph(network, options);
    verify(fold_views(step));
    EXPECT_EQ(count_ops(step.graph, "AttentionGrad", Phase::backward), layers) << name;
    EXPECT_EQ(count_ops(step.graph, "Softmax", Phase::forward), 0) << name;
  }
}

TEST(FuseAttention, IsOffByDefault) {
  TrainingOptions options;
  options.loss = NoLoss{};
  const TrainingGraph step = make_training_graph(attention({}).graph, options);
  EXPECT_EQ(count_ops(step.graph, "Softmax", Phase::forward), 1);
}

} // namespace
} // namespace monet
