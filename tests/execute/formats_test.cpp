// Steps executed in the formats of their tensors.
#include "training_graph/read_options.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/yaml.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace monet {
namespace MONET_TEST_FILE {

using Numbers = std::vector<double>;

TrainingGraph step_of(const TinyNetwork& network, const std::string& text) {
  return make_training_graph(network.graph, read_options(text));
}

/// x [4, 6] -> Gemm -> Relu -> Gemm: [4, 3].
TinyNetwork two_layers() {
  TinyNetwork n;
  const auto transposed = with("transB", std::int64_t{1});
  const TensorId x = n.input("x", {4, 6});
  const TensorId h = n.op("Gemm", {x, n.parameter("w1", {8, 6})}, {4, 8}, transposed);
  const TensorId r = n.op("Relu", {h}, {4, 8});
  n.output(n.op("Gemm", {r, n.parameter("w2", {3, 8})}, {4, 3}, transposed));
  return n;
}

class Executed {
public:
  Executed(const TrainingGraph& step, Arithmetic arithmetic, int jobs = 1, int steps = 1)
      : step_(step), execution_(step.graph, options(step, arithmetic, jobs)) {
    fill(execution_, step, 3);
    for (int i = 0; i < steps; ++i) {
      if (i > 0)
        execution_.advance();
      set_step_number(execution_, step, i + 1);
      execution_.run();
    }
  }
  Numbers operator[](std::string_view name) const {
    return execution_.get(step_.graph.find_tensor(name).value());
  }
  Numbers all() const {
    Numbers numbers;
    for (std::size_t i = 0; i < step_.graph.tensors().size(); ++i) {
      if (!execution_.has(TensorId(i)))
        continue;
      const Numbers more = execution_.get(TensorId(i));
      numbers.insert(numbers.end(), more.begin(), more.end());
    }
    return numbers;
  }

private:
  static ExecuteOptions options(const TrainingGraph& step, Arithmetic arithmetic, int jobs) {
    ExecuteOptions result;
    result.arithmetic = arithmetic;
    result.formats = step.arithmetic;
    result.jobs = jobs;
    return result;
  }
  const TrainingGraph& step_;
  Execution execution_;
};

/// X, W and the result of the first product.
std::array<Numbers, 3> first_layer(const TrainingGraph& step, const Executed& run) {
  const Operator& gemm = *find_op(step.graph, "Gemm", Phase::forward);
  const auto numbers_of = [&](const std::optional<TensorId>& id) {
    return run[step.graph.tensor(*id).name];
  };
  return {numbers_of(gemm.inputs[0]), numbers_of(gemm.inputs[1]), numbers_of(gemm.outputs[0])};
}

const std::string kMixed =
    "{optimizer: sgd, precision: {weights: bf16, master_weights: fp32, activations: bf16, "
    "gradients: e5m2}}";

TEST(Formats, EveryTensorHoldsNumbersOfItsType) {
  const TrainingGraph step = step_of(two_layers(), kMixed);
  const Executed run(step, Arithmetic::formats);
  std::size_t narrow = 0;
  for (const Tensor& tensor : step.graph.tensors()) {
    if (!is_floating(tensor.type) || tensor.consumers.empty())
      continue;
    for (const double x : run[tensor.name])
      ASSERT_EQ(round_to(tensor.type.format().element, x), x) << tensor.name;
    narrow += tensor.type == ElementType::bf16 || bits_of(tensor.type) == 8 ? 1 : 0;
  }
  EXPECT_GT(narrow, 5U);
}

/// The first layer by hand: sums in single precision with k ascending, rounded once to bf16.
TEST(Formats, OperatorsRoundWhatTheyWrite) {
  const TrainingGraph step = step_of(two_layers(), kMixed);
  const Executed run(step, Arithmetic::formats);
  const auto [x, w, h] = first_layer(step, run);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 8; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < 6; ++k)
        sum += static_cast<float>(x[i * 6 + k]) * static_cast<float>(w[j * 6 + k]);
      EXPECT_EQ(h[i * 8 + j],
                round_to(ElementType::bf16.format().element, static_cast<double>(sum)));
    }
  }
}

TEST(Formats, OfSinglePrecisionAreFp32) {
  const TrainingGraph step = step_of(two_layers(), "{optimizer: adam}");
  EXPECT_EQ(Executed(step, Arithmetic::formats, 1, 3).all(),
            Executed(step, Arithmetic::fp32, 1, 3).all());
}

TEST(Formats, ProductsHaveTheUnitOfTheirRole) {
  const std::string units =
      "{optimizer: sgd, precision: {products: {forward: {multiply: e5m2, accumulate: q4.4}, "
      "weight_gradient: {accumulate: fp32}}}}";
  const TrainingGraph step = step_of(two_layers(), units);
  ASSERT_TRUE(step.arithmetic.forward && step.arithmetic.input_gradient &&
              step.arithmetic.weight_gradient);
  EXPECT_EQ(step.arithmetic.forward, step.arithmetic.input_gradient);
  const Executed run(step, Arithmetic::formats);
  const Executed plain(step, Arithmetic::fp32);
  std::size_t on_grid = 0;
  for (const Operator& op : step.graph.operators()) {
    if (op.nest.compute != ComputeKind::mac)
      continue;
    const std::string& name = step.graph.tensor(*op.outputs[0]).name;
    const bool forward = op.gradient_of != GradientOf::weight;
    for (const double y : forward ? run[name] : Numbers())
      ASSERT_EQ(round_to(fixed_format(4, 4), y), y) << name;
    on_grid += forward ? 1 : 0;
  }
  EXPECT_EQ(on_grid, 3U); // two layers forward, one input gradient
  EXPECT_NE(run.all(), plain.all());
}

/// Tensors in fp32, multiplied as if they were in e4m2: inside the unit, and nowhere else.
TEST(Formats, UnitsConvertTheirOperands) {
  const TrainingGraph step =
      step_of(two_layers(), "{optimizer: sgd, precision: {products: {forward: {operands: e4m2, "
                            "accumulate: fp32}}}}");
  const Executed run(step, Arithmetic::formats);
  const auto [x, w, h] = first_layer(step, run);
  const NumberFormat format = floating_format(4, 2);
  bool wider = false;
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 8; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < 6; ++k)
        sum += static_cast<float>(round_to(format, x[i * 6 + k]) * round_to(format, w[j * 6 + k]));
      EXPECT_EQ(h[i * 8 + j], static_cast<double>(sum));
      wider = wider || round_to(format, x[i * 6]) != x[i * 6];
    }
  }
  EXPECT_TRUE(wider);
}

TEST(Formats, AreTheSameOnAnyThreads) {
  for (const char* text : {"{optimizer: adam, precision: {weights: fp32, activations: mxfp8_e4m3, "
                           "gradients: mxfp8_e5m2_8x8, "
                           "rounding: stochastic:7}}",
                           "{optimizer: sgd, precision: {activations: e4m3, gradients: e5m2, "
                           "rounding: {mode: stochastic, saturate: "
                           "true}, products: {forward: {multiply: e5m2, variant: cfg5, accumulate: "
                           "e6m5, rounding: stochastic:13}}}}"}) {
    const TrainingGraph step = step_of(two_layers(), text);
    const Numbers one = Executed(step, Arithmetic::formats, 1, 3).all();
    const Numbers three = Executed(step, Arithmetic::formats, 3, 3).all();
    ASSERT_EQ(one.size(), three.size());
    for (std::size_t i = 0; i < one.size(); ++i)
      ASSERT_TRUE(one[i] == three[i] || (std::isnan(one[i]) && std::isnan(three[i]))) << i;
  }
}

TEST(Formats, BlocksHoldWhatQuantiseMakesOfThem) {
  const TrainingGraph step =
      step_of(two_layers(), "{optimizer: sgd, precision: {activations: mxfp6_e2m3_2x4}}");
  const Executed run(step, Arithmetic::formats);
  std::size_t blocks = 0;
  for (const Tensor& tensor : step.graph.tensors()) {
    if (!tensor.type.format().blocks || !tensor.producer)
      continue;
    const Numbers values = run[tensor.name];
    EXPECT_EQ(quantise(tensor.shape, values, tensor.type.format()).values, values) << tensor.name;
    ++blocks;
  }
  EXPECT_GT(blocks, 1U);
}

