// Loop nests of gradients, losses and updates: which loops, what is written and how.
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace monet {
namespace {

const Access& operand(const Operator& op, std::string_view role) {
  for (const Access& access : op.nest.operands) {
    if (access.role == role)
      return access;
  }
  throw InternalError("no operand of that role");
}

std::string axes(const Operator& op, std::string_view role) {
  std::string text;
  for (const AxisExpr& axis : operand(op, role).axes)
    text += (text.empty() ? "" : ", ") + to_string(axis, op.nest.dims);
  return text;
}

struct ConvSizes {
  std::int64_t batch = 2, groups = 1, k = 4, c = 3, kernel = 3, stride = 2, pad = 1, size = 8;
};

TinyNetwork two_convolutions(const ConvSizes& s) {
  TinyNetwork n;
  const std::int64_t out = (s.size + 2 * s.pad - s.kernel) / s.stride + 1;
  const TensorId x = n.input("x", {s.batch, 1, s.size, s.size});
  const TensorId first = n.op("Conv", {x, n.parameter("w1", {s.groups * s.c, 1, 1, 1})},
                              {s.batch, s.groups * s.c, s.size, s.size});
  Attributes a = with("strides", std::vector<std::int64_t>{s.stride, s.stride});
  a.set("pads", std::vector<std::int64_t>{s.pad, s.pad, s.pad, s.pad});
  a.set("group", s.groups);
  n.output(n.op("Conv", {first, n.parameter("w2", {s.groups * s.k, s.c, s.kernel, s.kernel})},
                {s.batch, s.groups * s.k, out, out}, a));
  return n;
}

TrainingGraph step_of(const TinyNetwork& n) {
  TrainingOptions options;
  options.loss = Mse{};
  return make_training_graph(n.graph, options);
}

TEST(GradientNests, ConvolutionReadsAndWritesWhereTheForwardOneDoes) {
  const TrainingGraph step = step_of(two_convolutions({}));
  const Operator* dx = find_op(step.graph, "ConvGradInput", Phase::backward);
  ASSERT_NE(dx, nullptr);
  EXPECT_EQ(axes(*dx, "O"), "B, C, 2*OY + FY - 1, 2*OX + FX - 1");
  EXPECT_EQ(axes(*dx, "I"), "B, K, OY, OX"); // dY
  EXPECT_EQ(axes(*dx, "W"), "K, C, FY, FX");
  EXPECT_EQ(operand(*dx, "O").mode, AccessMode::accumulate); // windows overlap
  EXPECT_EQ(dx->gradient_of, GradientOf::input);
  const Operator* dw = find_op(step.graph, "ConvGradWeight", Phase::backward);
  ASSERT_NE(dw, nullptr);
  EXPECT_EQ(axes(*dw, "O"), "K, C, FY, FX");
  EXPECT_EQ(axes(*dw, "I"), "B, C, 2*OY + FY - 1, 2*OX + FX - 1"); // X
  EXPECT_EQ(axes(*dw, "W"), "B, K, OY, OX");                       // dY
  EXPECT_EQ(operand(*dw, "O").mode, AccessMode::write);
  EXPECT_EQ(dw->gradient_of, GradientOf::weight);
}

/// The loops of the forward convolution, in which every iteration has a product for each gradient.
TEST(GradientNests, BothGradientsOfAConvolutionShareTheirLoops) {
  TrainingOptions options;
  options.loss = Mse{};
  const Graph network = two_convolutions({}).graph;
  const TrainingGraph separate = make_training_graph(network, options);
  options.paired_gradients = {"*"};
  const TrainingGraph paired = make_training_graph(network, options);
  EXPECT_EQ(find_op(paired.graph, "ConvGradInput", Phase::backward), nullptr);
  const Operator* pair = find_op(paired.graph, "ProductGrad", Phase::backward);
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(axes(*pair, "O"), "B, C, 2*OY + FY - 1, 2*OX + FX - 1");
  EXPECT_EQ(axes(*pair, "dW"), "K, C, FY, FX");
  EXPECT_EQ(axes(*pair, "I"), "B, K, OY, OX"); // dY
  EXPECT_EQ(operand(*pair, "O").mode, AccessMode::accumulate);
  EXPECT_EQ(operand(*pair, "dW").mode, AccessMode::write);
  EXPECT_EQ(pair->gradient_of, GradientOf::both);
  EXPECT_EQ(macs(pair->nest), 2 * iterations(pair->nest));
  ASSERT_EQ(pair->nest.products.size(), 2U);
  const char* const of[]{"ConvGradInput", "ConvGradWeight"};
  for (std::size_t p = 0; p < 2; ++p) {
    const Operator* alone = nullptr; // of the second convolution
    for (const Operator& op : separate.graph.operators()) {
      if (op.op_type == of[p] && op.outputs[0] == pair->outputs[p])
        alone = &op;
    }
    ASSERT_NE(alone, nullptr) << of[p];
    EXPECT_EQ(product_nest(pair->nest, pair->nest.products[p]), alone->nest);
  }
  // The first convolution has no gradient of its input.
  EXPECT_NE(find_op(paired.graph, "ConvGradWeight", Phase::backward), nullptr);
  const MacSplit a = count_macs(separate.graph);
  const MacSplit b = count_macs(paired.graph);
  EXPECT_EQ(a.forward, b.forward);
  EXPECT_EQ(a.backward_input, b.backward_input);
  EXPECT_EQ(a.backward_weight, b.backward_weight);
  EXPECT_EQ(a.update, b.update);
}

/// A file may say anything of an operator: results are as large as what they are gradients of.
TEST(GradientNests, APairOfOtherShapesIsRefused) {
  const auto pair = [](std::vector<std::int64_t> da, const std::string& forward) {
    TinyNetwork n;
    Operator op;
    op.name = "pair";
    op.op_type = "ProductGrad";
    op.domain = kMonetDomain;
    op.attributes.set("forward", forward);
    op.inputs = {n.input("a", {4, 3}), n.input("b", {3, 5}), n.input("dy", {4, 5})};
    for (const auto& shape : {da, std::vector<std::int64_t>{3, 5}}) {
      op.outputs.emplace_back(
          n.graph.add_tensor({.name = "d" + std::to_string(op.outputs.size()), .shape = shape}));
    }
    const OpId id = n.graph.add_operator(std::move(op));
    build_nest(n.graph, id);
    return macs(n.graph.op(id).nest);
  };
  EXPECT_EQ(pair({4, 3}, "MatMul"), 2 * 4 * 3 * 5);
  EXPECT_THROW(pair({4, 2}, "MatMul"), InputError);
  EXPECT_THROW(pair({3, 4}, "MatMul"), InputError);
  EXPECT_THROW(pair({4, 3}, "Relu"), InputError);
  EXPECT_THROW(pair({4, 3}, "Conv"), InputError);
}

TEST(GradientNests, PairsAreMadeWhereAPatternSaysSo) {
  TrainingOptions options;
  options.loss = Mse{};
  const Graph network = two_convolutions({}).graph;
  options.paired_gradients = {"Conv_1"};
  EXPECT_NE(find_op(make_training_graph(network, options).graph, "ProductGrad", Phase::backward),
            nullptr);
  options.paired_gradients = {"Conv_0"}; // of one gradient only
  EXPECT_THROW(make_training_graph(network, options), InputError);
}

/// A patch embedding (kernel = stride) touches every input element once; a strided 1x1 kernel
/// leaves elements out, which stay zero.
TEST(GradientNests, InputGradientIsWrittenOnceOnlyWhereWindowsTileTheInput) {
  const auto mode = [](const ConvSizes& sizes) {
    const TrainingGraph step = step_of(two_convolutions(sizes));
    return operand(*find_op(step.graph, "ConvGradInput", Phase::backward), "O").mode;
  };
  ConvSizes sizes;
  sizes.pad = 0;
  sizes.kernel = sizes.stride = 2;
  EXPECT_EQ(mode(sizes), AccessMode::write);
  sizes.kernel = sizes.stride = 1;
  EXPECT_EQ(mode(sizes), AccessMode::write);
  sizes.stride = 2;
  EXPECT_EQ(mode(sizes), AccessMode::accumulate);
  sizes.kernel = 3;
  EXPECT_EQ(mode(sizes), AccessMode::accumulate);
}

RC_GTEST_PROP(GradientNests, GradientsOfProductsCostTheForwardMacs, ()) {
  ConvSizes s;
  s.batch = *rc::gen::inRange<std::int64_t>(1, 4);
  s.groups = *rc::gen::inRange<std::int64_t>(1, 4);
  s.k = *rc::gen::inRange<std::int64_t>(1, 5);
  s.c = *rc::gen::inRange<std::int64_t>(1, 5);
  s.kernel = *rc::gen::inRange<std::int64_t>(1, 5);
  s.stride = *rc::gen::inRange<std::int64_t>(1, 4);
  s.pad = *rc::gen::inRange<std::int64_t>(0, 3);
  s.size = *rc::gen::inRange<std::int64_t>(5, 10);
  const TinyNetwork network = two_convolutions(s);
  const MacSplit split = count_macs(step_of(network).graph);
  const std::int64_t first = macs(network.graph.operators()[0].nest);
  RC_ASSERT(split.backward_weight == split.forward);
  RC_ASSERT(split.backward_input == split.forward - first); // the image needs no gradient
}

TEST(GradientNests, WeightGradientOfABatchedLinearReducesInsideTheNest) {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 5, 3});
  n.output(n.op("MatMul", {x, n.parameter("w", {3, 4})}, {2, 5, 4}));
  const TrainingGraph step = step_of(n);
  const Operator* dw = find_op(step.graph, "MatMulGradB", Phase::backward);
  ASSERT_NE(dw, nullptr);
  EXPECT_EQ(axes(*dw, "O"), "C, K");
  EXPECT_EQ(iterations(dw->nest), 2 * 5 * 3 * 4);
  EXPECT_TRUE(is_reduction(dw->nest, find_dim(dw->nest, "B")));
  EXPECT_TRUE(is_reduction(dw->nest, find_dim(dw->nest, "D")));
  EXPECT_EQ(find_op(step.graph, "MatMulGradA", Phase::backward), nullptr);
}

