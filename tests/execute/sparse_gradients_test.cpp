// Sparse gradients of embeddings: steps against PyTorch's, and against dense gradients.
#include "execute/shared/generator.hpp"
#include "training_graph/read_options.hpp"
#include "training_graph/tiny_network.hpp"
#include "workload/shared/update_formula.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>

namespace monet {
namespace MONET_TEST_FILE {

using Json = nlohmann::json;
using Numbers = std::vector<double>;
using Shape = std::vector<std::int64_t>;

Json fixture() {
  std::ifstream file(MONET_SOURCE_DIR "/tests/fixtures/sparse_gradients.json");
  return Json::parse(file);
}

/// Look-ups into one table, and a dense parameter; all results are outputs.
TinyNetwork lookups(const Json& facts) {
  TinyNetwork n;
  const Shape table = facts.at("table").get<Shape>();
  const TensorId weights = n.parameter("table", table);
  for (const auto& [name, shape] : facts.at("lookups").items()) {
    Shape result = shape.get<Shape>();
    const TensorId indices = n.input(name, result, ElementType::int64);
    result.push_back(table[1]);
    n.output(n.op("Gather", {weights, indices}, result));
  }
  const Shape dense = facts.at("dense").get<Shape>();
  n.output(n.op("Neg", {n.parameter("dense", dense)}, dense));
  return n;
}

Numbers numbers(const std::string& name, const Tensor& like, double factor = 1.0) {
  const NumberGenerator generator(name, 7);
  Numbers result(static_cast<std::size_t>(element_count(like)));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = factor * generator.uniform(i);
  return result;
}

/// What the step leaves in the tensor's memory.
TensorId last_version(const Graph& graph, TensorId state) {
  TensorId last = state;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    if (graph.tensors()[i].alias_of == state)
      last = TensorId(i);
  }
  return last;
}

std::map<std::string, Numbers> take_steps(const TrainingGraph& step, const Json& facts) {
  const Graph& graph = step.graph;
  Execution execution(graph);
  for (const ParameterRecord& record : step.parameters) {
    const Tensor& weight = graph.tensor(record.weight);
    execution.set(record.weight, numbers(weight.name, weight));
  }
  int number = 0;
  for (const Json& chosen : facts.at("indices")) {
    if (++number > 1)
      execution.advance();
    set_step_number(execution, step, number);
    std::size_t output = 0;
    for (const auto& [name, indices] : chosen.items()) {
      execution.set_integers(graph.find_tensor(name).value(),
                             indices.get<std::vector<std::int64_t>>());
      const std::string fed = "Gather_" + std::to_string(output++) + ".grad";
      const TensorId gradient = graph.find_tensor(fed).value();
      execution.set(gradient,
                    numbers(name + ".grad." + std::to_string(number), graph.tensor(gradient)));
    }
    const TensorId dense = graph.find_tensor("Neg_2.grad").value();
    execution.set(dense,
                  numbers("dense.grad." + std::to_string(number), graph.tensor(dense), -1.0));
    fill(execution, step, 0);
    execution.run();
  }
  std::map<std::string, Numbers> after;
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
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i)
    error = std::max(error, std::abs(actual[i] - expected[i]));
  return error;
}

constexpr double kTolerance = 1e-13;

TEST(SparseGradients, StepsEqualPyTorchFusedUnfusedAndFolded) {
  const Json facts = fixture();
  const Graph network = lookups(facts).graph;
  for (const Json& row : facts.at("cases")) {
    const std::string text = row.at("training");
    TrainingOptions options = read_options(text);
    options.loss = NoLoss{};
    for (const bool fused : {true, false}) {
      for (const bool master : {false, true}) {
        options.update.fused = fused;
        options.precision.weights = master ? std::optional(ElementType::bf16) : std::nullopt;
        options.precision.master_weights = master ? std::optional(ElementType::fp32) : std::nullopt;
        options.precision.activations = options.precision.weights;
        const TrainingGraph step = make_training_graph(network, options);
        verify(step);
        for (const TrainingGraph& graph : {step, fold_views(step)}) {
          verify(graph);
          const auto after = take_steps(graph, facts);
          for (const auto& [name, values] : row.at("after").items())
            EXPECT_LE(largest_error(after.at(name), values.get<Numbers>()), kTolerance)
                << text << " " << name << (fused ? " fused" : " unfused")
                << (master ? " with a master copy" : "");
        }
      }
    }
  }
}

