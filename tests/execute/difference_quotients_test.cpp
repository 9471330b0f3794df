// Gradient rules against finite differences, which owe nothing to PyTorch: the whole step is
// executed in double precision, then each parameter's gradient is compared with (L(w + h) - L(w -
// h)) / 2h.
#include "training_graph/tiny_network.hpp"

#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace monet {
namespace MONET_TEST_FILE {

using Values = std::vector<double>;

constexpr double kStep = 1e-5;
constexpr double kTolerance =
    1e-6; // central differences: error of order h^2, plus rounding 1e-16/h

/// Distinct, irregular numbers; `low` > 0 keeps logarithms and roots away from their poles.
Values numbers(std::int64_t count, double low, double high, double phase) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double unit = 0.5 + 0.5 * std::sin(12.9898 * static_cast<double>(i + 1) + phase);
    values.push_back(low + (high - low) * unit);
  }
  return values;
}

struct Range {
  double low = -1.5;
  double high = 1.5;
};

void feed(Execution& execution, const Graph& graph, Range range) {
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    const TensorId id(i);
    const std::int64_t count = element_count(tensor);
    const double phase = 0.7 * static_cast<double>(i);
    if (tensor.producer || tensor.values)
      continue;
    if (!is_floating(tensor.type)) {
      Values classes;
      for (std::int64_t k = 0; k < count; ++k)
        classes.push_back(static_cast<double>((k * 5 + 1) % 3));
      execution.set(id, classes);
    } else if (tensor.kind == TensorKind::optimizer_state) {
      execution.set(id, Values(static_cast<std::size_t>(count), 0.0));
    } else {
      execution.set(id, numbers(count, range.low, range.high, phase));
    }
  }
}

/// Returns how many gradient elements were compared.
int check(const TinyNetwork& network, const Loss& loss = Mse{}, Range range = {}) {
  TrainingOptions options;
  options.loss = loss;
  options.update.optimizer = Sgd{};
  const TrainingGraph step = make_training_graph(network.graph, options);
  verify(step);
  Execution execution(step.graph);
  feed(execution, step.graph, range);
  execution.run();
  int compared = 0;
  for (const ParameterRecord& record : step.parameters) {
    const Values gradient = execution.get(record.gradient);
    const Values weight = execution.get(record.weight);
    EXPECT_EQ(gradient.size(), weight.size());
    for (std::size_t i = 0; i < weight.size() && i < gradient.size(); ++i) {
      const auto loss_at = [&](double value) {
        Values changed = weight;
        changed[i] = value;
        execution.set(record.weight, changed);
        execution.run();
        return execution.get(*step.loss)[0];
      };
      const double expected =
          (loss_at(weight[i] + kStep) - loss_at(weight[i] - kStep)) / (2 * kStep);
      EXPECT_NEAR(gradient[i], expected, kTolerance * std::max(1.0, std::abs(expected)))
          << step.graph.tensor(record.weight).name << "[" << i << "]";
      ++compared;
    }
    execution.set(record.weight, weight);
    execution.run();
  }
  return compared;
}

struct Unary {
  std::string type;
  Range range = {};
  Attributes attributes = {};
};

class UnaryGradient : public testing::TestWithParam<Unary> {};

TEST_P(UnaryGradient, EqualsFiniteDifference) {
  TinyNetwork n;
  const TensorId w = n.parameter("w", {2, 3});
  n.output(n.op(GetParam().type, {w}, {2, 3}, GetParam().attributes));
  EXPECT_EQ(check(n, Mse{}, GetParam().range), 6);
}

INSTANTIATE_TEST_SUITE_P(
    Operators, UnaryGradient,
    testing::Values(Unary{"Relu"}, Unary{"Tanh"}, Unary{"Sigmoid"}, Unary{"Erf"}, Unary{"Exp"},
                    Unary{"Neg"}, Unary{"Abs"}, Unary{"Softplus"}, Unary{"Elu"},
                    Unary{"LeakyRelu", {}, with("alpha", 0.2)}, Unary{"HardSwish", {-4.0, 4.0}},
                    Unary{"HardSigmoid", {-4.0, 4.0}}, Unary{"Log", {0.5, 2.0}},
                    Unary{"Sqrt", {0.5, 2.0}}, Unary{"Reciprocal", {0.5, 2.0}},
                    Unary{"Softmax", {}, with("axis", std::int64_t{-1})},
                    Unary{"LogSoftmax", {}, with("axis", std::int64_t{-1})}),
    [](const auto& param) { return param.param.type; });

class BinaryGradient : public testing::TestWithParam<std::string> {};

