// Operators against PyTorch: every case in tests/fixtures/gradients/ becomes an ONNX model, then a
// training step whose output gradients are fed in, and is executed in double precision. Outputs and
// gradients must agree, however the step stores its activations, with views and with views folded.
#include "execute/case_model.hpp"
#include "execute/compare.hpp"

#include "monet/base/errors.hpp"
#include "monet/execute/execute.hpp"
#include "monet/execute/generator.hpp"
#include "monet/training/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace monet {
namespace {

using nlohmann::json;

constexpr double kTolerance = 1e-10;
constexpr const char* kFolder = MONET_SOURCE_DIR "/tests/fixtures/gradients";

struct Variant {
  const char* name;
  StorePolicy store;
  bool fold;
};
constexpr Variant kVariants[]{
    {"minimal", StorePolicy::minimal, false},
    {"pytorch-eager", StorePolicy::pytorch_eager, false},
    {"views folded", StorePolicy::minimal, true},
};

TrainingGraph step_of(const json& test_case, const Variant& variant) {
  const Graph network = read_onnx_bytes(test::model_bytes(test_case), "case.onnx");
  TrainingOptions options;
  options.loss = LossKind::none;
  options.optimizer.kind = OptimizerKind::sgd;
  options.store = variant.store;
  TrainingGraph step = make_training_graph(network, options);
  return variant.fold ? fold_views(step) : step;
}

/// Numbers for inputs and for the gradients of outputs, "Y.grad".
void feed(Execution& execution, const TrainingGraph& step, const json& test_case) {
  const std::uint64_t seed = test_case.at("seed");
  const Graph& graph = step.graph;
  for (const json& input : test_case.at("inputs")) {
    const auto id = graph.find_tensor(input.at("name").get<std::string>());
    if (id && !graph.tensor(*id).values)
      execution.set(*id, test::numbers_of(input, seed));
  }
  for (const json& output : test_case.at("outputs")) {
    const std::string name = output.get<std::string>() + ".grad";
    const auto id = graph.find_tensor(name);
    if (!id || graph.tensor(*id).producer)
      continue;
    const NumberGenerator generator(name, seed);
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < element_count(graph.tensor(*id)); ++i)
      numbers.push_back(generator.uniform(static_cast<std::uint64_t>(i)));
    execution.set(*id, numbers);
  }
  fill(execution, step, seed); // the learning rate
}

/// The tensor that holds an expected result; none for the gradient of what is not differentiated.
std::optional<TensorId> result_tensor(const TrainingGraph& step, const json& expected) {
  if (expected.contains("output"))
    return step.graph.find_tensor(expected.at("output").get<std::string>());
  for (const ParameterRecord& record : step.parameters) {
    if (step.graph.tensor(record.weight).name == expected.at("gradient"))
      return record.gradient;
  }
  return std::nullopt;
}

/// Largest relative error; failures are added to the test.
double check(const json& test_case, const Variant& variant) {
  const TrainingGraph step = step_of(test_case, variant);
  Execution execution(step.graph);
  feed(execution, step, test_case);
  execution.run();
  double error = 0.0;
  for (const json& expected : test_case.at("expected")) {
    const bool is_output = expected.contains("output");
    const std::string what =
        is_output ? "output '" + expected.at("output").get<std::string>() + "'"
                  : "gradient of '" + expected.at("gradient").get<std::string>() + "'";
    const auto id = result_tensor(step, expected);
    auto shape = expected.at("shape").get<std::vector<std::int64_t>>();
    std::vector<double> numbers;
    if (id) {
      shape = step.graph.tensor(*id).shape;
      numbers = execution.get(*id);
    } else if (is_output) {
      ADD_FAILURE() << test_case.at("name") << ", " << what << ": no such tensor";
      continue;
    } else { // nothing depends on it: a gradient of zero
      std::int64_t count = 1;
      for (const std::int64_t size : shape)
        count *= size;
      numbers.assign(static_cast<std::size_t>(count), 0.0);
    }
    const test::Comparison result = test::compare(expected, shape, numbers, kTolerance);
    EXPECT_EQ(result.problem, "") << test_case.at("label") << " case " << test_case.at("name")
                                  << " (" << variant.name << "), " << what;
    error = std::max(error, result.error);
  }
  return error;
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".json")
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class GradientCases : public testing::TestWithParam<std::string> {};

TEST_P(GradientCases, EqualPyTorch) {
  std::ifstream file(fmt::format("{}/{}.json", kFolder, GetParam()));
  const json family = json::parse(file);
  std::map<std::string, int> count;
  double error = 0.0;
  for (const json& test_case : family.at("cases")) {
    ++count[test_case.at("label")];
    for (const Variant& variant : kVariants) {
      try {
        error = std::max(error, check(test_case, variant));
      } catch (const std::exception& problem) {
        ADD_FAILURE() << test_case.at("label") << " case " << test_case.at("name") << " ("
                      << variant.name << "): " << problem.what();
      }
    }
  }
  int total = 0;
  for (const auto& [label, cases] : count) {
    fmt::print("  {:4} {}\n", cases, label);
    total += cases;
  }
  fmt::print("  {:4} cases of family '{}', largest relative error {:.2g}\n", total, GetParam(),
             error);
  EXPECT_GT(total, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, GradientCases, testing::ValuesIn(families()),
                         [](const auto& family) { return family.param; });

} // namespace
} // namespace monet
