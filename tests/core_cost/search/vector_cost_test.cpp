#include "core_cost/cores.hpp"

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

// A table of 5 rows looked up 10 times: 10 elements pass, not 5.
TEST(VectorCost, SmallTableIsReadAgain) {
  CoreProblem problem = element_wise(10, {});
  problem.compute = ComputeKind::copy;
  problem.operands[1].axes[0] = {{}, 0, true};
  problem.operands[1].extents = {5};
  EXPECT_EQ(core_cost(problem, lanes4()).latency.value, 6); // 10 x 32 bits at 64, and 1 to begin
}

// An embedding of 6 tokens x 8 elements from a table of 100 x 8, and its gradient: 48 elements are
// read, or read and written back, beside the 48 of the other side.
TEST(VectorCost, EmbeddingAndItsGradient) {
  CoreProblem gather;
  gather.compute = ComputeKind::copy;
  gather.dims = {{"T", 6}, {"E", 8}};
  const AxisExpr any{{}, 0, true};
  gather.operands = {
      {AccessMode::write, MemoryOperand::O, {axis({{0, 1}}), axis({{1, 1}})}, {6, 8}, 32, 32},
      {AccessMode::read, MemoryOperand::I1, {any, axis({{1, 1}})}, {100, 8}, 32, 32},
      {AccessMode::read, MemoryOperand::I1, {axis({{0, 1}})}, {6}, 64, 64}};
  // 48 x 32 bits = 24 words in, 6 indices x 64 bits = 6 words in, 24 words out; reads take longest.
  const CoreCost forward = core_cost(gather, lanes4());
  EXPECT_EQ(forward.latency.value, 30 + 1);
  EXPECT_DOUBLE_EQ(forward.energy().value, (24 + 6 + 24) * 2.0);
  CoreProblem scatter = gather;
  scatter.compute = ComputeKind::vector;
  scatter.work.add = 1;
  scatter.operands[0].mode = AccessMode::read;
  scatter.operands[0].memory = MemoryOperand::I1;
  scatter.operands[1].mode = AccessMode::accumulate;
  scatter.operands[1].memory = MemoryOperand::O;
  // 24 words of dY, 24 of the rows and 6 indices in, 24 out; 48 additions on 4 lanes are 12 cycles.
  const CoreCost backward = core_cost(scatter, lanes4());
  EXPECT_EQ(backward.latency.value, 54 + 1);
  EXPECT_DOUBLE_EQ(backward.compute_energy.value, 48);
  EXPECT_DOUBLE_EQ(backward.memory_energy.value, (24 + 24 + 6 + 24) * 2.0);
}

// Adam on 64 weights of 32 bits: weight, gradient and two moments in (4 x 32 words), weight and
// moments out (3 x 32 words). 9 additions and products, a root and a division of 4 cycles: 16
// rounds of 17 cycles hide the 128 cycles of the read port. On 64 lanes there is one round, and
// memory is the limit.
TEST(VectorCost, AdamIsBoundByMemoryOnWideLanes) {
  CoreProblem adam = element_wise(64, {.add = 4, .multiply = 5, .divide = 1, .square_root = 1});
  const ProblemOperand written = adam.operands[0];
  const ProblemOperand read = adam.operands[1];
  adam.operands = {written, written, written, read, read, read, read};
  const CoreCost narrow = core_cost(adam, lanes4());
  EXPECT_EQ(narrow.latency.value, 16 * 17 + 1);
  EXPECT_DOUBLE_EQ(narrow.parts.stall, 0);
  EXPECT_DOUBLE_EQ(narrow.compute_energy.value, 64 * 11);
  EXPECT_DOUBLE_EQ(narrow.memory_energy.value, 7 * 32 * 2.0);
  Core wide = lanes4();
  wide.array[0].size = 64;
  const CoreCost bound = core_cost(adam, wide);
  EXPECT_DOUBLE_EQ(bound.parts.ideal_temporal, 17);
  EXPECT_EQ(bound.latency.value, 128 + 1);
}