/// tokens [batch, 3] -> table [64, 4] -> MatMul -> Tanh: a step reads 3 * batch rows at most.
TinyNetwork classifier(std::int64_t batch) {
  TinyNetwork n;
  const TensorId tokens = n.input("tokens", {batch, 3}, ElementType::int64);
  const TensorId x = n.op("Gather", {n.parameter("table", {64, 4}), tokens}, {batch, 3, 4});
  const TensorId y = n.op("MatMul", {x, n.parameter("w", {4, 2})}, {batch, 3, 2});
  n.output(n.op("Tanh", {y}, {batch, 3, 2}));
  return n;
}

std::map<std::string, Numbers> one_step(const std::string& options) {
  const TrainingGraph step = make_training_graph(classifier(2).graph, read_options(options));
  verify(step);
  verify(fold_views(step));
  Execution execution(step.graph);
  fill(execution, step, 5);
  for (std::int64_t micro = 1; micro <= step.micro_batches; ++micro) {
    const std::string name = micro == 1 ? "tokens" : "tokens.micro_" + std::to_string(micro);
    execution.set_integers(step.graph.find_tensor(name).value(),
                           std::vector<std::int64_t>{5, 63, 5, micro, 0, -1});
  }
  execution.run();
  std::map<std::string, Numbers> after;
  for (const ParameterRecord& record : step.parameters)
    after[step.graph.tensor(record.weight).name] = execution.get(record.updated);
  return after;
}

TEST(SparseGradients, DescendAsDenseOnesDo) {
  for (const std::string more :
       {"", ", micro_batches: 3", ", loss_scale: 1024", ", update: unfused, micro_batches: 2",
        ", clip_global_norm: 0.001", ", loss_scale: dynamic, clip_global_norm: 0.001",
        ", store: pytorch-eager"}) {
    const std::string options = "{loss: mse, optimizer: {type: sgd, learning_rate: 0.5}" + more;
    const auto dense = one_step(options + "}");
    const auto sparse = one_step(options + ", sparse_gradients: [tab*]}");
    for (const auto& [name, values] : dense)
      EXPECT_LE(largest_error(sparse.at(name), values), 1e-15) << options << " " << name;
  }
}

std::int64_t bytes_owned(const TrainingGraph& step, MemoryOwner owner) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < step.graph.tensors().size(); ++i) {
    const Tensor& tensor = step.graph.tensors()[i];
    if (step.owner[i] == owner && !tensor.alias_of)
      bytes += bytes_of(size_of(tensor));
  }
  return bytes;
}

TEST(SparseGradients, AreAsLargeAsWhatWasRead) {
  const std::string optimizer = "{loss: mse, optimizer: {type: adagrad}";
  const TrainingGraph dense =
      make_training_graph(classifier(2).graph, read_options(optimizer + "}"));
  const TrainingGraph sparse = make_training_graph(
      classifier(2).graph, read_options(optimizer + ", sparse_gradients: true}"));
  EXPECT_EQ(bytes_owned(dense, MemoryOwner::gradients), 64 * 4 * 4 + 8 * 4);
  // 6 rows of 4, and their numbers
  EXPECT_EQ(bytes_owned(sparse, MemoryOwner::gradients), 6 * 4 * 4 + 6 * 8 + 8 * 4);
  EXPECT_EQ(bytes_owned(sparse, MemoryOwner::optimizer_state),
            bytes_owned(dense, MemoryOwner::optimizer_state));
  EXPECT_EQ(sparse.stored_bytes, dense.stored_bytes);
  const Operator* update = find_op(sparse.graph, "SparseAdagradUpdate", Phase::update);
  ASSERT_NE(update, nullptr);
  EXPECT_EQ(iterations(update->nest), 6 * 4);
}

