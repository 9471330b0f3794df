// What waits in the host for the backward part: where the copies are, what lives meanwhile, and
// that as much comes back as went out.
#include "training_graph/host_traffic.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/liveness.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace monet {
namespace MONET_TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kTensor = 1024; ///< bytes of 16 x 16 numbers

/// Sigmoid(Sigmoid(x w0) w2) w4: a product keeps its input, a sigmoid its output.
Graph chain() {
  TinyNetwork n;
  const std::vector<std::int64_t> square{16, 16};
  TensorId x = n.input("x", square);
  for (const char* weight : {"w0", "w2"})
    x = n.op("Sigmoid", {n.op("MatMul", {x, n.parameter(weight, square)}, square)}, square);
  n.output(n.op("MatMul", {x, n.parameter("w4", square)}, square));
  return n.graph;
}

TrainingGraph step_of(const Graph& network, std::vector<std::string> patterns,
                      StorageOptions storage = {}) {
  TrainingOptions options;
  options.loss = NoLoss{}; // the gradient of the result is fed in
  options.update.optimizer = Sgd{};
  options.storage = std::move(storage);
  options.storage.offload = std::move(patterns);
  TrainingGraph step = fold_views(make_training_graph(network, options));
  verify(step);
  return step;
}

struct Moment {
  std::string op;
  std::int64_t device = 0; ///< tensors besides parameters
  std::int64_t host = 0;

  friend bool operator==(const Moment&, const Moment&) = default;
};

void PrintTo(const Moment& moment, std::ostream* out) {
  *out << moment.op << " " << moment.device << " " << moment.host;
}

std::vector<Moment> moments(const TrainingGraph& step) {
  std::vector<Moment> result;
  const Liveness liveness = find_liveness(step);
  for (std::size_t i = 0; i < liveness.live.size(); ++i) {
    const LiveBytes& live = liveness.live[i];
    const auto of = [&](MemoryOwner owner) { return live[static_cast<std::size_t>(owner)]; };
    result.push_back({step.graph.op(OpId(i)).name,
                      (total(live) - of(MemoryOwner::parameters)) / kTensor,
                      of(MemoryOwner::offloaded_activations) / kTensor});
  }
  return result;
}

