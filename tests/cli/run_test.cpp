#include "cli/consistent_result.hpp"
#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

namespace monet::test {
namespace {

TEST(Run, ABatchOnTheCommandLineReplacesTheFiles) {
  const Scratch scratch;
  const std::string example = repository("examples/study/batch.yaml");
  const auto run = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", example, "-o", "out"});
    return run_monet(options, scratch.path());
  };
  ASSERT_EQ(run({}).code, 0);
  const auto one = parse_file(scratch / "out/result.json");
  ASSERT_EQ(run({"--batch", "3"}).code, 0);
  const auto three = parse_file(scratch / "out/result.json");
  EXPECT_EQ(one.at("provenance").at("options").at("batch"), "1");
  EXPECT_EQ(three.at("provenance").at("options").at("batch"), "3");
  EXPECT_EQ(three.at("macs").at("total").get<double>(),
            3 * one.at("macs").at("total").get<double>());
  EXPECT_EQ(run({"--batch", "0"}).code, 2);
  EXPECT_EQ(run({"--dim", "sequence"}).code, 2);
}

// docs/results.md takes the phases before the update for a step without optimiser: by then every
// gradient has left the chip, as it would if nothing updated, and all tensors of Adam come and go.
TEST(Run, LayerByLayerTheUpdateIsApart) {
  const Scratch scratch;
  const std::string example = repository("examples/study/batch.yaml");
  ASSERT_EQ(run_monet({"run", example, "-o", "out"}, scratch.path()).code, 0);
  const auto step = parse_file(scratch / "out/result.json");
  double update = 0;
  double first = std::numeric_limits<double>::infinity();
  double last = 0;
  for (const auto& layer : step.at("layers")) {
    const bool updates = layer.at("phase") == "update";
    update += updates ? layer.at("offchip_bytes").get<double>() : 0;
    if (updates)
      first = std::min(first, layer.at("start_cycle").get<double>());
    else
      last = std::max(last, layer.at("end_cycle").get<double>());
  }
  EXPECT_LE(last, first);
  const double seven = 7 * 4 * step.at("parameters").get<double>(); // w, g, m, v; w, m, v in fp32
  EXPECT_NEAR(update, seven, 0.001 * seven);
}

TEST(Run, SaysWhatAStepCostsAndReportsCanBeMadeAgain) {
  const Scratch scratch;
  const std::string example = repository("examples/edge_resnet18_cifar.yaml");
  const Ran ran = run_monet({"run", example, "-o", "out", "--jobs", "1"}, scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  expect_golden("run_edge_resnet18_cifar.txt", ran.out); // phases beside inference
  expect_consistent(scratch, "out/");
  ASSERT_EQ(run_monet({"report", "out/result.json", "-o", "again.html"}, scratch.path()).code, 0);
  EXPECT_EQ(read_file(scratch / "again.html"), read_file(scratch / "out/report.html"));
}

TEST(Run, ResultsDoNotDependOnThreads) {
  const Scratch scratch;
  scratch.file("e.yaml", "workload: {network: " + repository("data/workload/gpt2_nano.onnx") +
                             ", batch: 1}\ntraining: {loss: cross_entropy, optimizer: adam}\n"
                             "hardware: " +
                             repository("data/hardware/edge_tpu.yaml") + "\n");
  for (const char* jobs : {"1", "4"}) {
    const Ran ran = run_monet(
        {"run", "e.yaml", "-o", *jobs == '1' ? "out" : "many", "--jobs", jobs}, scratch.path());
    ASSERT_EQ(ran.code, 0) << ran.err;
  }
  for (const char* name : {"result.json", "report.html", "trace.json", "training.onnx"}) {
    EXPECT_EQ(read_file(scratch / ("out/" + std::string(name))),
              read_file(scratch / ("many/" + std::string(name))))
        << name;
  }
}

// The two players of a GAN: an iteration is two steps of the one and one of the other.
TEST(Run, StepsThatTakeTurnsAreModelledOneByOne) {
  const Scratch scratch;
  const std::string steps =
      "- {name: d, repeat: 2, loss: {type: network, outputs: {discriminator_loss: 1}},\n"
      "   trainable: {train: ['discriminator.*']}, optimizer: adam}\n"
      "- {name: g, loss: {type: network, outputs: {generator_loss: 1}},\n"
      "   trainable: {train: ['generator.*']}, optimizer: adam}\n";
  const std::string network = repository("tests/fixtures/alternating/gan.onnx");
  const std::string training = scratch.file("steps.yaml", steps);
  const std::string experiment =
      scratch.file("e.yaml", "workload: {network: " + network +
                                 "}\nhardware: " + repository("data/hardware/edge_tpu.yaml") +
                                 "\ntraining: steps.yaml\n");
  const Ran ran = run_monet({"run", experiment, "-o", scratch / "out", "--verify"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("an iteration"), std::string::npos) << ran.out;
  const auto iteration = parse_file(scratch / "out/iteration.json");
  std::int64_t cycles = 0;
  for (const auto& step : iteration.at("steps")) {
    const auto result = parse_file(scratch / ("out/" + step.at("result").get<std::string>()));
    EXPECT_EQ(result.at("latency_cycles"), step.at("latency_cycles"));
    EXPECT_GT(step.at("peak_memory_bytes"), result.at("peak_memory_bytes")); // the other's states
    cycles += step.at("repeat").get<std::int64_t>() * step.at("latency_cycles").get<std::int64_t>();
  }
  EXPECT_EQ(iteration.at("latency_cycles"), cycles);
  const Ran graph = run_monet(
      {"graph", network, "--training", training, "--execute", "--steps", "2", "--json", "-"});
  ASSERT_EQ(graph.code, 0) << graph.err;
  const auto executed = nlohmann::json::parse(graph.out);
  EXPECT_EQ(executed.at("steps").size(), 2U);
  EXPECT_EQ(executed.at("execution").at("iterations").size(), 2U);
  const Ran one = run_monet({"schedule", "--hardware", repository("data/hardware/edge_tpu.yaml"),
                             "--workload", network, "--training", training});
  EXPECT_EQ(one.code, 3);
  EXPECT_NE(one.err.find("is a list of alternating steps"), std::string::npos) << one.err;
}

} // namespace
} // namespace monet::test
