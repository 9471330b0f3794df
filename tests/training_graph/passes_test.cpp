// The passes of make_training_graph(): their order and contracts, and what each takes and makes.
#include "base/shared/text.hpp"
#include "training_graph/read_options.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/files.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace monet {
namespace {

/// x -> linear -> relu -> linear, [2, 3] -> [2, 4] -> [2, 2].
Graph perceptron() {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 3});
  const TensorId a = n.op("Gemm", {x, n.parameter("w1", {3, 4}), n.parameter("b1", {4})}, {2, 4});
  const TensorId r = n.op("Relu", {a}, {2, 4});
  n.output(n.op("Gemm", {r, n.parameter("w2", {4, 2}), n.parameter("b2", {2})}, {2, 2}));
  return n.graph;
}

std::vector<PassRecord> passes_of(std::string_view training) {
  std::vector<PassRecord> passes;
  const Graph network = perceptron();
  const TrainingGraph step = make_training_graph(
      network, read_options(training), [&](const PassRecord& pass) { passes.push_back(pass); });
  PassSize size{network.operators().size(), network.tensors().size()};
  for (const PassRecord& pass : passes) {
    EXPECT_EQ(pass.before, size) << line_of(pass);
    size = pass.after;
    EXPECT_TRUE(!pass.skipped || pass.before == pass.after) << line_of(pass);
  }
  EXPECT_EQ(size, (PassSize{step.graph.operators().size(), step.graph.tensors().size()}));
  return passes;
}

/// Passes that applied, with operators and tensors after them.
std::string applied(std::string_view training) {
  std::string text;
  for (const PassRecord& pass : passes_of(training)) {
    if (!pass.skipped)
      text += fmt::format("{} {} {}\n", pass.name, pass.after.operators, pass.after.tensors);
  }
  return text;
}

const std::string kAdapted = "loss: mse\noptimizer: {type: adam, learning_rate: 0.001}\n"
                             "precision: {weights: bf16, activations: bf16, master_weights: fp32}\n"
                             "trainable: {lora: {rank: 2, alpha: 4, targets: ['w*']}}\n"
                             "store: {recompute: ['Relu*']}\n";

TEST(Passes, EachIsEnteredOnceInOneOrderForAllOptions) {
  std::vector<std::string_view> order;
  for (const PassRecord& pass : passes_of("loss: mse\n"))
    order.push_back(pass.name);
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), order.size());
  for (const std::string& training : {kAdapted, std::string("loss: mse\nmicro_batches: 3\n")}) {
    const std::vector<PassRecord> passes = passes_of(training);
    ASSERT_EQ(passes.size(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      EXPECT_EQ(passes[i].name, order[i]);
  }
}

TEST(Passes, EachNeedsOnlyWhatEarlierOnesMake) {
  std::set<std::string, std::less<>> made{"graph"};
  for (const PassRecord& pass : passes_of("loss: mse\n")) {
    constexpr auto kAll = std::numeric_limits<std::size_t>::max();
    for (const std::string_view need : split(pass.needs, ',', kAll))
      EXPECT_TRUE(made.contains(trimmed(need))) << pass.name << " needs " << need;
    for (const std::string_view make : split(pass.makes, ',', kAll))
      made.emplace(trimmed(make));
  }
}

TEST(Passes, TheExplanationListsThem) {
  const std::string page =
      read_file(std::string(MONET_SOURCE_DIR) + "/docs/explanation/training-graph.md");
  for (const PassRecord& pass : passes_of("loss: mse\n")) {
    const std::string row = fmt::format("| {} | {} | {} |", pass.name, pass.needs, pass.makes);
    EXPECT_NE(page.find(row), page.npos) << row;
  }
}

TEST(Passes, ALineHasTheContractAndWhatChanged) {
  const PassRecord pass{"cast weights", "graph, trained parameters", "graph", false, {3, 8},
                        {5, 10}};
  const std::string contract = "cast weights: graph, trained parameters -> graph";
  EXPECT_EQ(line_of(pass), contract + " (3 -> 5 operators, 8 -> 10 tensors)");
  PassRecord skipped = pass;
  skipped.skipped = true;
  EXPECT_EQ(line_of(skipped), contract + " (skipped)");
}

TEST(Passes, InferenceSkipsThoseOfTraining) {
  std::string applied;
  make_inference_graph(perceptron(), {}, [&](const PassRecord& pass) {
    if (!pass.skipped)
      applied += std::string(pass.name) + "\n";
  });
  EXPECT_EQ(applied, "check phases\nchoose trained parameters\nmake the forward part\n"
                     "lay out blocks\nchoose stored tensors\nrecord arithmetic\nstart scales\n"
                     "assign owners\n");
}

TEST(Passes, PlainSgd) {
  EXPECT_EQ(applied("loss: mse\noptimizer: {type: sgd, learning_rate: 0.1}\n"),
            "choose trained parameters 3 8\n"
            "choose the loss 3 8\n"
            "find needed gradients 3 8\n"
            "make the forward part 3 8\n"
            "append the loss 4 10\n"
            "differentiate 11 18\n"
            "lay out blocks 11 18\n"
            "count what autograd keeps 11 18\n"
            "store least 11 18\n"
            "choose stored tensors 11 18\n"
            "drop outputs of the network 11 18\n"
            "append the update 15 23\n"
            "list outputs 15 23\n"
            "record arithmetic 15 23\n"
            "assign owners 15 23\n");
}

TEST(Passes, AdamInMixedPrecisionWithRecomputationAndAdapters) {
  EXPECT_EQ(applied(kAdapted), "adapt weights 11 22\n"
                               "choose trained parameters 11 22\n"
                               "choose the loss 11 22\n"
                               "find needed gradients 11 22\n"
                               "make the forward part 11 22\n"
                               "append the loss 12 24\n"
                               "differentiate 33 45\n"
                               "lay out blocks 33 45\n"
                               "count what autograd keeps 33 45\n"
                               "recompute by name 34 46\n"
                               "store least 34 46\n"
                               "choose stored tensors 34 46\n"
                               "drop outputs of the network 34 46\n"
                               "append the update 38 76\n"
                               "quantise from masters 38 76\n"
                               "list outputs 38 76\n"
                               "record arithmetic 38 76\n"
                               "assign owners 38 76\n");
}

TEST(Passes, MicroBatches) {
  EXPECT_EQ(applied("loss: mse\nmicro_batches: 3\n"), "choose trained parameters 3 8\n"
                                                      "choose the loss 3 8\n"
                                                      "find needed gradients 3 8\n"
                                                      "make the forward part 3 8\n"
                                                      "append the loss 4 10\n"
                                                      "differentiate 12 20\n"
                                                      "lay out blocks 12 20\n"
                                                      "count what autograd keeps 12 20\n"
                                                      "store least 12 20\n"
                                                      "choose stored tensors 12 20\n"
                                                      "drop outputs of the network 12 20\n"
                                                      "repeat micro-batches 45 57\n"
                                                      "append the update 49 79\n"
                                                      "list outputs 49 79\n"
                                                      "record arithmetic 49 79\n"
                                                      "assign owners 49 79\n");
}

} // namespace
} // namespace monet
