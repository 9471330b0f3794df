#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

TEST(Graph, StatisticsOfResNet18) {
  const Ran ran =
      run_monet({"graph", repository("data/workload/resnet18_cifar.onnx"), "--batch", "4"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  expect_golden("graph_resnet18_cifar.txt", ran.out);
}

// The two biases of an LSTM's layer have one gradient.
TEST(Graph, EveryParameterHasAGradientFile) {
  const Scratch scratch;
  const Ran ran =
      run_monet({"graph", repository("data/workload/lstm.onnx"), "--batch", "2", "--training",
                 scratch.file("t.yaml", "loss: cross_entropy\noptimizer: sgd\n"), "--execute",
                 "--save", scratch / "s"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  int parameters = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "s")) {
    std::string path = entry.path().string();
    const std::size_t at = path.find(".updated.npy");
    if (at == path.npos)
      continue;
    ++parameters;
    path.replace(at, path.npos, ".grad.npy");
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
  }
  EXPECT_GE(parameters, 6);
}

/// The networks in data/workload say that their weights are left out on purpose.
TEST(Graph, MissingExternalDataAreBadInputUnlessLeftOutOnPurpose) {
  const Scratch scratch;
  const auto executed = [](const std::string& network) {
    return run_monet({"graph", network, "--batch", "1", "--execute"});
  };
  const Ran shipped = executed(repository("data/workload/resnet8_16.onnx"));
  EXPECT_EQ(shipped.code, 0) << shipped.err;
  EXPECT_NE(shipped.err.find("weights were omitted on purpose"), std::string::npos) << shipped.err;
  std::string bytes = read_file(repository("data/workload/resnet8_16.onnx"));
  const std::size_t mark = bytes.find("stripped", bytes.find("monet.weights"));
  ASSERT_NE(mark, bytes.npos);
  bytes.replace(mark, 8, "separate");
  write_file_atomically(scratch / "moved.onnx", bytes);
  const Ran moved = executed(scratch / "moved.onnx");
  EXPECT_EQ(moved.code, 3);
  EXPECT_NE(moved.err.find("moved.onnx [tensor 'conv1.weight']: external data "
                           "'resnet8_16.weights' are missing"),
            std::string::npos)
      << moved.err;
}

TEST(Graph, JsonAloneOnStdout) {
  const Ran ran = run_monet(
      {"graph", repository("data/workload/gpt2_nano.onnx"), "--batch", "2", "--json", "-"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json.at("parameters"), 120576); // as PyTorch counts them
  const auto& macs = json.at("macs");
  EXPECT_EQ(macs.at("forward"), 2 * 8388608); // of two sequences
  EXPECT_EQ(macs.at("backward_weight").get<std::int64_t>() +
                macs.at("backward_input").get<std::int64_t>() +
                macs.at("forward").get<std::int64_t>(),
            macs.at("total").get<std::int64_t>());
  std::int64_t layers = 0;
  for (const auto& layer : json.at("layers"))
    layers += layer.at("macs").get<std::int64_t>();
  EXPECT_EQ(layers, macs.at("total").get<std::int64_t>());
  EXPECT_EQ(json.at("operators").at("forward").count("Optimizer"), 0U);
}

TEST(Graph, InferenceHasOneForwardPhase) {
  const Ran ran = run_monet({"graph", repository("data/workload/gpt2_nano.onnx"), "--batch", "1",
                             "--inference", "--json", "-"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json.at("operators").size(), 1U);
  EXPECT_EQ(json.at("macs").at("total"), 8388608);
  EXPECT_EQ(json.at("stored_activations_bytes"), 0);
}

TEST(Graph, ExportIsAModelAndEqualEachTime) {
  const Scratch scratch;
  for (const char* name : {"a.onnx", "b.onnx"}) {
    const Ran ran =
        run_monet({"graph", repository("data/workload/gpt2_nano.onnx"), "--batch", "1", "-o", name},
                  scratch.path());
    EXPECT_EQ(ran.code, 0) << ran.err;
  }
  EXPECT_GT(read_file(scratch / "a.onnx").size(), 10000U);
  EXPECT_EQ(read_file(scratch / "a.onnx"), read_file(scratch / "b.onnx"));
}

/// Published for squares against two copies in vectors: 51 % less.
TEST(Graph, SaysWhatProductsReadByRole) {
  const auto operands = [](const char* training) {
    const Ran ran = run_monet(
        {"graph", repository("data/workload/resnet20_cifar.onnx"), "--batch", "32", "--training",
         repository(std::string("data/training/") + training), "--json", "-"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out).at("product_operands");
  };
  const auto vectors = operands("mxfp8_vectors.yaml");
  const auto squares = operands("mxfp8_squares.yaml");
  const double ratio =
      squares.at("footprint_bits").get<double>() / vectors.at("footprint_bits").get<double>();
  EXPECT_NEAR(100 * (ratio - 1), -51, 1);
  for (const char* role : {"weights", "activations", "errors"}) {
    EXPECT_EQ(squares.at(role).at("copies"), 0) << role;
    EXPECT_GE(vectors.at(role).at("copies"), 20) << role;
    EXPECT_GT(squares.at(role).at("scale_bits"), 0) << role;
  }
}

TEST(Graph, ExecutesStepsOnNumbersByName) {
  const Scratch scratch;
  const std::vector<std::string> command{"graph",      repository("data/workload/gpt2_nano.onnx"),
                                         "--batch",    "1",
                                         "--training", repository("data/training/sgd.yaml"),
                                         "--execute",  "--steps",
                                         "3",          "--save",
                                         "numbers",    "--json",
                                         "-"};
  const Ran ran = run_monet(command, scratch.path());
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto execution = nlohmann::json::parse(ran.out).at("execution");
  EXPECT_EQ(execution.at("steps").size(), 3U);
  EXPECT_LT(execution.at("steps")[2].at("loss"), execution.at("steps")[0].at("loss"));
  EXPECT_GT(execution.at("steps")[0].at("gradient_norm"), 0.0);
  EXPECT_EQ(run_monet(command, scratch.path()).out, ran.out);
  EXPECT_EQ(read_file(scratch / "numbers/loss.npy").size(), 128U + 8U);

  std::vector<std::string> again = command; // from the weights that were saved
  again.insert(again.end(), {"--numbers", "wte.weight=numbers/wte.weight.updated.npy"});
  const Ran resumed = run_monet(again, scratch.path());
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.out, ran.out);
  EXPECT_EQ(nlohmann::json::parse(resumed.out).at("execution").at("numbers").at("given"), 1);
}

TEST(Graph, NumbersOfAnotherShapeAreBadInput) {
  const Scratch scratch;
  write_file_atomically(scratch / "x.npy", std::string("no array"));
  const std::vector<std::string> command{"graph", repository("data/workload/gpt2_nano.onnx"),
                                         "--batch", "1", "--execute"};
  const auto with = [&](const std::string& pair) {
    std::vector<std::string> all = command;
    all.insert(all.end(), {"--numbers", pair});
    return run_monet(all, scratch.path());
  };
  EXPECT_EQ(with("wte.weight=x.npy").code, 3);
  EXPECT_EQ(with("wte.weight=missing.npy").code, 3);
  const Ran typo = with("wte.wieght=x.npy");
  EXPECT_EQ(typo.code, 3);
  EXPECT_NE(typo.err.find("wte.weight"), std::string::npos) << typo.err;
  EXPECT_EQ(with("nonsense").code, 2);
}

TEST(Graph, ExecutingBeyondTheMemoryLimitIsInfeasible) {
  const auto executed = [](const char* batch, const char* limit) {
    return run_monet({"graph", repository("data/workload/resnet18_cifar.onnx"), "--batch", batch,
                      "--inference", "--execute", "--memory-limit", limit});
  };
  const Ran refused = executed("1000000", "80%"); // of any machine's
  EXPECT_EQ(refused.code, 4);
  EXPECT_NE(refused.err.find("needs"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("memory limit"), std::string::npos) << refused.err;
  EXPECT_EQ(executed("1", "1MiB").code, 4);
  EXPECT_EQ(executed("1", "1GiB").code, 0);
  EXPECT_EQ(executed("1", "plenty").code, 2);
}

TEST(Graph, ExecutingEndsWithCtrlC) {
  const Ran ran = run_interrupted_at_work({"graph", repository("data/workload/gpt2_nano.onnx"),
                                           "--batch", "8", "--execute", "--steps", "1000000"},
                                          0.5);
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_NE(ran.err.find("stopped while the graph was executed"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.out, "");
}

TEST(Graph, AStepThatWasWrittenIsNotDifferentiatedAgain) {
  const Scratch scratch;
  const std::string step = scratch / "step.onnx";
  ASSERT_EQ(run_monet({"graph", repository("data/workload/resnet18_cifar.onnx"), "--batch", "1",
                       "-o", step})
                .code,
            0);
  EXPECT_EQ(run_monet({"graph", step}).code, 0);
  const Ran again = run_monet({"graph", step, "--training", repository("data/training/sgd.yaml")});
  EXPECT_EQ(again.code, 3);
  EXPECT_NE(again.err.find("is a training step already"), std::string::npos) << again.err;
}

/// Element types without a training file: half the bytes, and unknown ones are refused.
TEST(Graph, PrecisionOfInference) {
  const auto with = [](const std::string& types) {
    return run_monet({"graph", repository("data/workload/gpt2_nano.onnx"), "--batch", "1",
                      "--inference", "--json", "-", "--precision", types});
  };
  const auto bytes = [&](const std::string& types) {
    const Ran ran = with(types);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out)
        .at("tensor_bytes")
        .at("temporaries_bytes")
        .get<std::int64_t>();
  };
  // but for statistics and indices
  EXPECT_LT(100 * bytes("{weights: fp16, activations: fp16}"), 51 * bytes("fp32"));
  EXPECT_EQ(with("float").code, 3);
  EXPECT_EQ(run_monet({"graph", repository("data/workload/gpt2_nano.onnx"), "--batch", "1",
                       "--training", repository("data/training/adam.yaml"), "--precision", "fp16"})
                .code,
            2);
}

/// What is kept but not trained is told, and can be trained.
TEST(Graph, SaysWhatWasTakenForABuffer) {
  const Scratch scratch;
  const std::string network = small_network("causal_mask_1e9");
  const Ran ran = run_monet({"graph", network, "--json", "g.json"}, scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(read_file(scratch / "g.json"));
  ASSERT_EQ(json.at("buffers").size(), 1U);
  const std::string name = json["buffers"][0].at("name");
  const Ran table = run_monet({"graph", network}, scratch.path());
  EXPECT_NE(table.out.find("kept, not trained: " + name), std::string::npos) << table.out;
  write_file_atomically(scratch / "t.yaml", "trainable: {parameters: ['" + name + "']}\n");
  const Ran trained =
      run_monet({"graph", network, "--training", "t.yaml", "--json", "-"}, scratch.path());
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_GT(nlohmann::json::parse(trained.out).at("trained_parameters"),
            json.at("trained_parameters"));
}

TEST(Graph, SaysWhatWaitsInTheHost) {
  const Scratch scratch;
  const auto with = [&](const std::string& training, const std::string& json) {
    write_file_atomically(scratch / "t.yaml", training);
    return run_monet({"graph", repository("data/workload/gpt2_nano.onnx"), "--batch", "1",
                      "--training", "t.yaml", "--json", json},
                     scratch.path());
  };
  const auto kept = nlohmann::json::parse(with("offload: []", "-").out);
  const auto json = nlohmann::json::parse(with("offload: all", "-").out);
  EXPECT_FALSE(kept.at("memory").at("peak").contains("offloaded_activations_bytes"));
  EXPECT_EQ(json.at("stored_activations_bytes"), kept.at("stored_activations_bytes"));
  EXPECT_LT(json.at("memory").at("peak_bytes"), kept.at("memory").at("peak_bytes"));
  std::int64_t sum = -json.at("memory").at("peak_bytes").get<std::int64_t>();
  for (const auto& [owner, bytes] : json.at("memory").at("peak").items())
    sum += owner == "offloaded_activations_bytes" ? 0 : bytes.get<std::int64_t>();
  EXPECT_EQ(sum, 0);
  const Ran table = with("offload: all", "g.json");
  EXPECT_NE(table.out.find("\n  in the host, additionally "), std::string::npos) << table.out;
  const Ran wrong = with("offload: [nothing]", "g.json");
  EXPECT_EQ(wrong.code, 3);
  EXPECT_NE(wrong.err.find("gpt2_nano.onnx: no stored tensor matches the pattern 'nothing'"),
            std::string::npos)
      << wrong.err;
}

TEST(Graph, AnUnboundBatchIsBadInput) {
  const Ran ran = run_monet({"graph", repository("data/workload/gpt2_nano.onnx")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("batch"), std::string::npos) << ran.err;
}

} // namespace
} // namespace monet::test