/// x [8, 40] -> Gemm -> Relu -> Gemm [8, 3] on blocks of 32: those of rows and columns differ.
TinyNetwork wide_layers() {
  TinyNetwork n;
  const auto transposed = with("transB", std::int64_t{1});
  const TensorId h =
      n.op("Gemm", {n.input("x", {8, 40}), n.parameter("w1", {36, 40})}, {8, 36}, transposed);
  const TensorId r = n.op("Relu", {h}, {8, 36});
  n.output(n.op("Gemm", {r, n.parameter("w2", {3, 36})}, {8, 3}, transposed));
  return n;
}

TensorFormat format_along(const char* type, int axis) {
  TensorFormat format = element_type_named(type)->format();
  format.blocks = along(*format.blocks, axis, 0);
  return format;
}

/// Both copies of what was computed, or the second of the first one's numbers; and dW from them,
/// added up in single precision with k ascending.
TEST(Formats, ProductsReadBlocksAlongTheirSum) {
  for (const bool again : {false, true}) {
    const TrainingGraph step =
        step_of(wide_layers(), std::string("{optimizer: sgd, precision: {activations: mxint8, "
                                           "weights: mxint8, gradients: mxint8, blocks: "
                                           "{transposed: ") +
                                   (again ? "requantise" : "copy") + "}}}");
    const Executed run(step, Arithmetic::formats);
    const TensorFormat along_rows = format_along("mxint8", -1);
    const TensorFormat along_columns = format_along("mxint8", -2);
    const std::vector<std::int64_t> shape{8, 36};
    const Numbers rows = run["Relu_1"];
    const Numbers columns = run["Relu_1.axis0"];
    const Numbers before = again ? rows : run["Relu_1.wide"];
    EXPECT_EQ(quantise(shape, before, along_rows).values, rows);
    EXPECT_EQ(quantise(shape, before, along_columns).values, columns);
    EXPECT_NE(rows, columns);
    const TensorId dw = step.graph.find_tensor("w2.grad").value();
    const Operator& product = step.graph.op(step.graph.tensor(dw).producer.value());
    const Numbers dy = run[step.graph.tensor(*product.inputs[1]).name];
    ASSERT_EQ(step.graph.tensor(*product.inputs[0]).name, "Relu_1.axis0");
    Numbers sums;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 36; ++j) {
        float sum = 0;
        for (std::size_t m = 0; m < 8; ++m)
          sum += static_cast<float>(dy[m * 3 + i]) * static_cast<float>(columns[m * 36 + j]);
        sums.push_back(static_cast<double>(sum));
      }
    }
    EXPECT_EQ(run["w2.grad"], quantise(std::vector<std::int64_t>{3, 36}, sums, along_rows).values);
  }
}

/// Copies change nothing where types do not round, and views in front of them neither.
TEST(Formats, CopiesAreTheSameNumbers) {
  const std::string types = "{optimizer: sgd, precision: {activations: mxint8, weights: mxint8, "
                            "gradients: mxint8, master_weights: fp32}}";
  const TrainingGraph step = step_of(wide_layers(), types);
  const TrainingGraph plain = step_of(wide_layers(), "{optimizer: sgd}");
  const Executed copied(step, Arithmetic::fp32, 1, 2);
  const Executed whole(plain, Arithmetic::fp32, 1, 2);
  for (const char* name : {"w1.grad", "w2.grad"})
    EXPECT_EQ(copied[name], whole[name]);
  const TrainingGraph folded = fold_views(step);
  EXPECT_EQ(Executed(folded, Arithmetic::formats, 1, 2)["w1.grad"],
            Executed(step, Arithmetic::formats, 2, 2)["w1.grad"]);
}

TEST(Formats, FlushedAndInfiniteGradientsAreSeen) {
  const TrainingGraph step =
      step_of(two_layers(), "{optimizer: sgd, loss_scale: 1e9, precision: {gradients: e4m3}}");
  const Executed run(step, Arithmetic::formats);
  ASSERT_TRUE(step.found_inf);
  EXPECT_EQ(run[step.graph.tensor(*step.found_inf).name][0],
            1); // infinite in e4m3: the step is skipped
}

