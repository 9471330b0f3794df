#include "execute/network_check.hpp"

#include "execute/compare.hpp"
#include "execute/network_case.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <ostream>

namespace monet::test {

namespace {

using nlohmann::json;

constexpr double kNetworkTolerance = 1e-8;
constexpr int kSteps = 3;

/// What is zero but for rounding counts against the network's largest gradient or state, and a
/// change of a weight against the learning rate.
constexpr double kMinPart = 1e-3;

class Check {
public:
  explicit Check(std::string where) : where_(std::move(where)) {}

  void tensor(const std::string& what, const json& expected, const Tensor& tensor,
              const std::vector<double>& numbers, double least) {
    const auto result = compare(expected, tensor.shape, numbers, kNetworkTolerance, least);
    EXPECT_EQ(result.problem, "") << where_ << ", " << what << " of " << tensor.name;
    error_ = std::max(error_, result.error);
    ++compared_;
  }
  void number(const std::string& what, double actual, double expected) {
    const double error = std::abs(actual / expected - 1.0);
    EXPECT_LE(error, kNetworkTolerance)
        << where_ << ", " << what << ": " << actual << " instead of " << expected;
    error_ = std::max(error_, error);
    ++compared_;
  }
  void print() const {
    fmt::print("  {}: {} tensors and numbers, largest relative error {:.2g}\n", where_, compared_,
               error_);
  }

private:
  std::string where_;
  double error_ = 0.0;
  int compared_ = 0;
};

/// Records of the trained parameters by name.
std::map<std::string, ParameterRecord> records_by_name(const TrainingGraph& step) {
  std::map<std::string, ParameterRecord> records;
  for (const ParameterRecord& record : step.parameters)
    records.emplace(step.graph.tensor(record.weight).name, record);
  return records;
}

/// `expected` in the order of the fixture's "buffers".
void check_buffers(Check& check, const TrainingGraph& step, const Execution& execution,
                   const json& fixture, const json& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string name = fixture.at("buffers").at(i).at("name");
    const auto id = step.graph.find_tensor(name);
    ASSERT_TRUE(id) << name;
    check.tensor("running statistic", expected[i], step.graph.tensor(*id), execution.get(*id),
                 1e-3);
  }
}

double largest(const json& tensors) {
  double result = 0.0;
  for (const json& tensor : tensors) {
    for (const double value : tensor.at("values").get<std::vector<double>>())
      result = std::max(result, std::abs(value));
    result = std::max(result, tensor.value("max", 0.0));
  }
  return result;
}

/// The state of that name: "layer.weight.momentum".
TensorId state_of(const TrainingGraph& step, const ParameterRecord& record,
                  const std::string& state) {
  const std::string name = step.graph.tensor(record.weight).name + "." + state;
  for (const TensorId id : record.states) {
    if (step.graph.tensor(id).name == name)
      return id;
  }
  throw std::runtime_error("no state '" + name + "'");
}

/// `expected` holds changes and states in the order of the fixture's "gradients".
void check_trained(Check& check, const TrainingGraph& step, const Execution& before,
                   const Execution& after, const json& fixture, const json& expected) {
  const auto records = records_by_name(step);
  const double rate = expected.at("options").at("learning_rate");
  std::map<std::string, double> largest_state;
  for (const auto& [state, rows] : expected.at("states").items()) {
    for (const json& row : rows) {
      if (!row.is_null())
        largest_state[state] = std::max(largest_state[state], row.at(0).get<double>());
    }
  }
  std::size_t states = 0;
  for (std::size_t i = 0; i < fixture.at("gradients").size(); ++i) {
    if (expected.at("changes")[i].is_null()) // its gradient is nothing but rounding
      continue;
    const ParameterRecord& record = records.at(fixture.at("gradients")[i].at("name"));
    std::vector<double> difference = after.get(record.weight);
    const std::vector<double> start = before.get(record.weight);
    for (std::size_t k = 0; k < difference.size(); ++k)
      difference[k] -= start[k];
    check.tensor("change", expected.at("changes")[i], step.graph.tensor(record.weight), difference,
                 kMinPart * rate);
    states += record.states.size();
    for (const auto& [state, rows] : expected.at("states").items()) {
      if (rows[i].is_null())
        continue;
      const TensorId id = state_of(step, record, state);
      check.tensor(state, rows[i], step.graph.tensor(id), after.get(id),
                   kMinPart * largest_state[state]);
      --states;
    }
  }
  EXPECT_EQ(states, 0U) << "states that PyTorch has not";
  check_buffers(check, step, after, fixture, expected.at("buffers"));
}

} // namespace

