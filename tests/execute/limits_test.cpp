// What executing may take: memory known before anything is allocated, and an end when asked.
#include "execute/kernels/kernel.hpp"
#include "execute/walk/product.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/execute/execute.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace monet::test {
namespace {

/// x [4, 8] -> Relu -> Relu.
TrainingGraph two_relus() {
  TinyNetwork net;
  const TensorId relu = net.op("Relu", {net.input("x", {4, 8})}, {4, 8});
  net.output(net.op("Relu", {relu}, {4, 8}));
  return make_inference_graph(net.graph, {});
}

TEST(MemoryLimit, CountsTensorsThatAreThereAtOnce) {
  const TrainingGraph step = two_relus();
  // Each tensor has 32 elements of 8 bytes. All three are kept, or the first result is freed after
  // its reader, by which time all were there.
  EXPECT_EQ(execution_bytes(step.graph, {}), 3 * 256);
  EXPECT_EQ(execution_bytes(step.graph, {.keep_all = false}), 3 * 256);
  EXPECT_EQ(execution_bytes(step.graph, {.arithmetic = Arithmetic::fp32}), 3 * 128);
}

TEST(MemoryLimit, FreedTensorsCountNoMore) {
  TinyNetwork net;
  TensorId last = net.input("x", {4, 8});
  for (int i = 0; i < 5; ++i)
    last = net.op("Relu", {last}, {4, 8});
  net.output(last);
  const TrainingGraph step = make_inference_graph(net.graph, {});
  EXPECT_EQ(execution_bytes(step.graph, {}), 6 * 256);
  EXPECT_EQ(execution_bytes(step.graph, {.keep_all = false}), 3 * 256); // the input stays
}

TEST(MemoryLimit, ProductsCopyTheirOperands) {
  TinyNetwork net;
  net.output(net.op("MatMul", {net.input("a", {4, 8}), net.input("b", {8, 2})}, {4, 2}));
  const TrainingGraph step = make_inference_graph(net.graph, {});
  EXPECT_EQ(execution_bytes(step.graph, {}), 2 * 8 * (32 + 16 + 8));
}

TEST(MemoryLimit, SoftmaxGathersRows) {
  TinyNetwork net;
  net.output(net.op("Softmax", {net.input("x", {4, 8})}, {4, 8}));
  const TrainingGraph step = make_inference_graph(net.graph, {});
  // Of 8 elements of both tensors: the number, an integer, the address and the distance.
  EXPECT_EQ(execution_bytes(step.graph, {}), 2 * 256 + 2 * 8 * (8 + 3 * 8));
}

TEST(MemoryLimit, BothSidesOfIt) {
  const TrainingGraph step = two_relus();
  Execution enough(step.graph, {.memory_limit_bytes = 768});
  fill(enough, step, 0);
  EXPECT_NO_THROW(enough.run());
  try {
    const Execution refused(step.graph, {.memory_limit_bytes = 767});
    FAIL() << "took more memory than allowed";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("needs 768 bytes"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("is 767 bytes"), std::string::npos) << error.what();
  }
}

TEST(MemoryLimit, SizesBeyond64BitsAreRefusedToo) {
  TinyNetwork net;
  const std::vector<std::int64_t> huge{std::int64_t{1} << 31, std::int64_t{1} << 31};
  net.output(net.op("Relu", {net.input("x", huge)}, huge));
  const TrainingGraph step = make_inference_graph(net.graph, {});
  EXPECT_THROW(Execution(step.graph, {.memory_limit_bytes = std::int64_t{1} << 60}),
               InfeasibleError);
}

TEST(ExecutionStops, BeforeAnOperator) {
  const TrainingGraph step = two_relus();
  std::atomic<bool> stop{false};
  const StopScope scope(StopRequest{&stop});
  Execution execution(step.graph);
  fill(execution, step, 0);
  EXPECT_NO_THROW(execution.run());
  stop = true;
  EXPECT_THROW(execution.run(), Stopped);
}

TEST(ExecutionStops, WhileNumbersAreMade) {
  const TrainingGraph step = two_relus();
  const std::atomic<bool> stop{true};
  Execution execution(step.graph);
  const StopScope scope(StopRequest{&stop});
  EXPECT_THROW(fill(execution, step, 0), Stopped);
}

/// One operator of each way in which kernels walk.
TEST(ExecutionStops, InsideKernels) {
  TinyNetwork net;
  const TensorId a = net.input("a", {4, 8});
  const TensorId b = net.input("b", {8, 2});
  const TensorId image = net.input("image", {1, 2, 4, 4});
  net.output(net.op("MatMul", {a, b}, {4, 2}));
  net.output(net.op("Relu", {a}, {4, 8}));
  net.output(net.op("Softmax", {a}, {4, 8}));
  net.output(net.op("Transpose", {a}, {8, 4}));
  net.output(net.op("AveragePool", {image}, {1, 2, 2, 2},
                    {{"kernel_shape", std::vector<std::int64_t>{3, 3}}}));
  const std::atomic<bool> stop{true};
  for (const Operator& op : net.graph.operators()) {
    TensorStore<double> store(net.graph);
    for (std::size_t i = 0; i < net.graph.tensors().size(); ++i)
      store.allocate(TensorId(i));
    KernelContext<double> goes(store, op, {});
    EXPECT_NO_THROW(find_kernel(op)->fp64(goes)) << op.op_type.name();
    KernelContext<double> stops(store, op, {});
    const StopScope scope(StopRequest{&stop});
    EXPECT_THROW(find_kernel(op)->fp64(stops), Stopped) << op.op_type.name();
  }
}

TEST(ProductNumbers, AsManyAsElements) {
  TinyNetwork net;
  net.op("MatMul", {net.input("a", {4, 8}), net.input("b", {8, 2})}, {4, 2});
  const LoopNest& nest = net.graph.operators().front().nest;
  std::vector<double> out(8);
  const std::vector<double> left(32);
  EXPECT_NO_THROW(multiply_accumulate<double>(net.graph, nest, out, left, std::vector<double>(16)));
  EXPECT_THROW(multiply_accumulate<double>(net.graph, nest, out, left, std::vector<double>(15)),
               InternalError);
  EXPECT_THROW(multiply_accumulate<double>(net.graph, nest, out, left, {}), InternalError);
}

} // namespace
} // namespace monet::test