// Softmax over 8 of 4 rows: the input is swept for the maximum and for the exponentials. 32 x (1 +
// 1 + 4 + 4) cycles on 4 lanes are 80; 2 x 16 words in and 16 out hide behind them.
TEST(VectorCost, SoftmaxSweepsItsInputTwice) {
  CoreProblem softmax =
      element_wise(32, {.add = 1, .divide = 1, .compare = 1, .transcendental = 1}, 2);
  const CoreCost cost = core_cost(softmax, lanes4());
  EXPECT_EQ(cost.latency.value, 80 + 1);
  EXPECT_DOUBLE_EQ(cost.compute_energy.value, 32 * 4);
  EXPECT_DOUBLE_EQ(cost.memory_energy.value, (32 + 16) * 2.0);
}

/// s[m] = sum over n of x[m, n], 32 bits with sums of 64.
CoreProblem row_sums(std::int64_t m, std::int64_t n) {
  CoreProblem problem;
  problem.compute = ComputeKind::vector;
  problem.dims = {{"M", m}, {"N", n}};
  problem.work.add = 1;
  problem.operands = {
      {AccessMode::write, MemoryOperand::O, {axis({{0, 1}})}, {m}, 32, 64},
      {AccessMode::read, MemoryOperand::I1, {axis({{0, 1}}), axis({{1, 1}})}, {m, n}, 32, 32}};
  return problem;
}

// 8 rows of 4: every lane has rows of its own. 32 elements in, 8 results out, each once.
TEST(VectorCost, ReductionWritesEveryResultOnce) {
  const CoreCost cost = core_cost(row_sums(8, 4), lanes4());
  EXPECT_DOUBLE_EQ(cost.parts.ideal_temporal, 8);
  EXPECT_DOUBLE_EQ(cost.compute_energy.value, 32);
  EXPECT_DOUBLE_EQ(cost.memory_energy.value, (16 + 4) * 2.0);
}

// One row of 32 on 4 lanes: 8 additions each, then 2 steps of a tree with 3 additions.
TEST(VectorCost, LanesThatShareASumAddUpInATree) {
  const CoreCost cost = core_cost(row_sums(1, 32), lanes4());
  EXPECT_DOUBLE_EQ(cost.parts.ideal_temporal, 8 + 2);
  EXPECT_DOUBLE_EQ(cost.compute_energy.value, 32 + 3);
  // Two rows: two lanes each, one step, one addition each.
  EXPECT_DOUBLE_EQ(core_cost(row_sums(2, 16), lanes4()).parts.ideal_temporal, 8 + 1);
  EXPECT_DOUBLE_EQ(core_cost(row_sums(2, 16), lanes4()).compute_energy.value, 32 + 2);
}

// A register of 64 bits per lane for sums, 0.5 pJ an access of 64 bits: 32 sums are read and
// written back, and 8 results of 32 bits leave for the memory: 4 accesses.
TEST(VectorCost, PartialSumsLiveInRegisters) {
  using enum MemoryOperand;
  using enum Direction;
  Core core = lanes4();
  core.memories.insert(core.memories.begin(),
                       memory("sums", 64, 0.5, {O}, {false},
                              {port(PortType::read, 64, 64, {use(O, tl), use(O, th)}),
                               port(PortType::write, 64, 64, {use(O, fl), use(O, fh)})}));
  const CoreCost cost = core_cost(row_sums(8, 4), core);
  EXPECT_DOUBLE_EQ(cost.levels[0].energy.value, (32 + 32 + 4) * 0.5);
  EXPECT_EQ(cost.levels[0].memory, "sums");
}

// One memory per lane: four ports side by side, four times the room.
TEST(VectorCost, InstancesWorkSideBySide) {
  Core core = lanes4();
  core.memories[0].serves = {false};
  EXPECT_EQ(core_cost(element_wise(16, {.add = 1}), core).latency.value, 4 + 1); // not 8 + 1
  core.memories[0].size = {256};
  EXPECT_NO_THROW(core_cost(element_wise(16, {.add = 1}), core)); // 512 bits in four times 256
  EXPECT_THROW(core_cost(element_wise(64, {.add = 1}), core), InfeasibleError);
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
        "core 'lanes4': operand 0 (O) needs 3200000 bits, but memory 'sram' holds 1048576");
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
