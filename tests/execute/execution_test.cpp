#include "execute/shared/generator.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/execute/execute.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace monet::test {
namespace {

/// x -> x*w + b -> ReLU -> *v + c, mean squared error.
TrainingGraph two_layers() {
  TinyNetwork net;
  const TensorId x = net.input("x", {4, 8});
  const TensorId hidden =
      net.op("Gemm", {x, net.parameter("w", {8, 6}), net.parameter("b", {6})}, {4, 6});
  const TensorId relu = net.op("Relu", {hidden}, {4, 6});
  net.output(net.op("Gemm", {relu, net.parameter("v", {6, 3}), net.parameter("c", {3})}, {4, 3}));
  TrainingOptions options;
  options.loss = Mse{};
  options.update.optimizer = Sgd{.learning_rate = 0.05};
  return make_training_graph(net.graph, options);
}

double loss_of(const TrainingGraph& step, const Execution& execution) {
  return execution.get(*step.loss).at(0);
}

TEST(Execution, LossFallsAsGradientsPromise) {
  const TrainingGraph step = two_layers();
  Execution execution(step.graph);
  fill(execution, step, 5);
  execution.run();
  const double before = loss_of(step, execution);
  double squared = 0.0;
  for (const ParameterRecord& record : step.parameters) {
    for (const double g : execution.get(record.gradient))
      squared += g * g;
  }
  execution.advance();
  execution.run();
  const double fall = before - loss_of(step, execution);
  EXPECT_GT(fall, 0.0);
  EXPECT_NEAR(fall, 0.05 * squared, 0.5 * 0.05 * squared); // first order
}

TEST(Execution, GradientsAreDifferenceQuotients) {
  const TrainingGraph step = two_layers();
  Execution execution(step.graph);
  fill(execution, step, 5);
  execution.run();
  for (const ParameterRecord& record : step.parameters) {
    const std::vector<double> weight = execution.get(record.weight);
    const std::vector<double> gradient = execution.get(record.gradient);
    for (std::size_t i = 0; i < weight.size(); i += 5) {
      constexpr double kStep = 1e-6;
      std::array<double, 2> losses{};
      for (int side = 0; side < 2; ++side) {
        Execution moved(step.graph);
        std::vector<double> shifted = weight;
        shifted[i] += side == 0 ? -kStep : kStep;
        moved.set(record.weight, shifted);
        fill(moved, step, 5);
        moved.run();
        losses[static_cast<std::size_t>(side)] = loss_of(step, moved);
      }
      EXPECT_NEAR((losses[1] - losses[0]) / (2 * kStep), gradient[i], 1e-8);
    }
  }
}

TEST(Execution, CastsGiveTheNearestIntegerAndZeroForNaN) {
  TinyNetwork net;
  const TensorId x = net.input("x", {5});
  const TensorId whole = net.op("Cast", {x}, {5}, {{"to", std::int64_t{7}}}, ElementType::int64);
  net.output(whole);
  const TrainingGraph step = make_inference_graph(net.graph, {});
  Execution execution(step.graph);
  const double infinite = std::numeric_limits<double>::infinity();
  execution.set(x, std::vector<double>{std::nan(""), infinite, -infinite, 1e19, -2.9});
  execution.run();
  EXPECT_EQ(execution.get(whole), (std::vector<double>{0, 0x1p63, -0x1p63, 0x1p63, -2}));
}

TEST(Execution, FreesWhatNobodyReadsAnyMore) {
  const TrainingGraph step = two_layers();
  Execution all(step.graph);
  Execution few(step.graph, {Arithmetic::fp64, 0, false});
  for (Execution* execution : {&all, &few}) {
    fill(*execution, step, 1);
    execution->run();
  }
  std::size_t freed = 0;
  for (std::size_t i = 0; i < step.graph.tensors().size(); ++i) {
    if (few.has(TensorId(i)))
      EXPECT_EQ(few.get(TensorId(i)), all.get(TensorId(i)));
    else
      ++freed;
  }
  EXPECT_GT(freed, 3U);
  EXPECT_TRUE(few.has(*step.loss));
  EXPECT_TRUE(few.has(step.parameters[0].gradient));
}

TEST(Execution, SinglePrecisionIsCloseAndNotEqual) {
  const TrainingGraph step = two_layers();
  Execution exact(step.graph);
  Execution single(step.graph, {Arithmetic::fp32, 0, true});
  for (Execution* execution : {&exact, &single}) {
    fill(*execution, step, 1);
    execution->run();
  }
  EXPECT_NE(loss_of(step, exact), loss_of(step, single));
  EXPECT_NEAR(loss_of(step, exact), loss_of(step, single), 1e-5 * loss_of(step, exact));
}

TEST(Execution, NamesEveryTensorWithoutNumbers) {
  const TrainingGraph step = two_layers();
  Execution execution(step.graph);
  try {
    execution.run();
    FAIL() << "ran without numbers";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 6U); // x, w, b, v, c, targets
    EXPECT_NE(std::string(error.what()).find("tensor 'v'"), std::string::npos);
  }
}