/// Besides parameters: x, dy = the gradient of the result (an input, there from the beginning),
/// results m0 s1 m2 s3 y, their gradients dm0 ds1 dm2 ds3 and those of the weights dw0 dw2 dw4.
TEST(Offload, memory_by_hand) {
  EXPECT_THAT(moments(step_of(chain(), {})),
              ElementsAre(Moment{"MatMul_0", 3, 0},              // x dy m0
                          Moment{"Sigmoid_1", 4, 0},             // x dy m0 s1
                          Moment{"MatMul_2", 4, 0},              // x dy s1 m2
                          Moment{"Sigmoid_3", 5, 0},             // x dy s1 m2 s3
                          Moment{"MatMul_4", 5, 0},              // x dy s1 s3 y
                          Moment{"MatMul_4.MatMulGradB", 6, 0},  // x dy s1 s3 y dw4
                          Moment{"MatMul_4.MatMulGradA", 7, 0},  // x dy s1 s3 y dw4 ds3
                          Moment{"Sigmoid_3.SigmoidGrad", 7, 0}, // x s1 s3 y dw4 ds3 dm2
                          Moment{"MatMul_2.MatMulGradB", 6, 0},  // x s1 y dw4 dm2 dw2
                          Moment{"MatMul_2.MatMulGradA", 7, 0},  // x s1 y dw4 dm2 dw2 ds1
                          Moment{"Sigmoid_1.SigmoidGrad", 7, 0}, // x s1 y dw4 dw2 ds1 dm0
                          Moment{"MatMul_0.MatMulGradB", 6, 0},  // x y dw4 dw2 dm0 dw0
                          Moment{"w0.SgdUpdate", 4, 0}, Moment{"w2.SgdUpdate", 3, 0},
                          Moment{"w4.SgdUpdate", 2, 0}));
  EXPECT_THAT(moments(step_of(chain(), {"*"})),
              ElementsAre(Moment{"MatMul_0", 3, 0},              // x dy m0
                          Moment{"x.Offload", 3, 1},             // x dy m0
                          Moment{"Sigmoid_1", 3, 1},             // dy m0 s1
                          Moment{"MatMul_2", 3, 1},              // dy s1 m2
                          Moment{"Sigmoid_1.Offload", 3, 2},     // dy s1 m2
                          Moment{"Sigmoid_3", 3, 2},             // dy m2 s3
                          Moment{"MatMul_4", 3, 2},              // dy s3 y
                          Moment{"Sigmoid_3.Offload", 3, 3},     // dy s3 y
                          Moment{"Sigmoid_3.Fetch", 3, 3},       // dy y s3
                          Moment{"MatMul_4.MatMulGradB", 4, 2},  // dy y s3 dw4
                          Moment{"MatMul_4.MatMulGradA", 5, 2},  // dy y s3 dw4 ds3
                          Moment{"Sigmoid_3.SigmoidGrad", 5, 2}, // y s3 dw4 ds3 dm2
                          Moment{"Sigmoid_1.Fetch", 4, 2},       // y dw4 dm2 s1
                          Moment{"MatMul_2.MatMulGradB", 5, 1},  // y dw4 dm2 s1 dw2
                          Moment{"MatMul_2.MatMulGradA", 6, 1},  // y dw4 dm2 s1 dw2 ds1
                          Moment{"Sigmoid_1.SigmoidGrad", 6, 1}, // y s1 dw4 dw2 ds1 dm0
                          Moment{"x.Fetch", 5, 1},               // y dw4 dw2 dm0 x
                          Moment{"MatMul_0.MatMulGradB", 6, 0},  // y dw4 dw2 dm0 x dw0
                          Moment{"w0.SgdUpdate", 4, 0}, Moment{"w2.SgdUpdate", 3, 0},
                          Moment{"w4.SgdUpdate", 2, 0}));
}

TEST(Offload, addresses_are_for_the_device) {
  const Liveness liveness = find_liveness(step_of(chain(), {"*"}));
  EXPECT_EQ(plan_addresses(liveness, 1).arena_bytes, 6 * kTensor + 4); // with the learning rate
}

TEST(Offload, patterns_choose_among_what_is_stored) {
  const TrainingGraph step = step_of(chain(), {"Sigmoid_*"});
  const test::HostTraffic traffic = test::host_traffic(step.graph);
  EXPECT_EQ(traffic.out, 2 * kTensor);
  EXPECT_EQ(traffic.in, 2 * kTensor);
  EXPECT_EQ(step.stored_bytes, 3 * kTensor); // wherever it waits
  EXPECT_EQ(find_op(step.graph, "Offload", Phase::loss), nullptr);
  EXPECT_EQ(count_ops(step.graph, "Offload", Phase::forward), 2);
  EXPECT_EQ(count_ops(step.graph, "Fetch", Phase::backward), 2);
}

TEST(Offload, what_no_gradient_reads_is_back_for_that_of_its_reader) {
  StorageOptions storage;
  storage.keep = {"MatMul_0"};
  const TrainingGraph step = step_of(chain(), {"MatMul_0"}, storage);
  const auto& ops = step.graph.operators();
  const auto fetch = std::ranges::find(ops, "MatMul_0.Fetch", &Operator::name);
  ASSERT_NE(fetch, ops.end());
  EXPECT_EQ(std::next(fetch)->name, "Sigmoid_1.SigmoidGrad");
}

TEST(Offload, refuses_patterns_of_nothing_stored) {
  // A result that no gradient reads, a parameter, the output of the step, and none at all.
  for (const char* pattern : {"MatMul_0", "w0", "MatMul_4", "nothing"}) {
    try {
      step_of(chain(), {"x", pattern});
      ADD_FAILURE() << pattern << " is taken";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("tiny.onnx"));
      EXPECT_THAT(error.what(),
                  HasSubstr(fmt::format("no stored tensor matches the pattern '{}' of 'offload'",
                                        pattern)));
    }
  }
}