std::vector<std::string> recorded_networks() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kNetworkFixtures)) {
    if (entry.path().extension() == ".json")
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string name_of(const Training& training) {
  return training.network + "_" + training.optimizer;
}

std::ostream& operator<<(std::ostream& stream, const Training& training) {
  return stream << name_of(training);
}

std::vector<Training> recorded_trainings(bool slow) {
  std::vector<Training> trainings;
  for (const std::string& network : recorded_networks()) {
    const bool large =
        network == "resnet18_cifar" || network == "mobilenet_v2" || network == "vit_tiny";
    if (large != slow)
      continue;
    const json fixture = read_network_fixture(network);
    for (const json& optimizer : fixture.at("optimizers"))
      trainings.push_back({network, optimizer.at("name").get<std::string>()});
  }
  return trainings;
}

void check_training(const Training& training, bool fused) {
  const json fixture = read_network_fixture(training.network);
  const json& all = fixture.at("optimizers");
  const auto expected = std::find_if(all.begin(), all.end(), [&](const json& part) {
    return part.at("name") == training.optimizer;
  });
  ASSERT_NE(expected, all.end());
  const json more{{"update", fused ? "fused" : "unfused"}};
  const TrainingGraph step =
      make_training_graph(read_recorded_network(fixture),
                          options_of(fixture.at("loss_kind"), expected->at("options"), more));
  ExecuteOptions options;
  options.keep_all = false;
  Execution before(step.graph, options);
  feed(before, step, fixture);
  Execution execution(step.graph, options);
  feed(execution, step, fixture);
  Check check(name_of(training) + (fused ? "" : ", unfused"));
  for (int i = 0; i < kSteps; ++i) {
    set_step_number(execution, step, i + 1);
    execution.run();
    check.number("loss", execution.get(*step.loss).at(0), expected->at("losses").at(i));
    execution.advance();
  }
  check_trained(check, step, before, execution, fixture, *expected);
  check.print();
}

std::string_view name_of(Variant variant) {
  switch (variant) {
  case Variant::plain:
    return "plain";
  case Variant::pytorch_eager:
    return "pytorch_eager";
  case Variant::fused_attention:
    return "fused_attention";
  case Variant::folded:
    return "folded";
  }
  throw std::runtime_error("variant without a name");
}

namespace {

TrainingGraph step_of(const json& fixture, Variant variant) {
  json more = json::object();
  if (variant == Variant::pytorch_eager)
    more["store"] = "pytorch-eager";
  if (variant == Variant::fused_attention)
    more["attention"] = "fused";
  const json optimizer{{"type", "sgd"}, {"learning_rate", 1.0}};
  const TrainingGraph step = make_training_graph(
      read_recorded_network(fixture), options_of(fixture.at("loss_kind"), optimizer, more));
  return variant == Variant::folded ? fold_views(step) : step;
}

bool has_attention(const Graph& graph) {
  return std::any_of(graph.operators().begin(), graph.operators().end(),
                     [](const Operator& op) { return op.op_type == "Attention"; });
}

/// Where views are folded, a gradient may be kept in another order; the update with learning rate 1
/// takes it as it is meant.
std::vector<double> gradient_of(const Execution& execution, const ParameterRecord& record,
                                Variant variant) {
  if (variant != Variant::folded)
    return execution.get(record.gradient);
  std::vector<double> change = execution.get(record.weight);
  const std::vector<double> updated = execution.get(record.updated);
  for (std::size_t i = 0; i < change.size(); ++i)
    change[i] -= updated[i];
  return change;
}

} // namespace

void check_gradients(const std::string& network, Variant variant) {
  const json fixture = read_network_fixture(network);
  const TrainingGraph step = step_of(fixture, variant);
  if (variant == Variant::fused_attention && !has_attention(step.graph))
    return;
  ExecuteOptions options;
  options.keep_all = false;
  Execution execution(step.graph, options);
  feed(execution, step, fixture);
  execution.run();
  Check check(fmt::format("{} ({})", network, name_of(variant)));
  check.number("loss", execution.get(*step.loss).at(0), fixture.at("loss"));
  const auto records = records_by_name(step);
  EXPECT_EQ(records.size(), fixture.at("gradients").size());
  const double least = kMinPart * largest(fixture.at("gradients"));
  for (const json& expected : fixture.at("gradients")) {
    const auto found = records.find(expected.at("name").get<std::string>());
    ASSERT_NE(found, records.end()) << expected.at("name");
    check.tensor("gradient", expected, step.graph.tensor(found->second.weight),
                 gradient_of(execution, found->second, variant), least);
  }
  execution.advance();
  check_buffers(check, step, execution, fixture, fixture.at("buffers"));
  check.print();
}

} // namespace monet::test
