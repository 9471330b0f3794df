#include "cores.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace monet {
namespace {

using test::axis;
using test::memory;
using test::port;
using test::product;
using test::tpu_like;
using test::use;

/// 4 lanes, one memory of 64 bits per cycle each way at 2 pJ a word, 1 pJ per lane operation.
Core lanes4() {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core;
  core.name = "lanes4";
  core.kind = CoreKind::vector;
  core.mac_energy_pj = 1;
  core.array = {{"D1", 4}};
  core.memories.push_back(
      memory("sram", 1 << 20, 2, {I1, I2, O}, {true},
             {port(read, 64, 64, {use(I1, tl), use(I2, tl), use(O, tl), use(O, th)}),
              port(write, 64, 64, {use(I1, fh), use(I2, fh), use(O, fh), use(O, fl)})}));
  return core;
}

/// y[i] = f(x[i]), 32 bits each.
CoreProblem element_wise(std::int64_t n, VectorWork work, int passes = 1) {
  CoreProblem problem;
  problem.compute = ComputeKind::vector;
  problem.dims = {{"N", n}};
  problem.work = work;
  problem.operands = {{AccessMode::write, MemoryOperand::O, {axis({{0, 1}})}, {n}, 32, 32},
                      {AccessMode::read, MemoryOperand::I1, {axis({{0, 1}})}, {n}, 32, 32, passes}};
  return problem;
}

// 10 exponentials and additions on 4 lanes: 3 rounds x (1 + 4) = 15 cycles; 10 x 32 bits in = 5
// cycles of the read port. Fill 1. Energy 20 operations x 1 pJ, 5 words read and 5 written x 2 pJ.
TEST(VectorCost, BoundByLanes) {
  const CoreCost cost = core_cost(element_wise(10, {.add = 1, .transcendental = 1}), lanes4());
  EXPECT_EQ(cost.latency.value, 16);
  EXPECT_EQ(cost.ideal.value, 13); // ceil(10 x 5 / 4)
  EXPECT_DOUBLE_EQ(cost.compute_energy.value, 20);
  EXPECT_DOUBLE_EQ(cost.memory_energy.value, 20);
  EXPECT_EQ(cost.resident[0].value, 320);
}

// One addition: 3 rounds, but the port needs 5 cycles, and 10 when the input is swept twice.
TEST(VectorCost, BoundByPorts) {
  EXPECT_EQ(core_cost(element_wise(10, {.add = 1}), lanes4()).latency.value, 6);
  EXPECT_EQ(core_cost(element_wise(10, {.add = 1}, 2), lanes4()).latency.value, 11);
}

TEST(VectorCost, CopyPaysForMemoryOnly) {
  CoreProblem copy = element_wise(10, {});
  copy.compute = ComputeKind::copy;
  const CoreCost cost = core_cost(copy, lanes4());
  EXPECT_DOUBLE_EQ(cost.compute_energy.value, 0);
  EXPECT_DOUBLE_EQ(cost.memory_energy.value, 20);
  EXPECT_EQ(cost.latency.value, 6);
}

TEST(VectorCost, StreamedOperandCountsEveryPass) {
  CoreProblem problem = element_wise(1000, {.add = 1}, 2);
  problem.operands[1].offchip = true;
  const CoreCost cost = core_cost(problem, lanes4());
  EXPECT_EQ(cost.offchip[1].read.value, 2 * 1000 * 32);
  EXPECT_EQ(cost.offchip[0].write.value, 0);
  EXPECT_EQ(cost.resident[1].value, 256); // two slices of 4 lanes x 32 bits
}

// A table of 1000 rows of which 10 are looked up: 10 elements pass, all 1000 are resident.
TEST(VectorCost, LookupReadsOneElementPerIteration) {
  CoreProblem problem = element_wise(10, {});
  problem.compute = ComputeKind::copy;
  problem.operands[1].axes[0] = {{}, 0, true};
  problem.operands[1].extents = {1000};
  const CoreCost cost = core_cost(problem, lanes4());
  EXPECT_EQ(cost.latency.value, 6);
  EXPECT_EQ(cost.resident[1].value, 32000);
}

// 10 values are added into 1000 places: the zeros of the others leave the core too.
TEST(VectorCost, StreamedScatterWritesItsZeros) {
  CoreProblem problem = element_wise(10, {.add = 1});
  problem.operands[0].mode = AccessMode::accumulate;
  problem.operands[0].axes[0] = {{}, 0, true};
  problem.operands[0].extents = {1000};
  problem.operands[0].offchip = true;
  const CoreCost cost = core_cost(problem, lanes4());
  EXPECT_EQ(cost.offchip[0].read.value, 10 * 32);
  EXPECT_EQ(cost.offchip[0].write.value, 1000 * 32);
}

TEST(VectorCost, TooLargeOperandIsInfeasible) {
  try {
    core_cost(element_wise(100'000, {.add = 1}), lanes4());
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(
        error.what(),
        "core 'lanes4': operand 0 (O) takes 3200000 bits, but memory 'sram' holds 1048576");
  }
}

TEST(CanRun, FollowsKindAndLists) {
  Core array = tpu_like(false);
  const Core vector = lanes4();
  Core pooling = lanes4();
  pooling.kind = CoreKind::pooling;
  EXPECT_TRUE(can_run(array, ComputeKind::mac, "Conv"));
  EXPECT_FALSE(can_run(array, ComputeKind::vector, "Relu"));
  EXPECT_FALSE(can_run(vector, ComputeKind::mac, "Conv"));
  EXPECT_TRUE(can_run(vector, ComputeKind::copy, "Transpose"));
  EXPECT_TRUE(can_run(vector, ComputeKind::vector, "MaxPool"));
  EXPECT_TRUE(can_run(pooling, ComputeKind::vector, "MaxPoolGrad"));
  EXPECT_TRUE(can_run(pooling, ComputeKind::vector, "GlobalAveragePool"));
  EXPECT_FALSE(can_run(pooling, ComputeKind::vector, "Relu"));
  array.runs_vector_operators = true;
  EXPECT_TRUE(can_run(array, ComputeKind::vector, "Relu"));
  array.operator_types = {"Gemm"};
  EXPECT_TRUE(can_run(array, ComputeKind::mac, "Gemm"));
  EXPECT_FALSE(can_run(array, ComputeKind::mac, "Conv"));
  Core offchip = lanes4();
  offchip.kind = CoreKind::offchip;
  EXPECT_FALSE(can_run(offchip, ComputeKind::vector, "Relu"));
}

TEST(Signature, TellsApartWhatCostsDifferently) {
  const CoreProblem base = product(8, 8, 8);
  EXPECT_EQ(signature(base), signature(product(8, 8, 8)));
  EXPECT_NE(signature(base), signature(product(8, 8, 16)));
  CoreProblem streamed = base;
  streamed.operands[2].offchip = true;
  EXPECT_NE(signature(base), signature(streamed));
  Core renamed = tpu_like(true);
  renamed.name = "other";
  EXPECT_EQ(signature(renamed), signature(tpu_like(true)));
  renamed.memories[2].write_energy_pj += 1;
  EXPECT_NE(signature(renamed), signature(tpu_like(true)));
}

TEST(CoreCostCache, TheOffchipRateCountsOnlyWhereSomethingStreams) {
  CoreCostCache cache;
  CoreProblem problem = product(8, 8, 8);
  CoreCostOptions slow;
  slow.offchip.read_bits_per_cycle = 1;
  cache.get(problem, tpu_like(false), {});
  cache.get(problem, tpu_like(false), slow);
  EXPECT_EQ(cache.solved(), 1U);
  problem.operands[1].offchip = true;
  cache.get(problem, tpu_like(false), {});
  cache.get(problem, tpu_like(false), slow);
  EXPECT_EQ(cache.solved(), 3U);
}

TEST(CoreCostCache, SolvesOnceAndKeepsFailures) {
  CoreCostCache cache;
  const Core core = tpu_like(true);
  std::vector<std::thread> threads;
  std::vector<const CoreCost*> found(4);
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] { found[i] = &cache.get(product(64, 64, 64), core, {}); });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (const CoreCost* cost : found)
    EXPECT_EQ(cost, found[0]);
  EXPECT_EQ(cache.solved(), 1U);
  EXPECT_EQ(cache.asked(), 4U);
  EXPECT_EQ(found[0]->latency, core_cost(product(64, 64, 64), core).latency);
  Core small = lanes4();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(cache.get(element_wise(100'000, {.add = 1}), small, {}), InfeasibleError);
  }
}

} // namespace
} // namespace monet