TEST(Offload, outputs_stay) {
  TinyNetwork n;
  const TensorId product = n.op("MatMul", {n.input("x", {4, 4}), n.parameter("w", {4, 4})}, {4, 4});
  n.output(n.op("Sigmoid", {product}, {4, 4}));
  EXPECT_EQ(test::host_traffic(step_of(n.graph, {"*"}).graph).out, 64); // x
  EXPECT_THROW(step_of(n.graph, {"Sigmoid_1"}), InputError);
}

/// A cast that changes nothing has a nest of its own, which reads what came back.
TEST(Offload, views_are_made_of_what_came_back) {
  TinyNetwork n;
  const TensorId s = n.op("Sigmoid", {n.input("x", {4, 4})}, {4, 4});
  const TensorId same = n.op("Cast", {s}, {4, 4}, with("to", std::int64_t{1}));
  n.output(n.op("MatMul", {same, n.parameter("w", {4, 4})}, {4, 4}));
  const TrainingGraph step = step_of(n.graph, {"*"});
  const test::HostTraffic traffic = test::host_traffic(step.graph);
  EXPECT_EQ(traffic.out, 64);
  EXPECT_EQ(traffic.late_readers, 0);
}

TEST(Offload, copies_do_not_run_again) {
  const TrainingGraph step = step_of(chain(), {"*"});
  const Operator* out = find_op(step.graph, "Offload", Phase::forward);
  const Operator* in = find_op(step.graph, "Fetch", Phase::backward);
  ASSERT_TRUE(out && in);
  EXPECT_EQ(recompute_obstacle(step.graph, *out), "has moved its operand out of the device");
  EXPECT_NE(recompute_obstacle(step.graph, *in), "");
}

std::int64_t peak_of(const TrainingGraph& step) {
  const Liveness liveness = find_liveness(step);
  return total(liveness.live[liveness.peak]);
}

/// What is stored goes out once and comes back once, all but what stays on the device.
void check_network(const Graph& network, StorePolicy policy) {
  StorageOptions storage;
  storage.policy = policy;
  const TrainingGraph kept = step_of(network, {}, storage);
  const TrainingGraph step = step_of(network, {"*"}, storage);
  EXPECT_EQ(step.stored_bytes, kept.stored_bytes);
  std::int64_t moved = 0;
  for (std::size_t t = 0; t < step.graph.tensors().size(); ++t) {
    const Tensor& tensor = step.graph.tensors()[t];
    if (!lies_in_host(step.graph, TensorId(t)))
      continue;
    EXPECT_EQ(step.owner[t], MemoryOwner::offloaded_activations) << tensor.name;
    ASSERT_EQ(tensor.consumers.size(), 1U) << tensor.name;
    EXPECT_TRUE(is_fetch(step.graph.op(tensor.consumers.front()))) << tensor.name;
    moved += bytes_of(size_of(tensor));
  }
  const test::HostTraffic traffic = test::host_traffic(step.graph);
  EXPECT_EQ(traffic.out, moved);
  EXPECT_EQ(traffic.in, moved);
  EXPECT_EQ(traffic.late_readers, 0);
  EXPECT_GT(10 * moved, 9 * kept.stored_bytes);
  EXPECT_LE(peak_of(step), peak_of(kept));
}

TEST(Offload, networks) {
  for (const char* name : {"resnet18_cifar", "gpt2_nano", "lstm", "unet"}) {
    OnnxReadOptions reading;
    reading.batch = 2;
    const Graph network =
        read_onnx(std::string(MONET_SOURCE_DIR "/data/workload/") + name + ".onnx", reading);
    for (const StorePolicy policy : {StorePolicy::minimal, StorePolicy::pytorch_eager}) {
      SCOPED_TRACE(fmt::format("{} {}", name, policy == StorePolicy::minimal));
      check_network(network, policy);
    }
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet
