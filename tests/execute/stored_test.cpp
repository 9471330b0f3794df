// What is stored does not change the numbers: gradients under both policies are the same.
#include "training_graph/tiny_network.hpp"

#include "monet/execute/execute.hpp"

#include <gtest/gtest.h>

#include <map>

namespace monet {
namespace {

/// Every operator whose stored form depends on the policy, between products that keep neither its
/// input nor its output.
Graph network() {
  TinyNetwork n;
  const auto conv = [&](TensorId x, const std::string& w, std::int64_t in, std::int64_t size) {
    return n.op("Conv", {x, n.parameter(w, {4, in, 3, 3})}, {2, 4, size, size},
                with("pads", std::vector<std::int64_t>{1, 1, 1, 1}));
  };
  const std::vector<std::int64_t> full{2, 4, 8, 8};
  const std::vector<std::int64_t> half{2, 4, 4, 4};
  TensorId x = n.op("Relu", {conv(n.input("x", {2, 3, 8, 8}), "w1", 3, 8)}, full);
  Attributes pool = with("kernel_shape", std::vector<std::int64_t>{2, 2});
  pool.set("strides", std::vector<std::int64_t>{2, 2});
  x = n.op("MaxPool", {x}, half, pool);
  x = n.op("Add", {n.op("LeakyRelu", {conv(x, "w2", 4, 4)}, half, with("alpha", 0.3)), x}, half);
  x = n.op("Clip", {x, n.number("low", -0.2), n.number("high", 0.3)}, half);
  x = n.op(
      "Add",
      {n.op("Clip", {conv(x, "w3", 4, 4), n.number("zero", 0.0), n.number("six", 6.0)}, half), x},
      half);
  x = n.op("HardSigmoid", {x}, half);
  n.output(n.op("Relu", {n.op("Sub", {x, n.parameter("b", {4, 4})}, half)}, half));
  return n.graph;
}

std::map<std::string, std::vector<double>> gradients(StorePolicy policy, bool folded,
                                                     const std::string& recompute = "",
                                                     std::vector<std::string> offload = {}) {
  TrainingOptions options;
  options.storage.offload = std::move(offload);
  if (!recompute.empty())
    options.storage.recompute = {recompute};
  options.loss = NoLoss{}; // the gradient of the result is fed in
  options.storage.policy = policy;
  TrainingGraph step = make_training_graph(network(), options);
  if (folded)
    step = fold_views(step);
  Execution execution(step.graph);
  fill(execution, step, 7);
  execution.run();
  std::map<std::string, std::vector<double>> result;
  for (const ParameterRecord& record : step.parameters)
    result.emplace(step.graph.tensor(record.weight).name, execution.get(record.gradient));
  return result;
}

TEST(StorePolicies, GradientsAreTheSame) {
  const auto eager = gradients(StorePolicy::pytorch_eager, false);
  ASSERT_EQ(eager.size(), 4U);
  for (const bool folded : {false, true}) {
    const auto minimal = gradients(StorePolicy::minimal, folded);
    ASSERT_EQ(minimal.size(), eager.size());
    for (const auto& [name, numbers] : eager) {
      double largest = 0;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        EXPECT_DOUBLE_EQ(minimal.at(name)[i], numbers[i]) << name << " " << i;
        largest = std::max(largest, std::abs(numbers[i]));
      }
      EXPECT_GT(largest, 1e-6) << name;
    }
  }
}

TEST(StorePolicies, RecomputedTensorsGiveTheSameGradients) {
  const auto eager = gradients(StorePolicy::pytorch_eager, false);
  for (const char* pattern : {"*", "Relu_*", "MaxPool_*", "Clip_*", "Add_*"}) {
    for (const bool folded : {false, true})
      EXPECT_EQ(gradients(StorePolicy::minimal, folded, pattern), eager) << pattern;
  }
}

TEST(StorePolicies, OffloadedTensorsGiveTheSameGradients) {
  for (const bool folded : {false, true}) {
    for (const StorePolicy policy : {StorePolicy::minimal, StorePolicy::pytorch_eager}) {
      const auto kept = gradients(policy, folded);
      for (const char* pattern : {"*", "x", "MaxPool_*"})
        EXPECT_EQ(gradients(policy, folded, "", {pattern}), kept) << pattern;
    }
    EXPECT_EQ(gradients(StorePolicy::minimal, folded, "MaxPool_*", {"*"}),
              gradients(StorePolicy::minimal, folded));
  }
}

} // namespace
} // namespace monet