std::string message(const std::string& options, const Graph& network) {
  try {
    make_training_graph(network, read_options(options));
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(SparseGradients, OptimisersThatMoveEveryRowAreRefused) {
  const Graph network = classifier(2).graph;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"optimizer: adam", "tiny.onnx [parameter 'table']: adam does not support sparse gradients"},
      {"optimizer: adamw", "consider sparse_adam"},
      {"optimizer: momentum", "momentum moves rows that have no gradient"},
      {"optimizer: {type: sgd, weight_decay: 0.1}", "weight decay shrinks rows"},
      {"optimizer: {type: adagrad, weight_decay: 0.1}", "weight decay shrinks rows"},
      {"optimizer: lion", "sgd without momentum, sparse_adam and adagrad can"},
      {"optimizer: muon", "does not support sparse gradients"},
      {"optimizer: sgd, clip_value: 1", "sparse gradients are not clipped by value"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string told = message("{loss: mse, sparse_gradients: true, " + text + "}", network);
    EXPECT_NE(told.find(expected), std::string::npos) << text << " gives " << told;
  }
  const std::string dense = message("{loss: mse, optimizer: sparse_adam}", network);
  EXPECT_NE(dense.find("but the gradient is dense"), std::string::npos) << dense;
}

/// A step may be read from a file that somebody wrote.
TEST(SparseGradients, MalformedUpdatesOfRowsAreErrors) {
  const auto nest_of = [](const std::function<void(Graph&, Operator&)>& spoil) {
    TrainingGraph step = make_training_graph(
        classifier(2).graph,
        read_options("{loss: mse, sparse_gradients: true, optimizer: adagrad, update: fused}"));
    const Operator* update = find_op(step.graph, "SparseAdagradUpdate", Phase::update);
    Operator op = *update;
    spoil(step.graph, op);
    find_row(op.domain, op.op_type)->nest(step.graph, op);
  };
  EXPECT_NO_THROW(nest_of([](Graph&, Operator&) {}));
  const auto refused = [&](const std::function<void(Graph&, Operator&)>& spoil) {
    EXPECT_THROW(nest_of(spoil), InputError);
  };
  refused([](Graph&, Operator& op) { op.inputs.resize(kUpdateRows); });
  refused([](Graph&, Operator& op) { op.outputs.pop_back(); });
  refused([](Graph&, Operator& op) { op.inputs[kUpdateRows] = op.inputs[kUpdateGradient]; });
  refused([](Graph&, Operator& op) { op.inputs[kUpdateGradient] = op.inputs[kUpdateRows]; });
  refused([](Graph& graph, Operator& op) { graph.tensor(*op.inputs[kUpdateRows]).shape = {5}; });
  refused([](Graph& graph, Operator& op) { graph.tensor(*op.inputs.back()).shape = {8, 4}; });
  refused([](Graph& graph, Operator& op) { graph.tensor(*op.inputs[kUpdateWeight]).shape = {}; });
}

TEST(SparseGradients, OfWhatOthersReadAreRefused) {
  TinyNetwork tied;
  const TensorId table = tied.parameter("table", {64, 4});
  const TensorId x =
      tied.op("Gather", {table, tied.input("tokens", {2}, ElementType::int64)}, {2, 4});
  tied.output(tied.op("Gemm", {x, table}, {2, 64}, with("transB", std::int64_t{1})));
  const std::string told = message("{optimizer: sgd, sparse_gradients: true}", tied.graph);
  EXPECT_NE(told.find("no embedding has a sparse gradient by the pattern '*'"), std::string::npos);
  EXPECT_NE(told.find("'table' is read by 'Gemm_1' (Gemm)"), std::string::npos) << told;
  EXPECT_NE(message("{loss: mse, optimizer: sgd, sparse_gradients: head}", classifier(2).graph)
                .find("no trained parameter is called so"),
            std::string::npos);
}

} // namespace MONET_TEST_FILE
} // namespace monet
