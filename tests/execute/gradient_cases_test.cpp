// Operators against PyTorch: every case in tests/fixtures/gradients/ becomes an ONNX model, then a
// training step whose output gradients are fed in, and is executed in double precision. Outputs and
// gradients must agree, however the step stores its activations, with views and with views folded.
#include "execute/case_model.hpp"
#include "execute/compare.hpp"
#include "execute/shared/generator.hpp"

#include "monet/base/errors.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace monet {
namespace MONET_TEST_FILE {

using nlohmann::json;

constexpr double kTolerance = 1e-10;
constexpr const char* kFolder = MONET_SOURCE_DIR "/tests/fixtures/gradients";

struct Variant {
  const char* name;
  StorePolicy store;
  bool fold;
  AttentionForm attention = AttentionForm::exported;
  bool paired = false; ///< both gradients of a product in one operator
};
constexpr Variant kVariants[]{
    {"minimal", StorePolicy::minimal, false},
    {"pytorch-eager", StorePolicy::pytorch_eager, false},
    {"views folded", StorePolicy::minimal, true},
    {"fused attention", StorePolicy::minimal, false, AttentionForm::fused},
    {"fused attention, views folded", StorePolicy::minimal, true, AttentionForm::fused},
    {"paired", StorePolicy::minimal, false, AttentionForm::exported, true},
    {"paired, views folded", StorePolicy::minimal, true, AttentionForm::exported, true},
};

/// Only a softmax can be part of an attention, and only products have a pair of gradients.
bool concerns(const Variant& variant, const json& test_case) {
  std::set<std::string> types;
  if (variant.attention == AttentionForm::fused)
    types = {"Softmax"};
  else if (variant.paired)
    types = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum"};
  else
    return true;
  const json& nodes = test_case.at("nodes");
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const json& node) { return types.contains(node.at("op_type")); });
}

/// A batch normalisation that the case does not train uses its running statistics.
bool has_fixed_statistics(const json& test_case) {
  const json& nodes = test_case.at("nodes");
  return std::any_of(nodes.begin(), nodes.end(), [](const json& node) {
    const json attributes = node.value("attributes", json::object());
    return node.at("op_type") == "BatchNormalization" && attributes.value("training_mode", 0) == 0;
  });
}

TrainingGraph step_of(const json& test_case, const Variant& variant) {
  const Graph network = read_onnx_bytes(test::model_bytes(test_case), "case.onnx");
  TrainingOptions options;
  options.loss = NoLoss{};
  options.update.optimizer = Sgd{.learning_rate = 1.0};
  options.storage.policy = variant.store;
  options.attention = variant.attention;
  if (variant.paired)
    options.paired_gradients = {"*"};
  options.frozen_batch_norm = has_fixed_statistics(test_case);
  TrainingGraph step = make_training_graph(network, options);
  return variant.fold ? fold_views(step) : step;
}

/// Inputs of the step that are the gradients of the network's floating-point outputs, in order.
std::vector<TensorId> fed_gradients(const Graph& graph) {
  std::vector<TensorId> fed;
  for (const TensorId id : graph.inputs) {
    const TensorKind kind = graph.tensor(id).kind;
    if (kind == TensorKind::gradient || kind == TensorKind::parameter_gradient)
      fed.push_back(id);
  }
  return fed;
}

/// Numbers for inputs and for the gradients of outputs: those of the name "Y.grad".
void feed(Execution& execution, const TrainingGraph& step, const json& test_case) {
  const std::uint64_t seed = test_case.at("seed");
  const Graph& graph = step.graph;
  for (const json& input : test_case.at("inputs")) {
    const auto id = graph.find_tensor(input.at("name").get<std::string>());
    if (id && !graph.tensor(*id).values)
      execution.set(*id, test::numbers_of(input, seed));
  }
  const std::vector<TensorId> fed = fed_gradients(graph);
  std::size_t next = 0;
  for (const json& expected : test_case.at("expected")) {
    if (!expected.contains("output") || expected.contains("integers"))
      continue;
    const std::string name = expected.at("output");
    const Tensor& gradient = graph.tensor(fed.at(next));
    const NumberGenerator generator(name + ".grad", seed);
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < element_count(gradient); ++i)
      numbers.push_back(generator.uniform(static_cast<std::uint64_t>(i)));
    execution.set(fed[next++], numbers);
  }
}

struct Result {
  std::vector<std::int64_t> shape;
  std::vector<double> numbers;
};

/// Where views are folded, a gradient may be kept in another order; the update with learning rate 1
/// takes it as it is meant.
Result gradient_of(const Execution& execution, const TrainingGraph& step, const json& expected,
                   const Variant& variant) {
  for (const ParameterRecord& record : step.parameters) {
    const Tensor& weight = step.graph.tensor(record.weight);
    if (weight.name != expected.at("gradient"))
      continue;
    if (!variant.fold)
      return {step.graph.tensor(record.gradient).shape, execution.get(record.gradient)};
    Result change{weight.shape, execution.get(record.weight)};
    const std::vector<double> updated = execution.get(record.updated);
    for (std::size_t i = 0; i < change.numbers.size(); ++i)
      change.numbers[i] -= updated.at(i);
    return change;
  }
  // Nothing depends on it.
  Result zero{expected.at("shape").get<std::vector<std::int64_t>>(), {}};
  std::int64_t count = 1;
  for (const std::int64_t size : zero.shape)
    count *= size;
  zero.numbers.assign(static_cast<std::size_t>(count), 0.0);
  return zero;
}

/// Nothing where the output was a view and is folded.
std::optional<Result> output_of(const Execution& execution, const TrainingGraph& step,
                                const json& expected, const Variant& variant) {
  const auto id = step.graph.find_tensor(expected.at("output").get<std::string>());
  if (id)
    return Result{step.graph.tensor(*id).shape, execution.get(*id)};
  if (!variant.fold)
    throw std::runtime_error("there is no such tensor");
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
    const auto actual = is_output ? output_of(execution, step, expected, variant)
                                  : gradient_of(execution, step, expected, variant);
    if (!actual)
      continue;
    const test::Comparison result =
        test::compare(expected, actual->shape, actual->numbers, kTolerance);
    EXPECT_EQ(result.problem, "") << test_case.at("label") << " case " << test_case.at("name")
                                  << " (" << variant.name << "), "
                                  << (is_output ? "output " : "gradient of ")
                                  << expected.at(is_output ? "output" : "gradient");
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
      if (!concerns(variant, test_case))
        continue;
      try {
        error = std::max(error, check(test_case, variant));
      } catch (const std::exception& problem) {
        ADD_FAILURE() << test_case.at("label") << " case " << test_case.at("name") << " ("
                      << variant.name << "): " << problem.what();
        break;
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

} // namespace MONET_TEST_FILE
} // namespace monet
