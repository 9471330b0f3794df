// Steps that take turns, against a GAN that PyTorch trained.
#include "monet/base/yaml.hpp"
#include "monet/execute/execute.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace monet {
namespace {

using nlohmann::json;

const std::string kFolder = MONET_SOURCE_DIR "/tests/fixtures/alternating/";

json recorded() {
  std::ifstream file(kFolder + "gan.json");
  return json::parse(file);
}

std::vector<AlternateStep> players(std::int64_t turns) {
  ProblemList problems;
  auto steps = read_alternate_steps(parse_yaml(R"(
- name: discriminator
  repeat: )" + std::to_string(turns) + R"(
  loss: {type: network, outputs: {discriminator_loss: 1.0}}
  trainable: {train: ["discriminator.*"]}
  optimizer: {type: adam, learning_rate: 0.02}
- name: generator
  loss: {type: network, outputs: {generator_loss: 1.0}}
  trainable: {train: ["generator.*"]}
  optimizer: {type: adam, learning_rate: 0.01}
)",
                                               "steps.yaml"),
                                    problems);
  problems.throw_if_any();
  return steps;
}

struct Gan {
  std::vector<AlternateStep> steps;
  std::vector<TrainingGraph> graphs;
};

Gan gan(std::int64_t turns) {
  Gan made{players(turns), {}};
  const Graph network = read_onnx(kFolder + "gan.onnx", {});
  for (const AlternateStep& step : made.steps) {
    made.graphs.push_back(make_training_graph(network, step.options));
    verify(made.graphs.back());
  }
  return made;
}

TEST(Alternating, TheTwoPlayersOfAGanEqualPyTorch) {
  const json facts = recorded();
  const Gan made = gan(facts.at("turns"));
  AlternatingExecution execution({&made.graphs[0], &made.graphs[1]});
  for (std::size_t i = 0; i < 2; ++i) {
    for (const auto& [name, values] : read_onnx_weights(kFolder + "gan.onnx")) {
      const auto set = [&](const auto& list) {
        set_by_name(execution.of(i), made.graphs[i], name,
                    std::vector<double>(list.begin(), list.end()));
      };
      std::visit(set, values);
    }
    for (const char* input : {"noise", "real"}) {
      const auto id = made.graphs[i].graph.find_tensor(input);
      if (id)
        execution.of(i).set(*id, facts.at(input).get<std::vector<double>>());
    }
    fill(execution.of(i), made.graphs[i], 0);
  }
  execution.begin();
  for (const json& losses : facts.at("losses")) {
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::int64_t turn = 0; turn < made.steps[i].repeat; ++turn)
        execution.run(i);
      const double loss = execution.of(i).get(*made.graphs[i].loss).at(0);
      EXPECT_NEAR(loss, losses.at(made.steps[i].name).get<double>(), 1e-12) << made.steps[i].name;
    }
  }
  for (const auto& [name, values] : facts.at("state").items()) {
    const auto wanted = values.get<std::vector<double>>();
    for (std::size_t i = 0; i < 2; ++i) {
      const auto id = made.graphs[i].graph.find_tensor(name);
      if (!id || !execution.of(i).has(*id))
        continue;
      const std::vector<double> now = execution.of(i).get(*id);
      ASSERT_EQ(now.size(), wanted.size()) << name;
      for (std::size_t k = 0; k < now.size(); ++k)
        EXPECT_NEAR(now[k], wanted[k], 1e-10) << made.steps[i].name << ": " << name;
    }
  }
}

// The generator's step needs no real image, the discriminator's no gradient of the generator.
TEST(Alternating, AStepHasWhatItsLossNeeds) {
  const Gan made = gan(1);
  EXPECT_EQ(made.graphs[0].parameters.size(), 5U);
  EXPECT_EQ(made.graphs[1].parameters.size(), 4U);
  const auto inputs = [](const TrainingGraph& step) {
    std::vector<std::string> names;
    for (const TensorId id : step.graph.inputs) {
      if (step.graph.tensor(id).kind == TensorKind::input)
        names.push_back(step.graph.tensor(id).name);
    }
    return names;
  };
  EXPECT_EQ(inputs(made.graphs[1]).front(), "noise");
  for (const std::string& name : inputs(made.graphs[1]))
    EXPECT_NE(name, "real");
  // Four layers forward in the first step (real and fake through the discriminator), three in the
  // second.
  const auto forward = [](const TrainingGraph& step) { return count_macs(step.graph).forward; };
  EXPECT_EQ(forward(made.graphs[0]), 5 * (3 * 6 + 6 * 4) + 2 * 5 * (4 * 5 + 5));
  EXPECT_EQ(forward(made.graphs[1]), 5 * (3 * 6 + 6 * 4) + 5 * (4 * 5 + 5));
  EXPECT_EQ(count_macs(made.graphs[0].graph).backward_weight, 2 * 5 * (4 * 5 + 5));
}

} // namespace
} // namespace monet
