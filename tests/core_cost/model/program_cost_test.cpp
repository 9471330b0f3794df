// Cycles of processors' instructions and of kernels, by hand.
#include "core_cost/cores.hpp"
#include "core_cost/search/mapping_search.hpp"
#include "hardware/shared/core_program.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

namespace monet {
namespace {

using test::convolution;
using test::ConvProduct;
using test::ConvSizes;
using test::memory;
using test::port;
using test::product;
using test::use;

/// Two processors of two lanes, eight sums in the registers of each lane, one memory whose ports
/// never wait.
Core two_processors() {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core;
  core.name = "two_processors";
  core.array = {{"D1", 2}, {"D2", 2}};
  core.dataflow = {{{"K", 2}}, {{"D", 2}}};
  core.memories.push_back(
      memory("registers", 128, 1, {O}, {false, false},
             {port(read, 16, 16, {use(O, tl)}), port(read, 16, 16, {use(O, th)}),
              port(write, 16, 16, {use(O, fh)}), port(write, 16, 16, {use(O, fl)})}));
  core.memories.push_back(
      memory("sram", 1 << 20, 1, {I1, I2, O}, {true, true},
             {port(read, 8, 1 << 12, {use(I1, tl), use(I2, tl), use(O, tl), use(O, th)}),
              port(write, 8, 1 << 12, {use(I1, fh), use(I2, fh), use(O, fh), use(O, fl)})}));
  return core;
}

Core with_issue(IssueCosts issue, Core core = two_processors()) {
  core.program = std::make_shared<const CoreProgram>(CoreProgram{issue, {}});
  return core;
}

CoreCostOptions on_dataflow(bool instructions = true) {
  CoreCostOptions options;
  options.fixed_dataflow = true;
  options.model.instruction_costs = instructions;
  return options;
}

// O[4,6] += I[4,10] W[10,6] on 2 x 2 lanes: each lane has 2 x 3 sums of 10 terms, 60 iterations.
// Three cycles each are 180, ten for each of 6 sums 60: 240 from the first product to the last.
TEST(ProgramCost, InstructionsOfAProductByHand) {
  const CoreProblem problem = product(10, 4, 6);
  const CoreCost plain = core_cost(problem, two_processors(), on_dataflow());
  EXPECT_EQ(plain.parts.ideal_temporal, 60);
  EXPECT_EQ(plain.parts.instructions, 0);
  const CoreCost cost = core_cost(problem, with_issue({3, 10, 0, 0}), on_dataflow());
  EXPECT_EQ(cost.parts.ideal_temporal, 60);
  EXPECT_EQ(cost.parts.instructions, 240 - 60);
  EXPECT_EQ(cost.parts.stall, 0);
  EXPECT_EQ(cost.latency.value, 240 + cost.parts.onload + cost.parts.offload);
  EXPECT_EQ(cost.energy().value, plain.energy().value);
  EXPECT_LE(cost.latency_bound, cost.parts.total());
  EXPECT_GE(cost.latency_bound, 180);
}

// What a core does without the keys, and what the reference knows.
TEST(ProgramCost, CanBeLeftOut) {
  const CoreProblem problem = product(10, 4, 6);
  const Core core = with_issue({3, 10, 5, 5});
  const CoreCost plain = core_cost(problem, two_processors(), on_dataflow());
  EXPECT_EQ(core_cost(problem, core, on_dataflow(false)).parts.total(), plain.parts.total());
  CoreCostOptions zigzag;
  zigzag.model = ModelChoices::zigzag_3_8();
  EXPECT_EQ(core_cost(problem, core, zigzag).parts.instructions, 0);
  EXPECT_NE(signature(core), signature(two_processors()));
  EXPECT_NE(signature(core), signature(with_issue({3, 10, 5, 6})));
}

// Data move while instructions are issued: ports that would hold one cycle in two up hold none.
TEST(ProgramCost, InstructionsHideStalls) {
  Core narrow = two_processors();
  for (MemoryPort& one : narrow.memories[1].ports) {
    one.bandwidth_min = 8;
    one.bandwidth_max = 16;
  }
  const CoreProblem problem = product(10, 4, 6);
  const CoreCost plain = core_cost(problem, narrow, on_dataflow());
  ASSERT_GT(plain.parts.stall, 0);
  const CoreCost some = core_cost(problem, with_issue({1.25, 0, 0, 0}, narrow), on_dataflow());
  EXPECT_EQ(some.parts.instructions, 15);
  EXPECT_EQ(some.parts.stall, std::max(0.0, plain.parts.stall - 15));
  EXPECT_EQ(core_cost(problem, with_issue({100, 0, 0, 0}, narrow), on_dataflow()).parts.stall, 0);
}

// A 3x3 convolution of 2 channels to 4 x 5 positions, 8 results at each: 4 x 5 x 2 x 9 = 360
// elements are copied, 4 lanes share 7 cycles each.
TEST(ProgramCost, WindowsAreUnfolded) {
  ConvSizes sizes{.k = 8, .ox = 5, .oy = 4, .c = 2, .fx = 3, .fy = 3};
  sizes.ix = 7;
  sizes.iy = 6;
  const CoreProblem windows = convolution(sizes, ConvProduct::forward);
  const Core core = with_issue({1, 0, 7, 0});
  EXPECT_DOUBLE_EQ(core_cost(windows, core).parts.instructions, 360 * 7 / 4.0);
  // One tap: nothing overlaps, with a stride or without.
  ConvSizes point{.k = 8, .ox = 5, .oy = 4, .c = 2, .fx = 1, .fy = 1, .stride = 2};
  point.ix = 9;
  point.iy = 7;
  EXPECT_EQ(core_cost(convolution(point, ConvProduct::forward), core).parts.instructions, 0);
  // dW reads the same windows.
  EXPECT_DOUBLE_EQ(
      core_cost(convolution(sizes, ConvProduct::weight_gradient), core).parts.instructions,
      360 * 7 / 4.0);
}

// What fits comes and goes in one transfer each, whether it stays or passes by.
TEST(ProgramCost, TransfersAreProgrammed) {
  CoreProblem problem = product(10, 4, 6);
  const auto setups = [&] {
    return core_cost(problem, with_issue({2, 0, 0, 11}), on_dataflow()).parts.total() -
           core_cost(problem, with_issue({2, 0, 0, 0}), on_dataflow()).parts.total();
  };
  EXPECT_EQ(setups(), 3 * 11);
  for (ProblemOperand& operand : problem.operands)
    operand.offchip = true;
  EXPECT_EQ(setups(), 3 * 11);
}

// Operands of 32 Kibit each, 64 of the sums, where 16 Kibit are all that there is.
TEST(ProgramCost, SmallMemoriesTakeMoreTransfers) {
  CoreProblem problem = product(64, 64, 64);
  for (ProblemOperand& operand : problem.operands)
    operand.offchip = true;
  const auto setups = [&](const Core& core) {
    return (core_cost(problem, with_issue({2, 0, 0, 1000}, core), on_dataflow()).parts.total() -
            core_cost(problem, with_issue({2, 0, 0, 0}, core), on_dataflow()).parts.total()) /
           1000;
  };
  Core small = two_processors();
  small.memories[1].size = {1 << 14};
  EXPECT_NEAR(setups(two_processors()), 3, 0.1);
  EXPECT_GT(setups(small), 5);
}

/// 4 units of 2 x 2 multipliers on one memory.
Core four_units(double fill, double sustained, double host) {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core;
  core.name = "four_units";
  core.array = {{"D1", 4}, {"D2", 2}, {"D3", 2}};
  core.memories.push_back(memory("sram", 1 << 26, 1, {I1, I2, O}, {true, true, true},
                                 {port(read_write, 8, 1 << 16,
                                       {use(I1, tl), use(I2, tl), use(O, tl), use(O, th),
                                        use(I1, fh), use(I2, fh), use(O, fh), use(O, fl)})}));
  KernelCosts kernels;
  kernels.waves.units = 4;
  kernels.waves.tiles[0] = {16, 8, 1};
  kernels.waves.tiles[1] = {8, 8, 0.5};
  kernels.waves.tile_count = 2;
  kernels.waves.fill = fill;
  kernels.sustained = sustained;
  kernels.host_cycles = host;
  core.program = std::make_shared<const CoreProgram>(CoreProgram{{}, kernels});
  return core;
}

// 70 x 20 results are 5 x 3 tiles, four waves of 4 units. A tile takes 30 + 2 terms of 128
// products on 4 multipliers: 4 x 32 x 32 = 4,096 cycles, at 80 % 5,120; and 100 of the host.
TEST(ProgramCost, WavesOfAProductByHand) {
  const CoreCost cost = core_cost(product(30, 70, 20), four_units(2, 0.8, 100));
  EXPECT_DOUBLE_EQ(cost.parts.ideal_temporal + cost.parts.instructions, 5120 + 100);
  EXPECT_LE(cost.latency_bound, cost.parts.total());
}

// Rows of a convolution are its positions, columns its channels, terms its taps: 4 x 3 x 2
// positions and 8 channels are 2 tiles, cut in two along 18 terms. 9 terms of 128 products on 4
// multipliers are 288 cycles.
TEST(ProgramCost, WavesOfAConvolution) {
  ConvSizes sizes{.b = 2, .k = 8, .ox = 4, .oy = 3, .c = 2, .fx = 3, .fy = 3};
  sizes.ix = 6;
  sizes.iy = 5;
  const CoreCost cost = core_cost(convolution(sizes, ConvProduct::forward), four_units(0, 1, 0));
  EXPECT_DOUBLE_EQ(cost.parts.ideal_temporal + cost.parts.instructions, 288);
}

// A memory inside each unit, of which 8 bits a cycle would hold its four multipliers up.
TEST(ProgramCost, MemoriesInsideAUnitMakeNobodyWait) {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core = four_units(0, 1, 0);
  core.memories[0].ports.clear(); // a port for each, so that only the inner one is ever full
  for (const PortUse& one : {use(I1, tl), use(I2, tl), use(O, tl), use(O, th)})
    core.memories[0].ports.push_back(port(read, 8, 1 << 16, {one}));
  for (const PortUse& one : {use(I1, fh), use(I2, fh), use(O, fh), use(O, fl)})
    core.memories[0].ports.push_back(port(write, 8, 1 << 16, {one}));
  core.memories.insert(
      core.memories.begin(),
      memory("inner", 1 << 12, 1, {I1, I2}, {false, true, true},
             {port(read_write, 8, 8, {use(I1, tl), use(I1, fh), use(I2, tl), use(I2, fh)})}));
  const CoreProblem problem = product(32, 64, 32);
  const CoreCost units = core_cost(problem, core);
  EXPECT_EQ(units.parts.stall, 0);
  EXPECT_LE(units.parts.onload, 2); // through the outer memory alone
  core.program.reset();
  EXPECT_GT(core_cost(problem, core).parts.stall, 0);
}

// Windows of two with a stride of two do not overlap, whether the last one is cut off or not.
TEST(ProgramCost, WindowsThatDoNotOverlapAreNotUnfolded) {
  for (const std::int64_t width : {8, 7}) {
    ConvSizes sizes{.k = 2, .ox = 4, .oy = 1, .c = 3, .fx = 2, .fy = 1, .stride = 2};
    sizes.ix = width;
    EXPECT_EQ(core_cost(convolution(sizes, ConvProduct::forward), with_issue({1, 0, 7, 0}))
                  .parts.instructions,
              0)
        << width;
  }
}

TEST(ProgramCost, CyclesBeyondCountingAreRefused) {
  EXPECT_THROW(core_cost(product(1 << 10, 1 << 10, 1 << 10), with_issue({1e12, 0, 0, 0})),
               InfeasibleError);
}

TEST(ProgramCost, MultiplicationsOfWavesByHand) {
  TileWaves waves;
  EXPECT_EQ(worked_multiplications(waves, {7, 5, 3, 2}), 210);
  waves.units = 10;
  waves.tiles[0] = {100, 100, 1};
  waves.tile_count = 1;
  waves.fill = 4;
  // 12 tiles in two waves of ten.
  EXPECT_EQ(worked_multiplications(waves, {300, 400, 60, 1}), 10 * 2 * 64 * 1e4);
  EXPECT_EQ(worked_multiplications(waves, {300, 200, 60, 2}), 10 * 2 * 64 * 1e4);
  // Two tiles: sums cut in four, for eight units.
  EXPECT_EQ(worked_multiplications(waves, {200, 100, 80, 1}), 10 * 24 * 1e4);
}

// y[i] = x[i] + 1, 10 elements on 4 lanes: 3 rounds of one cycle; 20 accesses of a lane each are 5.
TEST(ProgramCost, LanesIssueTheirAccesses) {
  CoreProblem problem;
  problem.compute = ComputeKind::vector;
  problem.dims = {{"N", 10}};
  problem.work = {.add = 1};
  problem.operands = {{AccessMode::write, MemoryOperand::O, {test::axis({{0, 1}})}, {10}, 16, 16},
                      {AccessMode::read, MemoryOperand::I1, {test::axis({{0, 1}})}, {10}, 16, 16}};
  const CoreCost plain = core_cost(problem, two_processors());
  const CoreCost issued = core_cost(problem, with_issue({2, 3, 0, 0}));
  EXPECT_DOUBLE_EQ(issued.parts.instructions, 5);
  EXPECT_DOUBLE_EQ(issued.parts.total(), plain.parts.total() + 5 - plain.parts.stall);
  const CoreCost kernel = core_cost(problem, four_units(0, 1, 33));
  EXPECT_DOUBLE_EQ(kernel.parts.instructions, 33);
}

} // namespace
} // namespace monet