/// x [4, 1] -> times 8 -> times 1/8: y = x, with targets that make of the gradient of y what is
/// wanted.
class FlushedGradients {
public:
  explicit FlushedGradients(const std::string& precision)
      : step_(step_of(network(), "{optimizer: sgd, loss: {type: mse, reduction: sum}, precision: " +
                                     precision + "}")) {}

  /// What a run counts; it is run twice, so that nothing is left from the run before.
  GradientRounding count(Arithmetic arithmetic, int jobs = 1) const {
    ExecuteOptions options;
    options.arithmetic = arithmetic;
    options.formats = step_.arithmetic;
    options.jobs = jobs;
    Execution run(step_.graph, options);
    const auto set = [&](std::string_view name, const Numbers& numbers) {
      EXPECT_EQ(set_by_name(run, step_, name, numbers), 1) << name;
    };
    set("x", {1, 1, 1, 1});
    set("w1", {8});
    set("w2", {0.125});
    for (const Tensor& tensor : step_.graph.tensors()) {
      if (tensor.kind == TensorKind::label)
        set(tensor.name, {0.5, 1 - std::ldexp(1, -12), 1, 1 - std::ldexp(1, -9)});
    }
    fill(run, step_, 1);
    set_step_number(run, step_, 1);
    run.run();
    run.run();
    return run.gradient_rounding();
  }

private:
  static TinyNetwork network() {
    TinyNetwork n;
    const auto transposed = with("transB", std::int64_t{1});
    const TensorId x = n.input("x", {4, 1});
    const TensorId h = n.op("Gemm", {x, n.parameter("w1", {1, 1})}, {4, 1}, transposed);
    n.output(n.op("Gemm", {h, n.parameter("w2", {1, 1})}, {4, 1}, transposed));
    return n;
  }
  TrainingGraph step_;
};

// The smallest number of e4m3 is 2^-9. dY is 1, 2^-11, 0, 2^-8: three numbers, one of which becomes
// 0. dH is an eighth of it: 2^-3 and 2^-11, one of which becomes 0. dW1 = 2^-3, dW2 = 8 (1 + 2^-8).
TEST(Formats, GradientsThatBecomeZeroAreCounted) {
  const FlushedGradients step("{gradients: e4m3}");
  for (const int jobs : {1, 2}) {
    const GradientRounding found = step.count(Arithmetic::formats, jobs);
    EXPECT_EQ(found.numbers, 7);
    EXPECT_EQ(found.flushed, 2);
  }
  EXPECT_EQ(step.count(Arithmetic::fp32).numbers, 0);
  EXPECT_EQ(FlushedGradients("{activations: e4m3}").count(Arithmetic::formats).numbers, 0);
  // Tensors in single precision: dY enters the products for dH, where one of three becomes 0, and
  // for dW2; dH, which is an eighth of what entered, enters the product for dW1.
  const FlushedGradients converted("{products: {forward: {operands: e4m3, multiply: exact, "
                                   "accumulate: fp32}}}");
  for (const int jobs : {1, 2}) {
    const GradientRounding found = converted.count(Arithmetic::formats, jobs);
    EXPECT_EQ(found.numbers, 3 + 3 + 2);
    EXPECT_EQ(found.flushed, 1 + 1 + 1);
  }
  EXPECT_EQ(converted.count(Arithmetic::fp32).numbers, 0);
  const GradientRounding wide = FlushedGradients("{gradients: bf16}").count(Arithmetic::formats);
  EXPECT_EQ(wide.numbers, 8); // dH has three
  EXPECT_EQ(wide.flushed, 0);
}

