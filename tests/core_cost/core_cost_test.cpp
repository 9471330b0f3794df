#include "core_cost/cores.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

namespace monet {
namespace {

using test::axis;
using test::convolution;
using test::ConvProduct;
using test::memory;
using test::port;
using test::product;
using test::tpu_like;
using test::use;

/// 2x2 MACs (K on D1, C on D2), one 32-bit output register per MAC and one memory for everything.
Core two_by_two() {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core;
  core.name = "two_by_two";
  core.mac_energy_pj = 0.5;
  core.array = {{"D1", 2}, {"D2", 2}};
  core.dataflow = {{{"K", 2}}, {{"C", 2}}};
  core.memories.push_back(
      memory("register", 32, 1, {O}, {false, false},
             {port(read, 16, 16, {use(O, tl)}), port(read, 16, 16, {use(O, th)}),
              port(write, 16, 16, {use(O, fh)}), port(write, 16, 16, {use(O, fl)})}));
  core.memories.push_back(
      memory("sram", 1024, 10, {I1, I2, O}, {true, true},
             {port(read, 16, 16, {use(I1, tl), use(I2, tl), use(O, tl), use(O, th)}),
              port(write, 16, 16, {use(I1, fh), use(I2, fh), use(O, fh), use(O, fl)})}));
  return core;
}

// O[D,K] += I[D,C] * W[C,K] with all sizes 2, 8-bit data and 16-bit partial sums: K and C fill the
// array, D=2 is the only temporal loop, so there is one mapping.
//   I: 2 values a cycle, 16 bits = 1 word, 2 cycles                         2 words x 10 pJ = 20
//   W: 4 values once (D does not touch it), 32 bits = 2 words               2 words x 10 pJ = 20
//   O register: 2 elements of 16 bits fit, so D is inside. 2 cycles x 4 registers = 8 partial sums
//   written; no loop in time adds to them, so none is read back (ZigZag reads 8); then each of 4
//   registers sends its 2 final elements of 8 bits as 1 word up: 8 + 4 words x 1 pJ = 12
//   O sram: both C lanes are added on the way: 4 elements of 8 bits = 2 words           2 words x
//   10 pJ = 20 MACs: 8 x 0.5 = 4
// Cycles: 2 of D. The read port needs 1 word a cycle and has 1: no stall. At the end the register
// sends 1 word while the sram takes 2 words, of which 1 hides behind the computing: offload 1.
// Total 3.
TEST(CoreCost, TwoByTwoProductByHand) {
  const CoreCost cost = core_cost(product(2, 2, 2), two_by_two());
  EXPECT_EQ(cost.latency.value, 3);
  EXPECT_EQ(cost.ideal.value, 2);
  EXPECT_DOUBLE_EQ(cost.parts.ideal_temporal, 2);
  EXPECT_DOUBLE_EQ(cost.parts.stall, 0);
  EXPECT_DOUBLE_EQ(cost.parts.onload, 0);
  EXPECT_DOUBLE_EQ(cost.parts.offload, 1);
  EXPECT_DOUBLE_EQ(cost.spatial_utilisation, 1);
  EXPECT_DOUBLE_EQ(cost.compute_energy.value, 4);
  EXPECT_DOUBLE_EQ(cost.memory_energy.value, 72);
  ASSERT_EQ(cost.levels.size(), 4U); // O: register, sram; I: sram; W: sram
  EXPECT_DOUBLE_EQ(cost.levels[0].energy.value, 12);
  for (std::size_t l = 1; l < 4; ++l)
    EXPECT_DOUBLE_EQ(cost.levels[l].energy.value, 20) << l;
  const auto& written = cost.levels[0].accesses;
  EXPECT_EQ(written[static_cast<std::size_t>(Direction::fl)], 8);
  EXPECT_EQ(written[static_cast<std::size_t>(Direction::tl)], 0);
  EXPECT_EQ(written[static_cast<std::size_t>(Direction::th)], 4);
  EXPECT_EQ(written[static_cast<std::size_t>(Direction::fh)], 0);

  CoreCostOptions as_zigzag;
  as_zigzag.model = ModelChoices::zigzag_3_8();
  const CoreCost reads = core_cost(product(2, 2, 2), two_by_two(), as_zigzag);
  EXPECT_EQ(reads.latency.value, 3);
  EXPECT_DOUBLE_EQ(reads.memory_energy.value, 80);
  EXPECT_DOUBLE_EQ(reads.levels[0].energy.value, 20);
  EXPECT_EQ(reads.levels[0].accesses[static_cast<std::size_t>(Direction::tl)], 8);
}

// Half the port width: each cycle's I word now takes 2 cycles of a 1-cycle window, once per cycle
// but the first.
TEST(CoreCost, NarrowPortStallsByHand) {
  Core core = two_by_two();
  core.memories[1].ports[0].bandwidth_max = 8;
  core.memories[1].ports[0].bandwidth_min = 8;
  EXPECT_DOUBLE_EQ(core_cost(product(2, 2, 2), core).parts.stall, 1);
}

// Reference figures: ZigZag 3.8.5, its tpu_like example, latency objective.
TEST(CoreCost, FullyConnectedLayerOfZigZag) {
  for (const auto& [lpf, mappings] : {std::pair{4, 24}, std::pair{6, 720}}) {
    CoreCostOptions options;
    options.lpf_limit = lpf;
    options.fixed_dataflow = true;
    options.model = ModelChoices::zigzag_3_8();
    const CoreCost cost = core_cost(product(768, 128, 3072), tpu_like(true), options);
    EXPECT_EQ(cost.energy().value, 322551656.44799995);
    EXPECT_EQ(cost.latency.value, 356353);
    EXPECT_EQ(cost.compute_energy.value, 12079595.52);
    EXPECT_EQ(cost.levels[0].energy.value, 12947816.447999999); // O in rf_2B
    EXPECT_EQ(cost.levels[1].energy.value, 1220444.16);         // O in sram_2MB
    EXPECT_EQ(cost.levels[2].energy.value, 36864000);           // O in dram
    EXPECT_EQ(cost.effort.space, mappings);
    EXPECT_EQ(static_cast<double>(cost.effort.visited) + cost.effort.pruned, mappings);
    // C innermost: partial sums stay in their register.
    EXPECT_EQ(cost.temporal.order[0].dim, 0U);
  }
}

TEST(CoreCost, FirstConvolutionOfResNet18OfZigZag) {
  CoreProblem problem = convolution({.k = 64,
                                     .ox = 112,
                                     .oy = 112,
                                     .c = 3,
                                     .fx = 7,
                                     .fy = 7,
                                     .stride = 2,
                                     .padding = 3,
                                     .ix = 224,
                                     .iy = 224},
                                    ConvProduct::forward);
  CoreCostOptions options;
  options.fixed_dataflow = true;
  options.model = ModelChoices::zigzag_3_8();
  const CoreCost cost = core_cost(problem, tpu_like(true), options);
  EXPECT_EQ(cost.energy().value, 128899782.59200001);
  EXPECT_EQ(cost.parts.total(), 1246967);
  EXPECT_EQ(cost.parts.ideal_temporal, 1229312);
  EXPECT_EQ(cost.parts.stall, 0);
  EXPECT_EQ(cost.parts.onload, 17653);
  EXPECT_EQ(cost.parts.offload, 2);
}

TEST(CoreCost, FreeUnrollingFillsTheArrayThatTheDataflowLeavesIdle) {
  const CoreProblem problem = convolution({.b = 4,
                                           .k = 64,
                                           .ox = 32,
                                           .oy = 32,
                                           .c = 3,
                                           .fx = 3,
                                           .fy = 3,
                                           .padding = 1,
                                           .ix = 32,
                                           .iy = 32},
                                          ConvProduct::input_gradient);
  CoreCostOptions options;
  options.fixed_dataflow = true;
  const CoreCost fixed = core_cost(problem, tpu_like(true), options);
  EXPECT_DOUBLE_EQ(fixed.spatial_utilisation, 3.0 / 32); // C = 3 of 32 lanes
  const CoreCost free = core_cost(problem, tpu_like(true));
  EXPECT_DOUBLE_EQ(free.spatial_utilisation, 1);
  EXPECT_LT(free.latency, fixed.latency);
}

/// Every way to put up to two loops, each as wide as it fits, on each of two array dims.
double min_over_unrollings(const CoreProblem& problem, Core core, Objective objective) {
  std::vector<std::vector<Unrolling>> one_dim{{}};
  for (const LoopDim& a : problem.dims) {
    if (a.size == 1)
      continue;
    one_dim.push_back({{a.name, 1000}});
    for (const LoopDim& b : problem.dims) {
      if (a.name != b.name && b.size > 1)
        one_dim.push_back({{a.name, 1000}, {b.name, 1000}});
    }
  }
  CoreCostOptions options;
  options.objective = objective;
  options.fixed_dataflow = true;
  double least = HUGE_VAL;
  for (const auto& first : one_dim) {
    for (const auto& second : one_dim) {
      core.dataflow = {first, second};
      if (first.empty() && second.empty())
        core.dataflow = {{{"none", 1}}, {}};
      const CoreCost cost = core_cost(problem, core, options);
      least = std::min(least, merit(objective, cost.parts.total(), cost.energy().value).first);
    }
  }
  return least;
}

TEST(CoreCost, ThoroughSearchFindsTheBestUnrolling) {
  for (const CoreProblem& problem :
       {product(6, 5, 7), product(3, 8, 2), product(16, 1, 9),
        convolution({.k = 3, .ox = 4, .c = 2, .fx = 3, .ix = 6}, ConvProduct::forward)}) {
    for (const Objective objective : {Objective::latency, Objective::energy, Objective::edp}) {
      Core core = tpu_like(true);
      core.array = {{"D1", 4}, {"D2", 3}};
      CoreCostOptions options;
      options.objective = objective;
      options.free_unrollings = 10000;
      const CoreCost cost = core_cost(problem, core, options);
      const double found = merit(objective, cost.parts.total(), cost.energy().value).first;
      EXPECT_LE(found, min_over_unrollings(problem, core, objective));
      EXPECT_LE(cost.latency_bound, cost.parts.total());
      EXPECT_LE(cost.energy_bound, cost.energy().value);
    }
  }
}

TEST(CoreCost, ElementWiderThanAMemoryPassesItBy) {
  const CoreCost cost = core_cost(product(64, 64, 64, 32, 32), tpu_like(true));
  std::vector<std::string> output_levels;
  for (const LevelEnergy& level : cost.levels) {
    if (level.operand == 0)
      output_levels.push_back(level.memory);
  }
  EXPECT_EQ(output_levels, (std::vector<std::string>{"sram_2MB", "dram"})); // not rf_2B of 16 bits
}

std::string infeasible(const CoreProblem& problem, const Core& core) {
  try {
    core_cost(problem, core);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

/// O[D,K] += I[D,C] * W[C,K], started from bias[K].
CoreProblem with_bias(CoreProblem problem) {
  ProblemOperand bias = problem.operands[2];
  bias.axes = {axis({{2, 1}})};
  bias.extents = {problem.dims[2].size};
  problem.operands.push_back(bias);
  return problem;
}

// A register for the weights, which the bias must leave to them. Like TwoByTwoProductByHand
// otherwise.
TEST(CoreCost, BiasStaysInTheTopMemory) {
  using enum MemoryOperand;
  using enum Direction;
  Core core = two_by_two();
  core.memories.insert(core.memories.begin(), memory("weights", 8, 1, {I2}, {false, false},
                                                     {port(PortType::read, 8, 8, {use(I2, tl)}),
                                                      port(PortType::write, 8, 8, {use(I2, fh)})}));
  for (const CoreProblem& problem :
       {product(2, 2, 2), product(4, 4, 4), product(4, 2, 8), product(8, 1, 8)}) {
    CoreCostOptions options; // another unrolling for the bias would leave nothing to compare
    options.fixed_dataflow = true;
    const CoreCost bare = core_cost(problem, core, options);
    const CoreCost cost = core_cost(with_bias(problem), core, options);
    ASSERT_EQ(cost.levels.size(), bare.levels.size() + 1);
    for (std::size_t l = 0; l < bare.levels.size(); ++l) {
      EXPECT_EQ(cost.levels[l].memory, bare.levels[l].memory);
      EXPECT_EQ(cost.levels[l].accesses, bare.levels[l].accesses);
    }
    EXPECT_EQ(cost.levels.back().memory, "sram");
    // Two channels of 8 bits are a word of 16: at least once in all, at most once per row, however
    // many iterations add to a sum.
    const std::int64_t words = cost.levels.back().accesses[static_cast<std::size_t>(tl)];
    EXPECT_GE(words, problem.dims[2].size / 2);
    EXPECT_LE(words, problem.dims[1].size * problem.dims[2].size / 2);
  }
}

TEST(CoreCost, SaysWhichOperandDoesNotFit) {
  Core narrow = two_by_two();
  narrow.memories[1].size = {4};
  EXPECT_EQ(infeasible(product(2, 2, 2), narrow),
            "core 'two_by_two': one element of operand 1 (I1) needs 8 bits, but its largest memory "
            "'sram' holds 4");
  Core no_weights = two_by_two();
  no_weights.memories[1].operands = {MemoryOperand::I1, MemoryOperand::O};
  EXPECT_EQ(infeasible(product(2, 2, 2), no_weights),
            "core 'two_by_two' has no memory for operand 2 (I2)");
  // 64 x 64 inputs of 8 bits.
  EXPECT_EQ(
      infeasible(product(64, 64, 2), two_by_two()),
      "core 'two_by_two': operand 1 (I1) needs 32768 bits of memory 'sram', which holds 1024");
  // 8 x 8 values each: 512 bits per operand, which fit one by one but not together.
  EXPECT_EQ(
      infeasible(product(8, 8, 8), two_by_two()),
      "core 'two_by_two': operand 1 (I1) and operand 2 (I2) and operand 0 (O) need together at "
      "least 1536 bits of memory 'sram', which holds 1024");
}

// Each input once is the least; here W (64 x 64 x 8 bits) is swept once per slice of D that fits.
TEST(CoreCost, StreamedOperandsMoveAtLeastOnce) {
  CoreProblem problem = product(64, 64, 64);
  for (ProblemOperand& operand : problem.operands)
    operand.offchip = true;
  Core core = two_by_two();
  core.memories[1].size = {8192};
  const CoreCost cost = core_cost(problem, core);
  const std::int64_t whole = 64 * 64 * 8;
  EXPECT_GE(cost.offchip[1].read.value, whole);
  EXPECT_GE(cost.offchip[2].read.value, whole);
  EXPECT_EQ(cost.offchip[1].write.value, 0);
  EXPECT_GE(cost.offchip[0].write.value, whole);
  std::int64_t resident = 0;
  for (const Bits bits : cost.resident)
    resident += bits.value;
  EXPECT_LE(resident, 8192);
  // Inputs are fetched more than once, or else everything would have fitted.
  EXPECT_GT(cost.offchip[1].read.value + cost.offchip[2].read.value, 2 * whole);
}

std::int64_t moved_offchip(const CoreCost& cost) {
  std::int64_t bits = 0;
  for (const OffchipTraffic& traffic : cost.offchip)
    bits += (traffic.read + traffic.write).value;
  return bits;
}

// 64 x 64 x 64 in 8 Kbit: with W and O whole (2 x 32 Kbit) out of reach, something is fetched
// again. At a bit in 100 cycles the transfer decides, so the mapping with the fewest bits wins, and
// no mapping moves less than what the energy of transfers alone would choose.
TEST(CoreCost, TheSlowOffchipMemoryDecidesTheOrder) {
  CoreProblem problem = product(64, 64, 64);
  for (ProblemOperand& operand : problem.operands)
    operand.offchip = true;
  Core core = two_by_two();
  core.memories[1].size = {8192};
  CoreCostOptions slow;
  slow.offchip = {0.01, 0.01, true, 0, 0};
  CoreCostOptions dear;
  dear.objective = Objective::energy;
  dear.offchip = {0, 0, true, 1e9, 1e9};
  const CoreCost unknown = core_cost(problem, core);
  const CoreCost by_time = core_cost(problem, core, slow);
  EXPECT_EQ(moved_offchip(by_time), moved_offchip(core_cost(problem, core, dear)));
  EXPECT_LT(moved_offchip(by_time), moved_offchip(unknown));
  EXPECT_LE(unknown.parts.total(), by_time.parts.total());
  // A fast one changes nothing.
  CoreCostOptions fast;
  fast.offchip = {1e6, 1e6, false, 0, 0};
  EXPECT_EQ(core_cost(problem, core, fast).parts.total(), unknown.parts.total());
  EXPECT_EQ(core_cost(problem, core, fast).offchip[1].read, unknown.offchip[1].read);
}

TEST(CoreCost, OffchipRateByHand) {
  const OffchipTraffic traffic{{100}, {60}};
  EXPECT_DOUBLE_EQ((OffchipRate{10, 20, true, 2, 3}.cycles(traffic)), 13);
  EXPECT_DOUBLE_EQ((OffchipRate{10, 20, false, 2, 3}.cycles(traffic)), 10);
  EXPECT_DOUBLE_EQ((OffchipRate{10, 20, true, 2, 3}.energy_pj(traffic)), 380);
  EXPECT_DOUBLE_EQ(OffchipRate{}.cycles(traffic), 0);
}

// 50257 columns on 32 lanes are 31.99 wide: rounding must not lose any of them.
TEST(CoreCost, AStreamedOutputIsWrittenWhole) {
  for (const std::int64_t k : {33, 1001, 50257}) {
    CoreProblem problem = product(96, 128, k, 16, 32);
    for (ProblemOperand& operand : problem.operands)
      operand.offchip = true;
    EXPECT_GE(core_cost(problem, tpu_like(false)).offchip[0].write.value, 128 * k * 16) << k;
  }
  // Scattered to every second row: the zeros between are written too.
  CoreProblem scatter = product(8, 8, 8);
  scatter.operands[0].axes[0] = axis({{1, 2}});
  scatter.operands[0].extents[0] = 15;
  scatter.operands[0].offchip = true;
  EXPECT_GE(core_cost(scatter, tpu_like(false)).offchip[0].write.value, 15 * 8 * 8);
}

TEST(CoreCost, OperandsOnTheCoreMoveNothingOffChip) {
  const CoreCost cost = core_cost(product(8, 4, 4), two_by_two());
  for (const OffchipTraffic& traffic : cost.offchip) {
    EXPECT_EQ(traffic.read.value, 0);
    EXPECT_EQ(traffic.write.value, 0);
  }
  EXPECT_EQ(cost.resident[1].value, 4 * 8 * 8);
}

TEST(CoreCost, LevelsAddUpForAllThreeProductsOfAConvolution) {
  for (const auto which :
       {ConvProduct::forward, ConvProduct::input_gradient, ConvProduct::weight_gradient}) {
    for (const std::int64_t stride : {1, 2}) {
      const CoreProblem problem = convolution({.b = 2,
                                               .k = 16,
                                               .ox = 16 / stride,
                                               .oy = 16 / stride,
                                               .c = 8,
                                               .fx = 3,
                                               .fy = 3,
                                               .stride = stride,
                                               .padding = 1,
                                               .ix = 16,
                                               .iy = 16},
                                              which);
      for (const auto objective : {Objective::latency, Objective::energy, Objective::edp}) {
        CoreCostOptions options;
        options.objective = objective;
        const CoreCost cost = core_cost(problem, tpu_like(true), options);
        double sum = 0;
        for (const LevelEnergy& level : cost.levels)
          sum += level.energy.value;
        EXPECT_NEAR(sum, cost.memory_energy.value, 1e-6 * sum);
        EXPECT_GE(cost.latency, cost.ideal);
        EXPECT_GE(cost.ideal.value * 1024, 2 * 16 * 8 * 9 * (16 / stride) * (16 / stride));
        EXPECT_LE(cost.spatial_utilisation, 1 + 1e-12);
      }
    }
  }
}

TEST(CoreCost, ObjectiveDecides) {
  const CoreProblem problem = product(96, 96, 96);
  CoreCostOptions by_energy;
  by_energy.objective = Objective::energy;
  const CoreCost fast = core_cost(problem, tpu_like(true));
  const CoreCost frugal = core_cost(problem, tpu_like(true), by_energy);
  EXPECT_LE(fast.latency, frugal.latency);
  EXPECT_LE(frugal.energy(), fast.energy());
}

// A dim split in two by a folded view (D = 4 x 8 as D0, D1) is the same product.
TEST(CoreCost, SplitLoopsCostTheSame) {
  CoreProblem split = product(32, 32, 32);
  split.dims = {{"C", 32}, {"D0", 4}, {"D1", 8}, {"K", 32}};
  split.operands[0].axes = {axis({{1, 8}, {2, 1}}), axis({{3, 1}})};
  split.operands[1].axes = {axis({{1, 8}, {2, 1}}), axis({{0, 1}})};
  split.operands[2].axes = {axis({{0, 1}}), axis({{3, 1}})};
  CoreCostOptions options;
  options.fixed_dataflow = true;
  const CoreCost whole = core_cost(product(32, 32, 32), tpu_like(true), options);
  const CoreCost parts = core_cost(split, tpu_like(true), options);
  EXPECT_EQ(whole.latency, parts.latency);
  EXPECT_DOUBLE_EQ(whole.energy().value, parts.energy().value);
}

} // namespace
} // namespace monet
