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

TEST(Graph, AnUnboundBatchIsBadInput) {
  const Ran ran = run_monet({"graph", repository("data/workload/gpt2_nano.onnx")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("batch"), std::string::npos) << ran.err;
}

} // namespace
} // namespace monet::test