TEST(ElementTypes, HaveNamesOfTheirOwn) {
  for (const char* name :
       {"fp32", "qint8", "bool", "bit", "mxfp8_e4m3", "fp8_e5m2_128x128", "e5m2_inf", "e4m3",
        "q8.13", "mxfp8_e4m3_8x8", "mxint8_1x16_even", "mxfp4_e2m1_rceil", "nvfp4", "nvfp4_2x8",
        "e4m3_4x4", "mxfp8_e4m3_32x1", "mxfp8_e4m3_8x1x8", "mxint8_32x1x1_even", "nvfp4_4x4x1x1"}) {
    const auto type = element_type_named(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(name_of(*type), name);
    EXPECT_EQ(element_type_named(name_of(*type)), type);
  }
  EXPECT_EQ(element_type_named("e5m2"), ElementType::fp8_e5m2); // two names of one type
  for (const char* name :
       {"string", "int4", "e12m3", "fp33", "bf16_rceil", "mxfp8_e4m3_8x", "mxfp8_e4m3_2x2x2",
        "mxfp8_e4m3_1x2x2", "mxfp8_e4m3_8", "fp8_e4m3_1x128_even"})
    EXPECT_FALSE(element_type_named(name)) << name;
  EXPECT_EQ(
      size_of(Tensor{.name = "x", .shape = {16, 16}, .type = *element_type_named("mxfp8_e4m3_8x8")})
          .value,
      256 * 8 + 4 * 8);
  EXPECT_EQ(
      size_of(Tensor{.name = "x", .shape = {9, 9}, .type = *element_type_named("mxfp8_e4m3_8x8")})
          .value,
      81 * 8 + 4 * 8);
}

TEST(UnitOptions, AreChecked) {
  const auto problems_of = [](const std::string& text) {
    ProblemList problems;
    read_training_options(parse_yaml("precision: " + text, "t.yaml"), problems);
    std::string all;
    for (const InputProblem& problem : problems.problems())
      all += problem.to_string() + "\n";
    return all;
  };
  EXPECT_EQ(problems_of("{products: {forward: {multiply: e5m2, variant: cfg3, accumulate: e6m5}}}"),
            "");
  EXPECT_NE(
      problems_of("{products: {forward: {multiply: e5m2x}}}").find("unknown number format 'e5m2x'"),
      std::string::npos);
  EXPECT_EQ(problems_of("{products: {forward: {operands: e4m3, accumulate: fp32}}}"), "");
  EXPECT_EQ(problems_of("{products: {forward: {operands: bf17, accumulate: fp32}}}"),
            "t.yaml:1:44: unknown number format 'bf17' (did you mean 'bf16'?)\n");
  EXPECT_NE(problems_of("{products: {forward: {operands: fp64, accumulate: fp32}}}")
                .find("single precision lacks"),
            std::string::npos);
  EXPECT_NE(problems_of("{products: {forward: {multiply: e5m2, sum: e6m5}}}").find("sum"),
            std::string::npos);
  EXPECT_NE(problems_of("{products: {forward: {variant: cfg3}}}").find("needs the format"),
            std::string::npos);
  EXPECT_NE(problems_of("{products: {forward: {multiply: q4.4, variant: cfg3}}}").find("cfg3"),
            std::string::npos);
  EXPECT_NE(problems_of("{products: {forward: {accumulate: int64}}}").find("int64"),
            std::string::npos);
  EXPECT_EQ(problems_of("{activations: mxfp8_e4m3, blocks: {shape: 8x8, scale: rceil}}"), "");
  EXPECT_NE(problems_of("{activations: bf16, blocks: {shape: 8x8}}").find("no role has blocks"),
            std::string::npos);
  EXPECT_NE(problems_of("{activations: mxint8, blocks: {shape: 0x8}}").find("8x8, for example"),
            std::string::npos);
  EXPECT_EQ(problems_of("{activations: mxint8, blocks: {transposed: requantise}}"), "");
  EXPECT_NE(problems_of("{activations: mxint8, blocks: {transposed: again}}").find("requantise"),
            std::string::npos);
  EXPECT_NE(problems_of("{rounding: hysteresis}").find("previous values"), std::string::npos);
  EXPECT_NE(problems_of("{rounding: evn}").find("not a rounding mode"), std::string::npos);
  EXPECT_NE(problems_of("{activations: e5m99}").find("not an element type"), std::string::npos);
  EXPECT_NE(problems_of("{activations: mxfp8_e4m3_0x8}").find("not an element type"),
            std::string::npos);
}

} // namespace MONET_TEST_FILE
} // namespace monet
