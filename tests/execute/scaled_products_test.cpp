// Products in fp8 by their numbers: scaling and unscaling cancel, histories and scales are those of
// the recipe (tools/make_scaling_fixtures.py).
#include "training_graph/read_options.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <limits>

namespace monet {
namespace {

using nlohmann::json;
using Numbers = std::vector<double>;

constexpr const char* kTypes =
    "precision: {weights: fp32, activations: bf16, gradients: bf16, products: ";

/// x [batch, 6] -> Gemm -> Relu -> Gemm: [batch, 3].
TinyNetwork perceptron(std::int64_t batch = 4) {
  TinyNetwork n;
  const auto transposed = with("transB", std::int64_t{1});
  const TensorId x = n.input("x", {batch, 6});
  const TensorId h =
      n.op("Gemm", {x, n.parameter("w1", {8, 6}), n.parameter("b1", {8})}, {batch, 8}, transposed);
  const TensorId r = n.op("Relu", {h}, {batch, 8});
  n.output(
      n.op("Gemm", {r, n.parameter("w2", {3, 8}), n.parameter("b2", {3})}, {batch, 3}, transposed));
  return n;
}

Numbers pattern(std::int64_t count, double phase, double scale) {
  Numbers values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(scale * std::sin(1.7 * static_cast<double>(i) + phase));
  return values;
}

void set(Execution& execution, const Graph& graph, std::string_view name, double phase,
         double scale) {
  const TensorId id = graph.find_tensor(name).value();
  execution.set(id, pattern(element_count(graph.tensor(id)), phase, scale));
}

/// The numbers of the fixture.
void feed(Execution& execution, const TrainingGraph& step, const Numbers& labels = {0, 2, 1, 2}) {
  set(execution, step.graph, "x", 0.1, 3.0);
  set(execution, step.graph, "w1", 1.0, 0.8);
  set(execution, step.graph, "b1", 2.0, 0.3);
  set(execution, step.graph, "w2", 3.0, 1.2);
  set(execution, step.graph, "b2", 4.0, 0.3);
  execution.set(step.graph.find_tensor("labels").value(), labels);
  fill(execution, step, 0);
}

/// What our tensors are called by in the fixture.
const std::map<std::string, std::string> kNames{{"x", "x"},
                                                {"w1", "w1"},
                                                {"hidden", "Relu_1"},
                                                {"w2", "w2"},
                                                {"hidden.grad", "Gemm_0.grad"},
                                                {"logits.grad", "Gemm_2.grad"}};

Numbers numbers_of(const Execution& execution, const Graph& graph, const std::string& name) {
  return execution.get(graph.find_tensor(name).value());
}

void expect_near(const Numbers& actual, const Numbers& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << what;
}

json cases() {
  std::ifstream file(std::string(MONET_SOURCE_DIR) + "/tests/fixtures/fp8_scaling.json");
  return json::parse(file).at("cases");
}

TEST(DelayedScaling, StatesAreThoseOfTheRecipe) {
  for (const json& one : cases()) {
    const std::string options =
        fmt::format("{{{}{{backward: {}, amax_history: {}, amax_compute: {}, margin: {}}}}}, "
                    "loss: cross_entropy, optimizer: {{type: sgd, learning_rate: 0.5}}}}",
                    kTypes, one["backward"].get<std::string>(), one["amax_history"].get<int>(),
                    one["amax_compute"].get<std::string>(), one["margin"].get<int>());
    const TrainingGraph unfolded = make_training_graph(perceptron().graph, read_options(options));
    for (const TrainingGraph& step : {unfolded, fold_views(unfolded)}) {
      verify(step);
      Execution execution(step.graph);
      feed(execution, step);
      for (int i = 0; i < one["steps"]; ++i) {
        execution.run();
        execution.advance();
      }
      for (const auto& [name, states] : one["states"].items()) {
        const std::string tensor = kNames.at(name) + ".fp8";
        const std::string what = options + " " + name;
        expect_near(numbers_of(execution, step.graph, tensor + ".amax_history"),
                    states["history"].get<Numbers>(), 1e-12, what);
        expect_near(numbers_of(execution, step.graph, tensor + ".scale"),
                    {states["scale"].get<double>()}, 1e-12, what);
      }
    }
  }
}

TEST(CurrentScaling, ScalesAreThoseOfTheTensors) {
  const json one = cases().at(1);
  const TrainingGraph step = make_training_graph(
      perceptron().graph, read_options(std::string("{") + kTypes +
                                       "{scaling: current}}, loss: cross_entropy, "
                                       "optimizer: {type: sgd, learning_rate: 0.5}}"));
  Execution execution(step.graph, {.keep_all = true});
  feed(execution, step);
  for (int i = 0; i < one["steps"]; ++i) {
    if (i > 0)
      execution.advance();
    execution.run();
  }
  for (const auto& [name, states] : one["states"].items()) {
    const std::string tensor = kNames.at(name) + ".fp8";
    expect_near(numbers_of(execution, step.graph, tensor + ".scale"),
                {states["current_scale"].get<double>()}, 1e-12, name);
    const Numbers maxima = numbers_of(execution, step.graph, tensor + ".amax");
    expect_near({*std::ranges::max_element(maxima)}, {states["amax"].get<double>()}, 1e-12, name);
  }
  EXPECT_FALSE(step.graph.find_tensor("x.fp8.amax_history").has_value());
}

/// Zeros and numbers that are none say nothing about a scale; one that fp32 cannot hold is the
/// largest that it can.
TEST(DelayedScaling, KeepsTheScaleWhereTheMaximumSaysNothing) {
  const TrainingGraph step = make_training_graph(
      perceptron().graph,
      read_options(std::string("{") + kTypes + "{amax_history: 2}}, loss: cross_entropy}"));
  const double infinity = std::numeric_limits<double>::infinity();
  const double fp32 = std::numeric_limits<float>::max();
  // The second step's scale follows from the larger of two maxima.
  const std::vector<std::pair<Numbers, Numbers>> runs{{{2.0, 0.0}, {224.0, 224.0}},
                                                      {{0.0, 0.0}, {1.0, 1.0}},
                                                      {{4.0, infinity}, {112.0, 112.0}},
                                                      {{1e-320, 7.0}, {fp32, 64.0}}};
  for (const auto& [maxima, scales] : runs) {
    Execution execution(step.graph);
    feed(execution, step);
    for (std::size_t i = 0; i < maxima.size(); ++i) {
      Numbers x(24, 0.0);
      x[7] = -maxima[i];
      execution.set(step.graph.find_tensor("x").value(), x);
      execution.run();
      execution.advance();
      EXPECT_EQ(numbers_of(execution, step.graph, "x.fp8.scale")[0], scales[i]) << maxima[i];
    }
  }
}

std::map<std::string, Numbers> gradients(const TrainingGraph& step, int steps = 1) {
  verify(step);
  Execution execution(step.graph);
  feed(execution, step);
  for (int i = 0; i < steps; ++i) {
    if (i > 0)
      execution.advance();
    execution.run();
  }
  std::map<std::string, Numbers> found;
  for (const ParameterRecord& record : step.parameters)
    found.emplace(step.graph.tensor(record.weight).name, execution.get(record.gradient));
  return found;
}

TEST(ScaledProducts, GradientsAreThoseWithout) {
  const std::string sgd = ", optimizer: {type: sgd, learning_rate: 0.1}}";
  for (const std::string more :
       {"", ", store: pytorch-eager", ", store: {recompute: ['*.fp8']}", ", update: unfused",
        ", store: {recompute: ['*']}", ", store: {keep: ['*']}", ", trainable: {lora: {rank: 2}}",
        ", trainable: {sparse: {channels: {w1: 0.5, w2: 0.5}}}", ", loss_scale: 1024",
        ", clip_global_norm: 0.01", ", trainable: {freeze: [w1, b1]}"}) {
    const std::string plain = "{loss: cross_entropy" + more + sgd;
    // Nothing is stored to be computed again where the options name casts.
    const bool casts = more.find("fp8") != std::string::npos;
    const auto expected =
        gradients(make_training_graph(perceptron().graph,
                                      read_options(casts ? "{loss: cross_entropy" + sgd : plain)),
                  3);
    for (const std::string products :
         {"fp8_e4m3", "{scaling: delayed, amax_history: 3}", "{scaling: current}",
          "{scaling: block}", "{layers: ['w*']}"}) {
      const TrainingGraph step = make_training_graph(
          perceptron().graph,
          read_options("{loss: cross_entropy, " + (kTypes + products) + "}" + more + sgd));
      for (const TrainingGraph& form : {step, fold_views(step)}) {
        const auto found = gradients(form, 3);
        ASSERT_EQ(found.size(), expected.size());
        for (const auto& [name, numbers] : expected)
          expect_near(found.at(name), numbers, 1e-12, name + more + " " + products);
      }
    }
  }
}

/// One cast of each weight, and one history for all micro-batches.
TEST(ScaledProducts, MicroBatchesShareWeightsAndHistories) {
  const std::string options = ", loss: cross_entropy, micro_batches: 3, optimizer: "
                              "{type: sgd, learning_rate: 0.1}}";
  const TrainingGraph step =
      make_training_graph(perceptron(2).graph,
                          read_options(std::string("{") + kTypes + "{amax_history: 2}}" + options));
  const TrainingGraph plain =
      make_training_graph(perceptron(2).graph, read_options("{batch_norm: training" + options));
  for (const TrainingGraph& form : {step, fold_views(step)}) {
    verify(form);
    EXPECT_EQ(count_ops(form.graph, "ScaledCast", Phase::forward), 2 + 3 * 2);
    EXPECT_EQ(count_ops(form.graph, "ScaledCast", Phase::backward), 3 * 2);
    EXPECT_EQ(count_ops(form.graph, "AmaxUpdate", Phase::update), 6);
    std::map<std::string, Numbers> results[2];
    for (const TrainingGraph* each : {&plain, &form}) {
      Execution execution(each->graph);
      feed(execution, *each, {0, 2});
      const double largest[]{1.0, 5.0, 3.0};
      for (int micro = 1; micro <= 3; ++micro) {
        const std::string name = micro == 1 ? "x" : fmt::format("x.micro_{}", micro);
        Numbers x = pattern(12, micro, 0.9);
        x[3] = largest[micro - 1];
        execution.set(each->graph.find_tensor(name).value(), x);
      }
      execution.run();
      for (const ParameterRecord& record : each->parameters)
        results[each == &form].emplace(each->graph.tensor(record.weight).name,
                                       execution.get(record.gradient));
      if (each != &form)
        continue;
      execution.advance();
      EXPECT_EQ(numbers_of(execution, form.graph, "x.fp8.amax_history"), (Numbers{0.0, 5.0}));
      EXPECT_EQ(numbers_of(execution, form.graph, "x.fp8.scale")[0], 448.0 / 5.0);
    }
    for (const auto& [name, numbers] : results[0])
      expect_near(results[1].at(name), numbers, 1e-12, name);
  }
}

/// Each copy keeps the numbers, the one for dW transposed.
TEST(BlockScaling, CopiesAreTheTensor) {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 70, 131});
  const TensorId h = n.op("MatMul", {x, n.parameter("w1", {131, 5})}, {2, 70, 5});
  n.output(n.op("MatMul", {n.op("Tanh", {h}, {2, 70, 5}), n.parameter("w2", {5, 4})}, {2, 70, 4}));
  const std::string sgd = ", loss: {type: mse}, optimizer: {type: sgd, learning_rate: 0.1}";
  const TrainingGraph plain =
      make_training_graph(n.graph, read_options("{batch_norm: training" + sgd + "}"));
  const TrainingGraph step = make_training_graph(
      n.graph, read_options(std::string("{") + kTypes + "{scaling: block}}" + sgd + "}"));
  for (const TrainingGraph& form : {step, fold_views(step)}) {
    verify(form);
    Execution expected(plain.graph);
    Execution execution(form.graph, {.keep_all = true});
    for (Execution* each : {&expected, &execution})
      fill(*each, each == &expected ? plain : form, 3);
    expected.run();
    execution.run();
    for (std::size_t i = 0; i < plain.parameters.size(); ++i)
      expect_near(execution.get(form.parameters[i].gradient),
                  expected.get(plain.parameters[i].gradient), 1e-12, "gradient");
    const Numbers numbers = numbers_of(execution, form.graph, "x");
    const Numbers columns = numbers_of(execution, form.graph, "x.fp8.columns");
    expect_near(numbers_of(execution, form.graph, "x.fp8"), numbers, 1e-15, "rows");
    for (std::size_t row = 0; row < 140; ++row) {
      for (std::size_t column = 0; column < 131; ++column)
        EXPECT_NEAR(columns[column * 140 + row], numbers[row * 131 + column], 1e-15);
    }
  }
}

TEST(ScaledProducts, InferenceCastsAndLooksForNoMaxima) {
  for (const std::string products : {"{}", "{scaling: current}", "{scaling: block}"}) {
    const Precision precision = read_options(std::string("{") + kTypes + products + "}}").precision;
    const TrainingGraph step = make_inference_graph(perceptron().graph, precision);
    const TrainingGraph plain = make_inference_graph(perceptron().graph);
    verify(step);
    const bool blocks = products == "{scaling: block}";
    EXPECT_EQ(count_ops(step.graph, "ScaledCast", Phase::forward), blocks ? 0 : 4);
    EXPECT_EQ(count_ops(step.graph, "BlockCast", Phase::forward), blocks ? 4 : 0);
    EXPECT_EQ(count_ops(step.graph, "Amax", Phase::forward),
              products == "{scaling: current}" ? 4 : 0);
    Numbers results[2];
    for (const TrainingGraph* each : {&plain, &step}) {
      Execution execution(each->graph);
      fill(execution, *each, 1);
      execution.run();
      results[each == &step] = execution.get(each->graph.outputs.front());
    }
    expect_near(results[1], results[0], 1e-12, products);
  }
}

} // namespace
} // namespace monet