/// A mask that was too large to be kept is not made up.
TEST(Execution, FillsNoMasks) {
  TinyNetwork net;
  const TensorId mask = net.input("mask", {4, 3});
  net.graph.tensor(mask).kind = TensorKind::buffer;
  net.graph.tensor(mask).type = ElementType::boolean;
  const TensorId w = net.parameter("w", {4, 3});
  const TensorId v = net.parameter("v", {4, 3});
  net.output(net.op("Where", {mask, w, v}, {4, 3}));
  TrainingOptions options;
  options.loss = Mse{};
  const TrainingGraph step = make_training_graph(net.graph, options);
  Execution execution(step.graph);
  fill(execution, step, 5);
  EXPECT_TRUE(execution.has(w));
  EXPECT_FALSE(execution.has(mask));
  EXPECT_THROW(execution.run(), InputError);
}

/// Two rows of w*x are picked by a mask; the step was made for two.
TEST(Execution, RowsThatAMaskPicks) {
  TinyNetwork net;
  const TensorId x = net.input("x", {3, 2});
  const TensorId mask = net.input("mask", {3});
  const TensorId rows = net.op("NonZero", {mask}, {1, 2}, {}, ElementType::int64);
  const TensorId places = net.op("Transpose", {rows}, {2, 1}, {}, ElementType::int64);
  const TensorId scaled = net.op("Mul", {x, net.parameter("w", {3, 2})}, {3, 2});
  net.output(net.op("GatherND", {scaled, places}, {2, 2}));
  TrainingOptions options;
  options.loss = NoLoss{};
  for (const bool folds : {false, true}) {
    const TrainingGraph made = make_training_graph(net.graph, options);
    const TrainingGraph step = folds ? fold_views(made) : made;
    Execution execution(step.graph);
    const auto set = [&](std::string_view name, const std::vector<double>& numbers) {
      execution.set(step.graph.find_tensor(name).value(), numbers);
    };
    fill(execution, step, 1);
    set("x", {1, 2, 3, 4, 5, 6});
    set("mask", {0.5, 0, -1});
    const TensorId fed =
        *std::find_if(step.graph.inputs.begin(), step.graph.inputs.end(), [&](TensorId id) {
          return step.graph.tensor(id).kind == TensorKind::gradient;
        });
    execution.set(fed, std::vector<double>{1, 10, 100, 1000});
    execution.run();
    EXPECT_EQ(execution.get(step.parameters.at(0).gradient),
              (std::vector<double>{1, 20, 0, 0, 500, 6000}));
    set("mask", {1, 1, 1});
    EXPECT_THROW(execution.run(), InputError);
  }
}

TEST(Execution, NamesEveryOperatorThatItCannotRun) {
  TinyNetwork net;
  const TensorId x = net.input("x", {4});
  const TensorId first = net.op("NoSuchOperator", {x}, {4});
  net.output(net.op("NorThisOne", {first}, {4}));
  try {
    const Execution execution(net.graph);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 2U);
  }
}

// Figures computed with an independent implementation of FNV-1a and splitmix64.
TEST(NumberGenerator, EqualsAnIndependentImplementation) {
  const NumberGenerator empty("", 0); // key = the FNV-1a offset basis
  EXPECT_EQ(empty.raw(0), 14087677454934409008U);
  EXPECT_EQ(empty.raw(1), 1156539639830188822U);
  const NumberGenerator named("conv1.weight", 7);
  EXPECT_EQ(named.raw(0), 13915842516955948429U);
  EXPECT_EQ(named.raw(41), 12981170097131011576U);
}

TEST(NumberGenerator, StaysInItsRanges) {
  const NumberGenerator numbers("x", 3);
  double sum = 0.0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    EXPECT_GE(numbers.uniform(i), -1.0);
    EXPECT_LT(numbers.uniform(i), 1.0);
    EXPECT_DOUBLE_EQ(numbers.uniform(i), 2.0 * numbers.fraction(i) - 1.0);
    EXPECT_GE(numbers.index(i, 7), 0);
    EXPECT_LT(numbers.index(i, 7), 7);
    sum += numbers.uniform(i);
  }
  EXPECT_NEAR(sum / 10000, 0.0, 0.03);
}

} // namespace
} // namespace monet::test
