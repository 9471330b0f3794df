// GEMM tables: what is read, what is refused, and the networks' published counts.
#include "workload/shared/views.hpp"

#include "monet/base/files.hpp"
#include "monet/core_cost/backward.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>

namespace monet {
namespace {

const std::string kFolder = std::string(MONET_SOURCE_DIR) + "/data/workload/";

std::string gemm_problem(const std::string& text) {
  try {
    parse_gemm_table(text, "t.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(GemmTable, ALayerIsAPairOfEachSample) {
  const GemmTable table =
      parse_gemm_table("layers:\n"
                       "  - {name: conv, m: 196, k: 27, n: 32, input: 588, first: true}\n"
                       "  - {m: 1_00, k: 5, n: 7, repeats: 3}\n",
                       "folder/tiny.yaml");
  EXPECT_EQ(table.name, "tiny");
  const GemmNetwork network = gemm_pairs(table, 4);
  ASSERT_EQ(network.pairs.size(), 2U);
  EXPECT_EQ(network.pairs[0].name, "conv");
  EXPECT_EQ(network.pairs[0].m, 4 * 196);
  EXPECT_EQ(network.pairs[0].k, 27);
  EXPECT_EQ(network.pairs[0].n, 32);
  EXPECT_EQ(network.pairs[0].raw_elements, 4 * 588);
  EXPECT_FALSE(network.pairs[0].has_dx);
  EXPECT_EQ(network.pairs[1].name, "layer1");
  EXPECT_EQ(network.pairs[1].m, 400);
  EXPECT_EQ(network.pairs[1].repeats, 3);
  EXPECT_EQ(network.pairs[1].raw_elements, 0);
  EXPECT_TRUE(network.pairs[1].has_dx);
}

TEST(GemmTable, ProblemsAreLocated) {
  const std::map<std::string, std::string> cases{
      {"layers: [{m: 0, k: 1, n: 1}]", "t.yaml:1:14: 'm' is 0; it must be 1 to 2^40"},
      {"layers: [{m: 1, k: -3, n: 1}]", "t.yaml:1:20: 'k' is -3; it must be 1 to 2^40"},
      {"layers: [{m: 1, k: 1, n: 1099511627777}]",
       "t.yaml:1:26: 'n' is 1099511627777; it must be 1 to 2^40"},
      {"layers: [{m: 1, k: 1, n: 1, repeats: 0}]",
       "t.yaml:1:38: 'repeats' is 0; it must be 1 to 2^40"},
      {"layers: [{m: 1048576, k: 1048576, n: 64}]",
       "t.yaml:1:10: the layer has more than 2^45 multiplications"},
      {"layers: [{m: 4, k: 4, n: 4, input: 17}]",
       "t.yaml:1:10: 'input' is 17, more than the 16 elements of m x k"},
      {"layers: [{m: 4, k: 4, n: 4, inputs: 16}]",
       "t.yaml:1:29: unknown key 'inputs' (did you mean 'input'?)"},
      {"layers: [{m: 4, k: 4}]", "t.yaml:1:10: key 'n' is missing"},
      {"layers: [{name: a, m: 4, k: 4, n: 4}, {name: a, m: 4, k: 4, n: 4}]",
       "t.yaml:1:39: a layer 'a' is there already, in line 1"},
      {"layers: []", "t.yaml:1:9: 'layers' must be a list of at least one layer"},
      {"layer: [{m: 4, k: 4, n: 4}]", "t.yaml:1:1: key 'layers' is missing"},
      {"[1, 2]", "t.yaml:1:1: expected a map, found a list"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string problem = gemm_problem(text);
    EXPECT_EQ(problem.substr(0, problem.find('\n')), expected) << text;
  }
}

TEST(GemmTable, AllProblemsInOneRun) {
  const std::string problems = gemm_problem("layers: [{m: 0, k: 0, n: 1}, {m: 1, k: 1, n: x}]");
  EXPECT_EQ(std::count(problems.begin(), problems.end(), '\n'), 2) << problems;
}

TEST(GemmTable, ABatchMayBeTooLarge) {
  const GemmTable table = parse_gemm_table("layers: [{m: 1048576, k: 64, n: 64}]", "t.yaml");
  EXPECT_NO_THROW(gemm_pairs(table, 8192));
  try {
    gemm_pairs(table, 8193);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("t.yaml:1:10: with a batch of 8193 the layer", 0), 0U)
        << error.what();
  }
}

std::int64_t weights_in(const GemmTable& table, const std::string& beginning = "") {
  std::int64_t weights = 0;
  for (const GemmLayer& layer : table.layers) {
    if (layer.name.rfind(beginning, 0) == 0)
      weights += layer.k * layer.n * layer.repeats;
  }
  return weights;
}

std::int64_t macs_in(const GemmTable& table) {
  std::int64_t macs = 0;
  for (const GemmLayer& layer : table.layers)
    macs += layer.m * layer.k * layer.n * layer.repeats;
  return macs;
}

GemmTable shipped(const std::string& name) {
  return read_gemm_table(kFolder + "gemm/" + name + ".yaml");
}

// What the tables' headers name: parameters of whole networks, less those that are no factor of a
// product (biases, normalisation, embeddings), and MACs.
TEST(GemmTables, HaveThePublishedCounts) {
  // 25,557,032 parameters, of them 53,120 of batch normalisation and 1,000 biases; 4.09 GMACs.
  EXPECT_EQ(weights_in(shipped("resnet50")), 25'557'032 - 53'120 - 1'000);
  EXPECT_NEAR(static_cast<double>(macs_in(shipped("resnet50"))), 4.09e9, 0.005e9);
  // 4.2 M parameters, 569 M MACs.
  EXPECT_NEAR(static_cast<double>(weights_in(shipped("mobilenet"))), 4.2e6, 0.05e6);
  EXPECT_NEAR(static_cast<double>(macs_in(shipped("mobilenet"))), 569e6, 0.5e6);
  // 46.5 M parameters, 109.1 GFLOPs with batch normalisation.
  EXPECT_NEAR(static_cast<double>(weights_in(shipped("yolov5"))), 46.5e6, 0.05e6);
  EXPECT_NEAR(static_cast<double>(2 * macs_in(shipped("yolov5"))), 109.1e9, 0.2e9);
  // 5.41 GFLOPs.
  EXPECT_NEAR(static_cast<double>(2 * macs_in(shipped("yolov2_tiny"))), 5.41e9, 0.005e9);
  EXPECT_NEAR(static_cast<double>(weights_in(shipped("yolov2_tiny"))), 11.2e6, 0.05e6);
  // ResNet-50 up to conv4, whose weights are 8,512,704, and the proposals' 3x3 and two 1x1.
  EXPECT_EQ(weights_in(shipped("faster_rcnn")), 8'512'704 + 9 * 1024 * 512 + 512 * (36 + 18));
  // 24 layers of 4 x 1024^2 and 2 x 1024 x 4096 (302 M), and the pooler.
  EXPECT_EQ(weights_in(shipped("bert_large")), 301'989'888 + 1024 * 1024);
  // 1.2 GFLOPs, published of the smallest TinyBERT.
  EXPECT_NEAR(static_cast<double>(2 * macs_in(shipped("bert_tiny"))), 1.2e9, 0.05e9);
  // All parameters less normalisation (a vector in front of each part and at the ends) and the
  // biases of positions (32 x heads, in encoder and decoder).
  EXPECT_EQ(weights_in(shipped("t5_large")), 737'668'096 - (24 * 5 + 2) * 1024 - 2 * 32 * 16);
  EXPECT_EQ(weights_in(shipped("t5_small")), 60'506'624 - (6 * 5 + 2) * 512 - 2 * 32 * 8);
  // Layers of 512, 256, 128 on 13, and of 1024, 1024, 512, 256, 1 on 479.
  EXPECT_EQ(weights_in(shipped("dlrm")), 170'496 + 2'194'688);
  EXPECT_EQ(weights_in(shipped("ncf")), 256 * 256 + 256 * 128 + 128 * 64 + 128);
}

// Szegedy et al., table 1, column "params" in units of 1,024, of the modules where it is that of
// the filters it lists, and all 6,998,552 parameters of its release with 8,280 biases.
TEST(GemmTables, GoogLeNetIsTheTableOfThePaper) {
  const GemmTable table = shipped("googlenet");
  const std::map<std::string, double> modules{{"conv2", 112}, {"3a.", 159}, {"3b.", 380},
                                              {"4a.", 364},   {"4b.", 437}, {"fc", 1000}};
  for (const auto& [name, thousands] : modules)
    EXPECT_NEAR(static_cast<double>(weights_in(table, name)) / 1024, thousands, 5) << name;
  EXPECT_EQ(weights_in(table), 6'998'552 - 8'280);
}

TEST(GemmTables, LongerSequencesHaveMoreRows) {
  for (const char* name : {"bert_large", "bert_tiny", "t5_large", "t5_small"}) {
    const GemmTable usual = shipped(name);
    const GemmTable longer = shipped(std::string(name) + "_s512");
    EXPECT_EQ(weights_in(usual), weights_in(longer));
    ASSERT_EQ(usual.layers.size(), longer.layers.size());
    for (std::size_t i = 0; i < usual.layers.size(); ++i)
      EXPECT_EQ(longer.layers[i].m, usual.layers[i].m == 1 ? 1 : 4 * usual.layers[i].m);
  }
}

GemmNetwork network_pairs(const std::string& file) {
  OnnxReadOptions options;
  options.batch = 2;
  return gemm_pairs(fold_views(read_onnx(kFolder + file, options)));
}

// MACs of the networks are PyTorch's, for a sample.
TEST(GemmPairs, OfNetworksHaveAllTheirProducts) {
  const auto facts = nlohmann::json::parse(
      read_file(std::string(MONET_SOURCE_DIR) + "/tests/fixtures/networks.json"));
  for (const std::string name : {"resnet18_cifar", "mobilenet_v2", "unet", "gpt2_nano"}) {
    const GemmNetwork network = network_pairs(name + ".onnx");
    EXPECT_TRUE(network.skipped.empty()) << name << " " << network.skipped.front().name;
    std::int64_t macs = 0;
    std::size_t without = 0;
    for (const GemmPair& pair : network.pairs) {
      macs += pair.m * pair.k * pair.n * pair.repeats;
      without += pair.has_dx ? 0U : 1U;
    }
    EXPECT_EQ(macs, 2 * facts.at(name).at("macs").get<std::int64_t>()) << name;
    EXPECT_EQ(without, name == "gpt2_nano" ? 0U : 1U) << name; // tokens are looked up: a gradient
  }
}

TEST(GemmPairs, OfAConvolutionAreItsIm2col) {
  const GemmNetwork network = network_pairs("resnet18_cifar.onnx");
  const GemmPair& first = network.pairs.front(); // 3x3 on 3 x 32 x 32, 64 filters
  EXPECT_EQ(first.m, 2 * 32 * 32);
  EXPECT_EQ(first.k, 27);
  EXPECT_EQ(first.n, 64);
  EXPECT_EQ(first.raw_elements, 2 * 3 * 32 * 32);
  EXPECT_FALSE(first.has_dx);
  const GemmPair& last = network.pairs.back();
  EXPECT_EQ(last.m, 2);
  EXPECT_EQ(last.k, 512);
  EXPECT_EQ(last.n, 10);
  EXPECT_EQ(last.raw_elements, 0);
}

// A depthwise convolution has a product for each channel; a transposed one multiplies its input's
// positions with all taps of all filters.
TEST(GemmPairs, OfGroupsAreRepeats) {
  bool depthwise = false;
  for (const GemmPair& pair : network_pairs("mobilenet_v2.onnx").pairs)
    depthwise = depthwise || (pair.repeats == 32 && pair.k == 9 && pair.n == 1);
  EXPECT_TRUE(depthwise);
}

} // namespace
} // namespace monet
