// The reference networks. Facts in tests/fixtures/networks.json were counted by PyTorch,
// layer by layer.
#include "workload/shared/views.hpp"

#include "monet/workload/graph.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace monet {
namespace {

std::int64_t total_macs(const Graph& graph) {
  std::int64_t total = 0;
  for (const Operator& op : graph.operators())
    total += macs(op.nest);
  return total;
}

Graph read_network(const std::string& name, std::int64_t batch) {
  OnnxReadOptions options;
  options.batch = batch;
  return read_onnx(MONET_SOURCE_DIR "/data/workload/" + name + ".onnx", options);
}

class Networks : public testing::TestWithParam<const char*> {};

TEST_P(Networks, CountsEqualPyTorch) {
  std::ifstream file(MONET_SOURCE_DIR "/tests/fixtures/networks.json");
  const auto facts = nlohmann::json::parse(file).at(GetParam());
  const Graph graph = read_network(GetParam(), 1);
  EXPECT_EQ(parameter_count(graph), facts.at("parameters").get<std::int64_t>());
  EXPECT_EQ(total_macs(graph), facts.at("macs").get<std::int64_t>());
}

TEST_P(Networks, MacsGrowWithTheBatchAndSurviveFolding) {
  const Graph one = read_network(GetParam(), 1);
  const Graph three = read_network(GetParam(), 3);
  verify(three);
  EXPECT_EQ(total_macs(three), 3 * total_macs(one));
  EXPECT_EQ(parameter_count(three), parameter_count(one));
  const Graph folded = fold_views(three);
  verify(folded);
  EXPECT_EQ(total_macs(folded), total_macs(three));
  EXPECT_EQ(parameter_count(folded), parameter_count(three));
  for (const Operator& op : folded.operators()) {
    EXPECT_FALSE(op.nest.operands.empty()) << op.name << " is still a view";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Networks,
                         testing::Values("resnet18", "resnet18_cifar", "mobilenet_v2", "vgg16",
                                         "vit_tiny", "gpt2_nano", "gpt2", "lstm", "unet",
                                         "resnet50", "bert_large", "resnet20_cifar", "resnet8_16"),
                         [](const auto& param) { return std::string(param.param); });

// Heads are split out of [batch, 64, 64] rows: head h, position t, channel c is element [b, t, 32 h
// + c] (nano GPT-2 has two heads of 32), so the score product reads queries through a split loop
// and no copy is left.
TEST(Networks, AttentionReadsHeadsThroughSplitLoops) {
  const Graph folded = fold_views(read_network("gpt2_nano", 2));
  for (const Operator& op : folded.operators())
    EXPECT_NE(op.op_type, "Copy") << op.name;
}

} // namespace
} // namespace monet