TEST(GradientNests, EmbeddingGradientAccumulatesIntoDataDependentRows) {
  TinyNetwork n;
  const TensorId ids = n.input("ids", {2, 3}, ElementType::int64);
  n.output(n.op("Gather", {n.parameter("table", {7, 4}), ids}, {2, 3, 4}));
  const TrainingGraph step = step_of(n);
  const Operator* grad = find_op(step.graph, "GatherGrad", Phase::backward);
  ASSERT_NE(grad, nullptr);
  EXPECT_EQ(axes(*grad, "O"), "?, C");
  EXPECT_EQ(operand(*grad, "O").mode, AccessMode::accumulate);
  EXPECT_EQ(iterations(grad->nest), 24); // the batch's rows, not the table's
}

TEST(GradientNests, NormalisationSweepsItsOperandsTwice) {
  TinyNetwork n;
  const TensorId x = n.parameter("x", {4, 3, 2, 2});
  n.output(n.op("BatchNormalization",
                {x, n.parameter("scale", {3}), n.parameter("bias", {3}), n.buffer("mean", {3}),
                 n.buffer("var", {3})},
                {4, 3, 2, 2}));
  const TrainingGraph step = step_of(n);
  const Operator* forward = find_op(step.graph, "BatchNormalization", Phase::forward);
  ASSERT_NE(forward, nullptr);
  ASSERT_EQ(forward->outputs.size(), 5U);
  EXPECT_EQ(operand(*forward, "I").passes, 2);
  EXPECT_EQ(step.graph.tensor(*forward->outputs[1]).alias_of, forward->inputs[3]);
  EXPECT_EQ(step.graph.tensor(*forward->outputs[2]).alias_of, forward->inputs[4]);
  const Operator* grad = find_op(step.graph, "BatchNormGrad", Phase::backward);
  ASSERT_NE(grad, nullptr);
  EXPECT_EQ(operand(*grad, "I").passes, 2);
  EXPECT_EQ(operand(*grad, "W").passes, 2);
  EXPECT_EQ(axes(*grad, "dscale"), "C");
  EXPECT_EQ(axes(*grad, "mean"), "C");
}

