// Losses against PyTorch, and dropout against its definition.
#include "execute/compare.hpp"
#include "execute/shared/generator.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace monet {
namespace MONET_TEST_FILE {

using nlohmann::json;

constexpr double kTolerance = 1e-10;

TensorId add_tensor(Graph& graph, const std::string& name, std::vector<std::int64_t> shape,
                    TensorKind kind) {
  Tensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  tensor.kind = kind;
  return graph.add_tensor(std::move(tensor));
}

/// A network whose output is its parameter "logits", through one operator.
Graph network(const std::string& op_type, const std::vector<std::int64_t>& shape,
              Attributes attributes = {}) {
  Graph graph;
  graph.origin = "loss.onnx";
  Operator op;
  op.name = "only";
  op.op_type = op_type;
  op.attributes = std::move(attributes);
  op.inputs = {add_tensor(graph, "logits", shape, TensorKind::parameter)};
  op.outputs = {add_tensor(graph, "Y", shape, TensorKind::activation)};
  graph.outputs = {*op.outputs[0]};
  const OpId id = graph.add_operator(std::move(op));
  if (op_type != "Identity")
    build_nest(graph, id);
  return graph;
}

/// The options as a training file gives them.
TrainingOptions options_of(const json& test_case) {
  std::string text = fmt::format("loss: {{type: {}", test_case.at("kind").get<std::string>());
  for (const auto& [key, value] : test_case.at("options").items())
    text += fmt::format(", {}: {}", key, value.dump());
  ProblemList problems;
  TrainingOptions options = read_training_options(
      parse_yaml(text + "}\noptimizer: {type: sgd, learning_rate: 1.0}\n", "training.yaml"),
      problems);
  problems.throw_if_any();
  return options;
}

std::vector<double> uniform(const std::string& name, std::uint64_t seed, std::size_t count,
                            double scale) {
  const NumberGenerator generator(name, seed);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < count; ++i)
    numbers.push_back(scale * generator.uniform(i));
  return numbers;
}

void feed(Execution& execution, const TrainingGraph& step, const json& test_case) {
  const Graph& graph = step.graph;
  const std::uint64_t seed = test_case.at("seed");
  const TensorId logits = graph.find_tensor("logits").value();
  const auto count = static_cast<std::size_t>(element_count(graph.tensor(logits)));
  execution.set(logits, uniform("logits", seed, count, test_case.at("scale")));
  if (const auto labels = graph.find_tensor("labels")) {
    const std::vector<std::int64_t> numbers = test_case.at("labels");
    execution.set_integers(*labels, numbers);
    return;
  }
  std::vector<double> targets = uniform("targets", seed, count, 1.0);
  if (test_case.at("kind") == "bce_with_logits") {
    for (double& target : targets)
      target = (target + 1) / 2;
  }
  execution.set(graph.find_tensor("targets").value(), targets);
}

void check(const json& test_case, bool fold) {
  SCOPED_TRACE(test_case.at("name").get<std::string>());
  const std::vector<std::int64_t> shape = test_case.at("shape");
  TrainingGraph step = make_training_graph(network("Identity", shape), options_of(test_case));
  if (fold)
    step = fold_views(step);
  verify(step);
  Execution execution(step.graph);
  feed(execution, step, test_case);
  fill(execution, step, 1); // the learning rate
  execution.run();
  const test::Comparison loss =
      test::compare(test_case.at("loss"), {}, execution.get(*step.loss), kTolerance);
  EXPECT_EQ(loss.problem, "");
  const std::vector<double> gradient = execution.get(step.parameters.at(0).gradient);
  EXPECT_EQ(test::compare(test_case.at("gradient"), shape, gradient, kTolerance).problem, "");
}

TEST(Losses, EqualPyTorch) {
  std::ifstream file(MONET_SOURCE_DIR "/tests/fixtures/losses.json");
  const json cases = json::parse(file).at("cases");
  for (const json& test_case : cases) {
    check(test_case, false);
    check(test_case, true);
  }
  fmt::print("   {} losses\n", cases.size());
}

TEST(Losses, ALabelThatIsNoClassIsAnError) {
  const TrainingGraph step = make_training_graph(network("Identity", {2, 3}), {});
  Execution execution(step.graph);
  fill(execution, step, 1);
  execution.set_integers(step.graph.find_tensor("labels").value(), std::vector<std::int64_t>{1, 3});
  EXPECT_THROW(execution.run(), InputError);
}

/// Element i is kept when the i-th number of the result's name is at least the ratio; what is kept
/// is scaled so that the mean stays.
TEST(Dropout, MasksByTheSeedOfTheStep) {
  constexpr double kRatio = 0.25;
  Attributes attributes;
  attributes.set("ratio", kRatio);
  TrainingOptions options;
  options.loss = NoLoss{};
  options.update.optimizer = Sgd{};
  const TrainingGraph step = make_training_graph(network("Dropout", {40, 25}, attributes), options);
  std::vector<std::vector<double>> masks;
  for (const std::uint64_t seed : {std::uint64_t{3}, std::uint64_t{4}}) {
    ExecuteOptions how;
    how.seed = seed;
    Execution execution(step.graph, how);
    fill(execution, step, 1);
    execution.run();
    const std::vector<double> x = execution.get(step.parameters.at(0).weight);
    const std::vector<double> y = execution.get(step.graph.find_tensor("Y").value());
    const std::vector<double> mask = execution.get(step.graph.find_tensor("Y.mask").value());
    const std::vector<double> dx = execution.get(step.parameters.at(0).gradient);
    const std::vector<double> dy = execution.get(step.graph.find_tensor("Y.grad").value());
    const NumberGenerator generator("Y", seed);
    double kept = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(mask[i], generator.fraction(i) >= kRatio ? 1.0 : 0.0);
      EXPECT_NEAR(y[i], mask[i] * x[i] / (1 - kRatio), 1e-15);
      EXPECT_NEAR(dx[i], mask[i] * dy[i] / (1 - kRatio), 1e-15);
      kept += mask[i];
    }
    EXPECT_NEAR(kept / static_cast<double>(x.size()), 1 - kRatio, 0.05);
    masks.push_back(mask);
  }
  EXPECT_NE(masks[0], masks[1]);
}

} // namespace MONET_TEST_FILE
} // namespace monet