/// Equal shapes, a missing leading axis, a middle axis of size 1, and a scalar.
TEST_P(BinaryGradient, OfEveryBroadcastEqualsFiniteDifference) {
  const std::vector<std::vector<std::int64_t>> shapes{{2, 3, 2}, {2}, {2, 1, 2},
                                                      {3, 1},    {},  {1, 3, 1}};
  for (const auto& shape : shapes) {
    for (const bool left : {false, true}) {
      TinyNetwork n;
      const TensorId a = n.parameter("a", {2, 3, 2});
      const TensorId b = n.parameter("b", shape);
      n.output(n.op(GetParam(), {left ? b : a, left ? a : b}, {2, 3, 2}));
      EXPECT_GE(check(n, Mse{}, {0.5, 2.0}), 13);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, BinaryGradient, testing::Values("Add", "Sub", "Mul", "Div"),
                         [](const auto& param) { return param.param; });

TEST(GradientNumbers, SquareAndPowerAndClip) {
  TinyNetwork n;
  const TensorId w = n.parameter("w", {2, 3});
  const TensorId square = n.op("Mul", {w, w}, {2, 3});
  const TensorId cube = n.op("Pow", {square, n.number("three", 3.0)}, {2, 3});
  n.output(n.op("Clip", {cube, n.number("low", 0.3), n.number("high", 2.0)}, {2, 3}));
  EXPECT_EQ(check(n), 6);
}

TEST(GradientNumbers, WhereWithBroadcastBranch) {
  TinyNetwork n;
  const TensorId condition = n.input("condition", {2, 3}, ElementType::boolean);
  n.output(n.op("Where", {condition, n.parameter("a", {2, 3}), n.parameter("b", {3})}, {2, 3}));
  EXPECT_EQ(check(n), 9);
}

TEST(GradientNumbers, ConvolutionStridedPaddedGroupedWithBias) {
  TinyNetwork n;
  Attributes attributes = with("strides", std::vector<std::int64_t>{2, 1});
  attributes.set("pads", std::vector<std::int64_t>{1, 0, 1, 0});
  attributes.set("dilations", std::vector<std::int64_t>{1, 2});
  attributes.set("group", std::int64_t{2});
  const TensorId x = n.parameter("x", {2, 4, 5, 6}); // a parameter, so that dX is checked too
  const TensorId w = n.parameter("w", {2, 2, 3, 2});
  n.output(n.op("Conv", {x, w, n.parameter("b", {2})}, {2, 2, 3, 4}, attributes));
  EXPECT_EQ(check(n), 2 * 4 * 5 * 6 + 24 + 2);
}

TEST(GradientNumbers, TransposedConvolution) {
  TinyNetwork n;
  const TensorId x = n.parameter("x", {1, 2, 3, 3});
  const TensorId w = n.parameter("w", {2, 2, 2, 2});
  n.output(n.op("ConvTranspose", {x, w}, {1, 2, 6, 6},
                with("strides", std::vector<std::int64_t>{2, 2})));
  EXPECT_EQ(check(n), 18 + 16);
}

TEST(GradientNumbers, ProductsWithBroadcastBatchAndTransposition) {
  TinyNetwork n;
  const TensorId a = n.parameter("a", {2, 3, 4});
  const TensorId b = n.parameter("b", {4, 3});
  const TensorId c = n.op("MatMul", {a, b}, {2, 3, 3}); // dB reduces over both batch and rows
  const TensorId d = n.op("MatMul", {c, n.parameter("d", {2, 3, 2})}, {2, 3, 2});
  const TensorId rows = n.op("Reshape", {d, n.integers("shape", {6, 2})}, {6, 2});
  Attributes transposed = with("transB", std::int64_t{1});
  n.output(
      n.op("Gemm", {rows, n.parameter("w", {3, 2}), n.parameter("bias", {3})}, {6, 3}, transposed));
  EXPECT_EQ(check(n), 24 + 12 + 12 + 6 + 3);
}

TEST(GradientNumbers, BatchNormalisation) {
  TinyNetwork n;
  const TensorId x = n.parameter("x", {3, 2, 2, 2});
  const auto y = n.ops("BatchNormalization",
                       {x, n.parameter("scale", {2}), n.parameter("bias", {2}),
                        n.buffer("mean", {2}), n.buffer("var", {2})},
                       {{3, 2, 2, 2}}, with("epsilon", 1e-3));
  n.output(n.op("Tanh", {y[0]}, {3, 2, 2, 2}));
  EXPECT_EQ(check(n), 24 + 4);
}

TEST(GradientNumbers, LayerNormalisation) {
  TinyNetwork n;
  const TensorId x = n.parameter("x", {2, 3, 4});
  const TensorId y =
      n.op("LayerNormalization", {x, n.parameter("scale", {4}), n.parameter("bias", {4})},
           {2, 3, 4}, with("epsilon", 1e-3));
  n.output(n.op("Tanh", {y}, {2, 3, 4}));
  EXPECT_EQ(check(n), 24 + 8);
}

TEST(GradientNumbers, Pooling) {
  const Attributes window = [] {
    Attributes a = with("kernel_shape", std::vector<std::int64_t>{2, 2});
    a.set("strides", std::vector<std::int64_t>{2, 2});
    return a;
  }();
  TinyNetwork n;
  const TensorId x = n.parameter("x", {2, 2, 8, 8});
  const TensorId max = n.op("MaxPool", {x}, {2, 2, 4, 4}, window);
  const TensorId average = n.op("AveragePool", {max}, {2, 2, 2, 2}, window);
  n.output(n.op("GlobalAveragePool", {average}, {2, 2, 1, 1}));
  EXPECT_EQ(check(n), 256);
}

TEST(GradientNumbers, RearrangementsAndReductions) {
  TinyNetwork n;
  const TensorId w = n.parameter("w", {2, 6});
  const auto parts = n.ops("Split", {w, n.integers("sizes", {2, 4})}, {{2, 2}, {2, 4}},
                           with("axis", std::int64_t{1}));
  const TensorId slice =
      n.op("Slice",
           {parts[1], n.integers("starts", {1}), n.integers("ends", {3}), n.integers("axes", {1})},
           {2, 2});
  const TensorId joined = n.op("Concat", {slice, parts[0]}, {2, 4}, with("axis", std::int64_t{-1}));
  const TensorId padded = n.op("Pad", {joined, n.integers("pads", {0, 1, 1, 0})}, {3, 5});
  const TensorId turned =
      n.op("Transpose", {padded}, {5, 3}, with("perm", std::vector<std::int64_t>{1, 0}));
  const TensorId mean =
      n.op("ReduceMean", {turned, n.integers("axis", {1})}, {5}, with("keepdims", std::int64_t{0}));
  const TensorId wide = n.op("Expand", {mean, n.integers("wide", {2, 5})}, {2, 5});
  const TensorId bent = n.op("Tanh", {wide}, {2, 5});
  n.output(n.op("ReduceSum", {bent, n.integers("axis0", {0})}, {1, 5},
                with("keepdims", std::int64_t{1})));
  EXPECT_EQ(check(n), 12);
}

/// The unused first part of the split has gradient zero.
TEST(GradientNumbers, SplitWithAnUnusedPart) {
  TinyNetwork n;
  const TensorId w = n.parameter("w", {2, 6});
  const auto parts = n.ops("Split", {w, n.integers("sizes", {2, 4})}, {{2, 2}, {2, 4}},
                           with("axis", std::int64_t{1}));
  n.output(n.op("Exp", {parts[1]}, {2, 4}));
  EXPECT_EQ(check(n), 12);
}

TEST(GradientNumbers, TiedEmbeddingAndHeadUnderCrossEntropy) {
  TinyNetwork n;
  const TensorId ids = n.input("ids", {2, 3}, ElementType::int64);
  const TensorId table = n.parameter("table", {5, 4});
  const TensorId x = n.op("Gather", {table, ids}, {2, 3, 4});
  const TensorId bent = n.op("Tanh", {x}, {2, 3, 4});
  const TensorId head =
      n.op("Transpose", {table}, {4, 5}, with("perm", std::vector<std::int64_t>{1, 0}));
  n.output(n.op("MatMul", {bent, head}, {2, 3, 5}));
  EXPECT_EQ(check(n, CrossEntropy{}), 20);
}

/// softmax(q k^T / 2) v with a constant scale, as exported.
TEST(GradientNumbers, Attention) {
  TinyNetwork n;
  const TensorId q = n.parameter("q", {2, 3, 4});
  const TensorId k = n.parameter("k", {2, 3, 4});
  const TensorId kt =
      n.op("Transpose", {k}, {2, 4, 3}, with("perm", std::vector<std::int64_t>{0, 2, 1}));
  const TensorId scores = n.op("MatMul", {q, kt}, {2, 3, 3});
  const TensorId scaled = n.op("Div", {scores, n.number("two", 2.0)}, {2, 3, 3});
  const TensorId p = n.op("Softmax", {scaled}, {2, 3, 3}, with("axis", std::int64_t{-1}));
  n.output(n.op("MatMul", {p, n.parameter("v", {2, 3, 4})}, {2, 3, 4}));
  EXPECT_EQ(check(n), 72);
}

/// x + f(x) twice, and the tanh form of GELU whose input is read four times.
TEST(GradientNumbers, FanOut) {
  TinyNetwork n;
  const std::vector<std::int64_t> s{2, 3};
  const TensorId x = n.parameter("x", s);
  const TensorId square = n.op("Mul", {x, x}, s);
  const TensorId cube = n.op("Mul", {x, square}, s);
  const TensorId inner = n.op("Add", {x, n.op("Mul", {n.number("c", 0.044715), cube}, s)}, s);
  const TensorId t = n.op("Tanh", {n.op("Mul", {n.number("d", 0.7978846), inner}, s)}, s);
  const TensorId gelu = n.op("Mul", {x, n.op("Add", {n.number("one", 1.0), t}, s)}, s);
  const TensorId y = n.op("Add", {x, n.op("Mul", {n.number("half", 0.5), gelu}, s)}, s);
  n.output(n.op("Add", {y, n.op("Tanh", {y}, s)}, s));
  EXPECT_EQ(check(n), 6);
}

TEST(GradientNumbers, BinaryCrossEntropy) {
  TinyNetwork n;
  n.output(n.op("Mul", {n.parameter("a", {2, 3}), n.parameter("b", {3})}, {2, 3}));
  EXPECT_EQ(check(n, BceWithLogits{}, {0.1, 0.9}), 9);
}

} // namespace MONET_TEST_FILE
} // namespace monet