/// Channels of a group and all places are coupled; samples and groups are not.
TEST(GradientNests, GroupNormalisationCouplesWhatSharesStatistics) {
  TinyNetwork n;
  const TensorId x = n.parameter("x", {4, 6, 5, 3});
  n.output(n.op("GroupNormalization", {x, n.parameter("scale", {6}), n.parameter("bias", {6})},
                {4, 6, 5, 3}, with("num_groups", std::int64_t{2})));
  const TrainingGraph step = step_of(n);
  const Operator* forward = find_op(step.graph, "GroupNormalization", Phase::forward);
  ASSERT_NE(forward, nullptr);
  ASSERT_EQ(forward->outputs.size(), 3U);
  EXPECT_EQ(step.graph.tensor(*forward->outputs[1]).shape, (std::vector<std::int64_t>{4, 2}));
  const Operator* grad = find_op(step.graph, "GroupNormGrad", Phase::backward);
  ASSERT_NE(grad, nullptr);
  EXPECT_EQ(axes(*grad, "O"), "N, 3*G + C, H, W");
  EXPECT_EQ(axes(*grad, "scale"), "3*G + C");
  EXPECT_EQ(axes(*grad, "mean"), "N, G");
  EXPECT_EQ(operand(*grad, "I").passes, 2);
  for (const LoopDim& dim : grad->nest.dims)
    EXPECT_EQ(dim.coupled, dim.name != "N" && dim.name != "G") << dim.name;
  const Operator* weight = find_op(step.graph, "GroupNormGradWeight", Phase::backward);
  ASSERT_NE(weight, nullptr);
  EXPECT_TRUE(is_reduction(weight->nest, find_dim(weight->nest, "N")));
}

/// The largest element's gradient is shared among equal ones, which takes the whole row.
TEST(GradientNests, AMaximumCouplesItsAxesAndASquareDoesNot) {
  for (const bool maximum : {true, false}) {
    TinyNetwork n;
    const TensorId w = n.parameter("w", {3, 4, 5});
    Attributes over = with("axes", std::vector<std::int64_t>{1});
    over.set("keepdims", std::int64_t{0});
    n.output(n.op(maximum ? "ReduceMax" : "ReduceSumSquare", {w}, {3, 5}, over));
    const TrainingGraph step = step_of(n);
    const Operator* grad = find_op(
        step.graph, maximum ? "ReduceExtremumGrad" : "ReduceSumSquareGrad", Phase::backward);
    ASSERT_NE(grad, nullptr);
    EXPECT_EQ(axes(*grad, "O"), "B, T, C");
    EXPECT_EQ(axes(*grad, "I"), "B, 0, C");
    EXPECT_EQ(grad->nest.dims[1].coupled, maximum);
    EXPECT_FALSE(grad->nest.dims[0].coupled);
  }
}

struct UpdateWork {
  Optimizer optimizer;
  VectorWork work;
};

TEST(UpdateNests, CountScalarOperationsAndReadEveryOperandOnce) {
  // add, multiply, divide, compare, square_root, transcendental; by hand from the formulas in
  // docs/reference/optimizers.md
  const std::vector<UpdateWork> cases{
      {Sgd{}, {1, 1, 0, 0, 0, 0}},
      {Sgd{.weight_decay = 0.1}, {2, 2, 0, 0, 0, 0}},
      {Sgd{.momentum = 0.9}, {2, 2, 0, 0, 0, 0}},
      {Adam{}, {4, 7, 1, 0, 1, 0}},
      {Adam{.weight_decay = 0.1}, {5, 8, 1, 0, 1, 0}},
      {AdamW{}, {4, 8, 1, 0, 1, 0}},
      {Rmsprop{}, {3, 4, 1, 0, 1, 0}},
      {Adagrad{}, {3, 2, 1, 0, 1, 0}},
      {Lion{.weight_decay = 0.1}, {3, 6, 0, 1, 0, 0}},
  };
  for (const UpdateWork& expected : cases) {
    TinyNetwork n;
    n.output(n.op("Add", {n.input("x", {3, 5}), n.parameter("w", {3, 5})}, {3, 5}));
    TrainingOptions options;
    options.loss = Mse{};
    options.update.optimizer = expected.optimizer;
    const TrainingGraph step = make_training_graph(n.graph, options);
    const Operator& update = step.graph.operators().back();
    EXPECT_EQ(update.phase, Phase::update);
    EXPECT_EQ(update.nest.work, expected.work) << update.op_type.name();
    EXPECT_EQ(iterations(update.nest), 15);
    const auto inputs = std::count_if(update.inputs.begin(), update.inputs.end(),
                                      [](const auto& input) { return input.has_value(); });
    EXPECT_EQ(update.nest.operands.size(),
              static_cast<std::size_t>(inputs) + update.outputs.size());
  }
}

} // namespace
} // namespace monet
