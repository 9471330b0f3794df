// Steps of every optimiser against PyTorch's, fused and unfused.
#include "execute/shared/generator.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/yaml.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

namespace monet {
namespace MONET_TEST_FILE {

using Json = nlohmann::json;
using Numbers = std::vector<double>;

Json fixture() {
  std::ifstream file(MONET_SOURCE_DIR "/tests/fixtures/optimizers.json");
  return Json::parse(file);
}

TrainingOptions options_of(const std::string& text) {
  ProblemList problems;
  TrainingOptions options = read_training_options(parse_yaml(text, "case"), problems);
  problems.throw_if_any();
  options.loss = NoLoss{};
  return options;
}

/// Every parameter is an output, so that its gradient is what is fed in.
Graph parameters_alone(const Json& shapes) {
  Graph graph;
  graph.origin = "parameters.onnx";
  for (const auto& [name, shape] : shapes.items()) {
    Tensor weight;
    weight.name = name;
    weight.shape = shape.get<std::vector<std::int64_t>>();
    weight.kind = TensorKind::parameter;
    Tensor result = weight;
    result.name = name + "_out";
    result.kind = TensorKind::activation;
    Operator op;
    op.name = name + "_op";
    op.op_type = "Neg";
    op.inputs = {graph.add_tensor(std::move(weight))};
    op.outputs = {graph.add_tensor(std::move(result))};
    graph.outputs.push_back(*op.outputs[0]);
    build_nest(graph, graph.add_operator(std::move(op)));
  }
  return graph;
}

Numbers numbers(const std::string& name, const Tensor& like, double factor) {
  const NumberGenerator generator(name, 7);
  Numbers result(static_cast<std::size_t>(element_count(like)));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = factor * generator.uniform(i);
  return result;
}

using Parameters = std::map<std::string, Numbers>;

/// What the step leaves in the tensor's memory.
TensorId last_version(const Graph& graph, TensorId state) {
  TensorId last = state;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    if (graph.tensors()[i].alias_of == state)
      last = TensorId(i);
  }
  return last;
}

/// `feed_factor`: the gradient that arrives is this times what the optimiser should see.
Parameters take_steps(const TrainingGraph& step, int steps, double feed_factor = 1.0) {
  const Graph& graph = step.graph;
  Execution execution(graph);
  for (const ParameterRecord& record : step.parameters) {
    const Tensor& weight = graph.tensor(record.weight);
    execution.set(record.weight, numbers(weight.name, weight, 1.0));
  }
  for (int i = 1; i <= steps; ++i) {
    if (i > 1)
      execution.advance();
    set_step_number(execution, step, i);
    for (const ParameterRecord& record : step.parameters) {
      const Tensor& weight = graph.tensor(record.weight);
      const TensorId fed = graph.find_tensor(weight.name + "_out.grad").value();
      execution.set(fed, numbers(weight.name + ".grad." + std::to_string(i), weight, -feed_factor));
    }
    fill(execution, step, 0);
    execution.run();
  }
  Parameters after;
  for (const ParameterRecord& record : step.parameters) {
    const std::string& name = graph.tensor(record.weight).name;
    after[name] = execution.get(record.updated);
    if (record.average)
      after[name + ".average"] = execution.get(last_version(graph, *record.average));
  }
  return after;
}

double largest_error(const Numbers& actual, const Numbers& expected) {
  double error = actual.size() == expected.size() ? 0.0 : 1e300;
  double largest = 0.0;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    error = std::max(error, std::abs(actual[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return error / largest;
}

constexpr double kTolerance = 1e-13;

TEST(OptimizerSteps, EqualPyTorchFusedUnfusedAndFolded) {
  const Json fixtures = fixture();
  const int steps = fixtures.at("steps");
  const Graph network = parameters_alone(fixtures.at("shapes"));
  int cases = 0;
  for (const Json& row : fixtures.at("cases")) {
    const std::string text = row.at("training");
    const auto expected = row.at("after").get<Parameters>();
    TrainingOptions options = options_of(text);
    for (const bool fused : {true, false}) {
      options.update.fused = fused;
      const TrainingGraph step = make_training_graph(network, options);
      verify(step);
      for (const TrainingGraph& graph : {step, fold_views(step)}) {
        verify(graph);
        const Parameters after = take_steps(graph, steps);
        for (const auto& [name, values] : expected)
          EXPECT_LE(largest_error(after.at(name), values), kTolerance)
              << text << " " << name << (fused ? " fused" : " unfused");
      }
    }
    ++cases;
  }
  EXPECT_GE(cases, 30);
}

TEST(OptimizerSteps, AMasterCopyIsWhatIsUpdated) {
  const Json fixtures = fixture();
  const Graph network = parameters_alone(fixtures.at("shapes"));
  for (const Json& row : fixtures.at("cases")) {
    TrainingOptions options = options_of(row.at("training"));
    options.precision.weights = ElementType::bf16;
    options.precision.master_weights = ElementType::fp32;
    const auto expected = row.at("after").get<Parameters>();
    for (const bool fused : {true, false}) {
      options.update.fused = fused;
      const TrainingGraph step = make_training_graph(network, options);
      verify(step);
      const Parameters after = take_steps(step, fixtures.at("steps"));
      for (const auto& [name, values] : expected)
        EXPECT_LE(largest_error(after.at(name), values), kTolerance) << row.at("training");
    }
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet
