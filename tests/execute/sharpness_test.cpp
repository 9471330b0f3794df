// Sharpness-aware minimisation: steps against PyTorch's, and what a step is made of.
#include "execute/shared/generator.hpp"
#include "training_graph/read_options.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/liveness.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <map>

namespace monet {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<double>;
using Shape = std::vector<std::int64_t>;

Json fixture() {
  std::ifstream file(MONET_SOURCE_DIR "/tests/fixtures/sam.json");
  return Json::parse(file);
}

/// The networks of tools/make_update_fixtures.py, with the sizes that it wrote.
class Network {
public:
  explicit Network(const Json& facts) : facts_(facts) {}

  TinyNetwork mlp() {
    const Shape x = facts_.at("input");
    const TensorId h = gemm(n_.input("x", x), "w1", "b1", {x[0], 5});
    n_.output(gemm(n_.op("Tanh", {h}, {x[0], 5}), "w2", "b2", {x[0], 2}));
    return n_;
  }

  TinyNetwork conv() {
    const TensorId x = n_.input("x", facts_.at("input"));
    const TensorId c =
        n_.op("Conv", {x, parameter("c1")}, {2, 4, 6, 6}, {{"pads", Shape{1, 1, 1, 1}}});
    const TensorId normal = n_.op(
        "BatchNormalization",
        {c, parameter("scale"), parameter("shift"), buffer("mean"), buffer("var")}, {2, 4, 6, 6});
    const TensorId r = n_.op("Relu", {normal}, {2, 4, 6, 6});
    const TensorId d = n_.op("Conv", {r, parameter("c2"), parameter("c2b")}, {2, 5, 2, 2},
                             {{"strides", Shape{2, 2}}});
    const TensorId pooled = n_.op("GlobalAveragePool", {d}, {2, 5, 1, 1});
    n_.output(gemm(n_.op("Flatten", {pooled}, {2, 5}), "w", "b", {2, 3}));
    return n_;
  }

private:
  TensorId parameter(const std::string& name) {
    return n_.parameter(name, facts_.at("parameters").at(name));
  }
  TensorId buffer(const std::string& name) {
    return n_.buffer(name, facts_.at("buffers").at(name));
  }
  TensorId gemm(TensorId x, const std::string& w, const std::string& b, Shape result) {
    const TensorId weight = parameter(w);
    const TensorId bias = parameter(b);
    return n_.op("Gemm", {x, weight, bias}, std::move(result), with("transB", std::int64_t{1}));
  }

  Json facts_;
  TinyNetwork n_;
};

Graph network(const Json& fixture, const std::string& name) {
  Network made(fixture.at("networks").at(name));
  return name == "mlp" ? made.mlp().graph : made.conv().graph;
}

Numbers numbers(const std::string& name, std::int64_t count) {
  const NumberGenerator generator(name, 7);
  Numbers result(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = generator.uniform(i);
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

struct Trained {
  Numbers losses;
  std::map<std::string, Numbers> after; ///< parameters and running statistics
};

Trained take_steps(const TrainingGraph& step, const Json& facts, int steps) {
  const Graph& graph = step.graph;
  Execution execution(graph);
  std::map<std::string, TensorId> kept;
  for (const char* kind : {"parameters", "buffers"}) {
    for (const auto& [name, shape] : facts.at(kind).items()) {
      const TensorId id = graph.find_tensor(name).value();
      Numbers values = numbers(name, element_count(graph.tensor(id)));
      for (double& value : values)
        value = kind == std::string("buffers") ? std::abs(value) : value;
      execution.set(id, values);
      kept.emplace(name, last_version(graph, id));
    }
  }
  for (const ParameterRecord& record : step.parameters)
    kept[graph.tensor(record.weight).name] = record.updated;
  execution.set(graph.find_tensor("labels").value(), facts.at("labels").get<Numbers>());
  Trained trained;
  for (int number = 1; number <= steps; ++number) {
    if (number > 1)
      execution.advance();
    set_step_number(execution, step, number);
    const TensorId x = graph.find_tensor("x").value();
    execution.set(x, numbers("x." + std::to_string(number), element_count(graph.tensor(x))));
    fill(execution, step, 0);
    execution.run();
    trained.losses.push_back(execution.get(*step.loss).front());
  }
  for (const auto& [name, id] : kept)
    trained.after[name] = execution.get(id);
  return trained;
}

double largest_error(const Numbers& actual, const Numbers& expected) {
  double error = actual.size() == expected.size() ? 0.0 : 1e300;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i)
    error = std::max(error, std::abs(actual[i] - expected[i]));
  return error;
}

constexpr double kTolerance = 1e-10;

void expect_steps(const TrainingGraph& step, const Json& fixture, const Json& row,
                  const std::string& where) {
  verify(step);
  EXPECT_EQ(step.passes, 2) << where;
  const Json& facts = fixture.at("networks").at(row.at("network").get<std::string>());
  const Trained trained = take_steps(step, facts, fixture.at("steps"));
  EXPECT_LE(largest_error(trained.losses, row.at("losses")), kTolerance) << where;
  for (const auto& [name, values] : row.at("after").items())
    EXPECT_LE(largest_error(trained.after.at(name), values.get<Numbers>()), kTolerance)
        << where << " " << name;
}

TEST(Sharpness, StepsEqualPyTorchWhateverElseIsChosen) {
  const Json facts = fixture();
  int cases = 0;
  for (const Json& row : facts.at("cases")) {
    const Graph network = monet::network(facts, row.at("network"));
    const std::string training = row.at("training");
    for (const std::string more :
         {"", "update: unfused", "store: pytorch-eager", "store: {recompute: ['Tanh*', 'Relu*']}",
          "loss_scale: 1024", "precision: {weights: bf16, master_weights: fp32}"}) {
      if (more.starts_with("store: {") && training.find("freeze") != std::string::npos)
        continue;
      std::string text = training;
      text.insert(text.size() - 1, more.empty() ? "" : ", " + more);
      if (more.starts_with("store: {"))
        text.replace(text.find("'Tanh*', 'Relu*'"), 16,
                     row.at("network") == "mlp" ? "'Tanh*'" : "'Relu*'");
      const TrainingGraph step = make_training_graph(network, read_options(text));
      expect_steps(step, facts, row, text);
      expect_steps(fold_views(step), facts, row, text + ", folded");
      ++cases;
    }
  }
  EXPECT_GE(cases, 40);
}

/// Two micro-batches of two samples against four: the first gradients are those of all.
TEST(Sharpness, MicroBatchesMoveAlongTheirSum) {
  const Json facts = fixture();
  const Graph whole = network(facts, "mlp");
  Json half = facts.at("networks").at("mlp");
  half["input"] = {2, 3};
  const Graph part = Network(half).mlp().graph;
  const TrainingGraph one =
      make_training_graph(whole, read_options("{loss: cross_entropy, sam: 0.5, optimizer: sgd}"));
  const TrainingGraph two = make_training_graph(
      part, read_options("{loss: cross_entropy, sam: 0.5, optimizer: sgd, micro_batches: 2}"));
  EXPECT_EQ(two.passes, 4);
  verify(fold_views(two));
  const Numbers x = numbers("x", 12);
  const auto run = [&](const TrainingGraph& step, std::size_t parts) {
    verify(step);
    Execution execution(step.graph);
    for (const ParameterRecord& record : step.parameters) {
      const Tensor& weight = step.graph.tensor(record.weight);
      execution.set(record.weight, numbers(weight.name, element_count(weight)));
    }
    const Numbers labels{0, 1, 1, 0};
    for (std::size_t i = 0; i < parts; ++i) {
      const std::string suffix = i == 0 ? "" : ".micro_" + std::to_string(i + 1);
      const auto set = [&](const std::string& name, const Numbers& all) {
        const std::size_t count = all.size() / parts;
        execution.set(step.graph.find_tensor(name + suffix).value(),
                      std::span(all).subspan(i * count, count));
      };
      set("x", x);
      set("labels", labels);
    }
    fill(execution, step, 0);
    execution.run();
    std::map<std::string, Numbers> gradients;
    for (const ParameterRecord& record : step.parameters)
      gradients[step.graph.tensor(record.weight).name] = execution.get(record.gradient);
    gradients["loss"] = execution.get(*step.loss);
    return gradients;
  };
  const auto expected = run(one, 1);
  for (const auto& [name, values] : run(two, 2))
    EXPECT_LE(largest_error(values, expected.at(name)), 1e-14) << name;
}

/// Where all gradients are zero nothing moves: 0 / 1e-12.
TEST(Sharpness, NothingMovesAlongNothing) {
  TinyNetwork n;
  const TensorId y = n.op("MatMul", {n.input("x", {2, 3}), n.parameter("w", {3, 2})}, {2, 2});
  n.output(y);
  for (const std::string more : {"", ", loss_scale: 8", ", precision: {accumulate: fp16}"}) {
    const TrainingGraph step =
        make_training_graph(n.graph, read_options("{loss: mse, sam: 0.5" + more + "}"));
    Execution execution(step.graph);
    execution.set(*step.graph.find_tensor("x"), Numbers(6, 0.0));
    fill(execution, step, 1);
    execution.run();
    EXPECT_EQ(execution.get(*step.graph.find_tensor("w.moved")),
              execution.get(*step.graph.find_tensor("w")));
    EXPECT_EQ(execution.get(step.parameters.front().gradient), Numbers(6, 0.0));
  }
}

/// Labels of sequences are reshaped; what is fed in is there once.
TEST(Sharpness, LabelsOfSequencesAreShared) {
  TinyNetwork n;
  n.output(n.op("MatMul", {n.input("x", {2, 3, 4}), n.parameter("w", {4, 5})}, {2, 3, 5}));
  const TrainingGraph step =
      make_training_graph(n.graph, read_options("{loss: cross_entropy, sam: 0.5}"));
  verify(step);
  verify(fold_views(step));
  std::vector<std::string> fed;
  for (const TensorId id : step.graph.inputs)
    fed.push_back(step.graph.tensor(id).name);
  EXPECT_EQ(fed, (std::vector<std::string>{"x", "labels", "learning_rate", "step"}));
}

/// Every gradient of an output is fed in, once for each pass.
TEST(Sharpness, GradientsThatAreFedInAreFedInTwice) {
  const Json facts = fixture();
  TrainingOptions options = read_options("{sam: 0.5}");
  options.loss = NoLoss{};
  const TrainingGraph step = make_training_graph(network(facts, "mlp"), options);
  verify(step);
  verify(fold_views(step));
  int fed = 0;
  for (const TensorId id : step.graph.inputs)
    fed += step.graph.tensor(id).kind == TensorKind::gradient ? 1 : 0;
  EXPECT_EQ(fed, 2);
}

TEST(Sharpness, TakesTwiceTheProducts) {
  const Json facts = fixture();
  for (const std::string name : {"mlp", "conv"}) {
    const Graph network = monet::network(facts, name);
    const MacSplit once = count_macs(make_training_graph(network, read_options("{}")).graph);
    const TrainingGraph step = make_training_graph(network, read_options("{sam: 0.05}"));
    const MacSplit twice = count_macs(step.graph);
    EXPECT_EQ(twice.forward, 2 * once.forward);
    EXPECT_EQ(twice.backward_input, 2 * once.backward_input);
    EXPECT_EQ(twice.backward_weight, 2 * once.backward_weight);
    EXPECT_EQ(twice.update, once.update);
    EXPECT_EQ(count_ops(step.graph, "AdamUpdate", Phase::update),
              count_ops(step.graph, "ReduceSumSquare", Phase::backward));
  }
}

/// A copy of what is trained is there while the second pass begins; owners are those of a step
/// without it.
TEST(Sharpness, HoldsMovedWeightsAsTemporaries) {
  const Json facts = fixture();
  const TrainingGraph step =
      make_training_graph(network(facts, "mlp"), read_options("{sam: 0.05}"));
  const TrainingGraph plain = make_training_graph(network(facts, "mlp"), read_options("{}"));
  const std::int64_t trained = 4 * (5 * 3 + 5 + 2 * 5 + 2);
  const Liveness liveness = find_liveness(step);
  const TensorId hidden = step.graph.find_tensor("Gemm_0.moved").value();
  const std::size_t at = step.graph.tensor(hidden).producer->index();
  const auto bytes = [&](std::size_t op, MemoryOwner owner) {
    return liveness.live[op][static_cast<std::size_t>(owner)];
  };
  const std::int64_t scalars = 3 * 4; // learning rate, number of the step, loss
  EXPECT_EQ(bytes(at, MemoryOwner::temporaries), trained + 4 * 4 * 5 + scalars);
  EXPECT_EQ(bytes(at, MemoryOwner::gradients), 0);
  EXPECT_EQ(bytes(at, MemoryOwner::optimizer_state), 2 * trained);
  const auto owned = [](const TrainingGraph& of, MemoryOwner owner) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < of.owner.size(); ++i) {
      const Tensor& tensor = of.graph.tensors()[i];
      if (of.owner[i] == owner && !tensor.alias_of)
        sum += bytes_of(size_of(tensor));
    }
    return sum;
  };
  EXPECT_EQ(owned(step, MemoryOwner::gradients), owned(plain, MemoryOwner::gradients));
  EXPECT_EQ(owned(step, MemoryOwner::optimizer_state), owned(plain, MemoryOwner::optimizer_state));
  EXPECT_EQ(step.stored_bytes, plain.stored_bytes);
  const Liveness once = find_liveness(plain);
  EXPECT_GE(total(liveness.live[liveness.peak]), total(once.live[once.peak]));
}

TEST(Sharpness, SparseGradientsAreRefused) {
  TinyNetwork n;
  const TensorId table = n.parameter("table", {5, 4});
  n.output(n.op("Gather", {table, n.input("ids", {2}, ElementType::int64)}, {2, 4}));
  TrainingOptions options = read_options("{loss: mse, sparse_gradients: true, optimizer: sgd}");
  options.sam_rho = 0.05;
  try {
    make_training_graph(n.graph, options);
    FAIL() << "not refused";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("'table' has a sparse gradient"), std::string::npos)
        << error.what();
  }
}

} // namespace
} // namespace monet
