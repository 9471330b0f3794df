#include "core_cost/shared/streamed_cost.hpp"
#include "core_cost/stream_cores.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace monet {
namespace MONET_TEST_FILE {

using namespace test;

/// Axes by letters; an axis of two loops is stride * first + second.
struct Axis {
  std::vector<const char*> loops;
  std::int64_t stride = 1;
  std::int64_t extent = 0;
};

ProblemOperand operand(const CoreProblem& problem, MemoryOperand memory, std::int64_t bits,
                       const std::vector<Axis>& axes) {
  const auto dim = [&](const std::string& name) {
    std::uint32_t i = 0;
    while (problem.dims.at(i).name != name)
      ++i;
    return i;
  };
  ProblemOperand o;
  o.mode = memory == MemoryOperand::O ? AccessMode::write : AccessMode::read;
  o.memory = memory;
  o.bits = bits;
  o.partial_bits = bits;
  for (const Axis& axis : axes) {
    if (axis.loops.size() == 1) {
      o.axes.push_back({{{dim(axis.loops[0]), 1}}, 0, false});
      o.extents.push_back(problem.dims[dim(axis.loops[0])].size);
    } else {
      o.axes.push_back({{{dim(axis.loops[0]), axis.stride}, {dim(axis.loops[1]), 1}}, 0, false});
      o.extents.push_back(axis.extent);
    }
  }
  return o;
}

CoreProblem convolution(std::int64_t c, std::int64_t ox, std::int64_t oy, std::int64_t f,
                        std::int64_t stride, std::int64_t size) {
  CoreProblem p;
  p.dims = {{"B", 1}, {"K", 16}, {"G", 1}, {"OX", ox}, {"C", c}, {"FX", f}, {"OY", oy}, {"FY", f}};
  p.operands.push_back(
      operand(p, MemoryOperand::O, 8, {{{"B"}}, {{"G"}}, {{"K"}}, {{"OY"}}, {{"OX"}}}));
  p.operands.back().partial_bits = 16;
  p.operands.push_back(operand(p, MemoryOperand::I2, 8, {{{"K"}}, {{"C"}}, {{"FY"}}, {{"FX"}}}));
  p.operands.push_back(operand(
      p, MemoryOperand::I1, 8,
      {{{"B"}}, {{"G"}}, {{"C"}}, {{"OY", "FY"}, stride, size}, {{"OX", "FX"}, stride, size}}));
  return p;
}

/// The reference has a loop C that touches no operand: a pooling layer costs C times its
/// operations.
CoreProblem pooling(std::int64_t oy) {
  CoreProblem p;
  p.dims = {{"B", 1}, {"K", 64}, {"OX", 56}, {"OY", oy}, {"C", 64}, {"FX", 3}, {"FY", 3}};
  p.operands.push_back(operand(p, MemoryOperand::O, 8, {{{"B"}}, {{"K"}}, {{"OY"}}, {{"OX"}}}));
  p.operands.push_back(operand(p, MemoryOperand::I2, 0, {{{"FY"}}, {{"FX"}}}));
  p.operands.push_back(operand(p, MemoryOperand::I1, 8,
                               {{{"B"}}, {{"K"}}, {{"OY", "FY"}, 2, 112}, {{"OX", "FX"}, 2, 112}}));
  return p;
}

CoreProblem elementwise(std::int64_t d, std::int64_t k, bool two_inputs) {
  CoreProblem p;
  p.dims = {{"B", 1}, {"H", 64}, {"D", d}, {"K", k}};
  const std::vector<Axis> all{{{"B"}}, {{"H"}}, {{"D"}}, {{"K"}}};
  p.operands.push_back(operand(p, MemoryOperand::O, 8, all));
  p.operands.back().partial_bits = 16;
  p.operands.push_back(operand(p, MemoryOperand::I1, 8, all));
  p.operands.push_back(operand(p, MemoryOperand::I2, 8, two_inputs ? all : std::vector<Axis>{}));
  return p;
}

struct Recorded {
  const char* layer;
  CoreProblem problem;
  Core core;
  bool streams;
  std::int64_t parallel;
  double latency;
  double onchip_pj;
  double offchip_pj;
  std::vector<std::int64_t> bits_per_cycle; ///< by operand
};

// Layers of ResNet-18 as the reference ran them: on their own, so that all operands stream, and cut
// into rows beside others.
std::vector<Recorded> recorded() {
  return {
      {"conv1",
       convolution(3, 112, 112, 7, 2, 224),
       array_core(),
       true,
       4,
       633185,
       13246644.496,
       44198000,
       {2, 0, 1}},
      {"relu",
       elementwise(112, 28, false),
       array_core(),
       true,
       4,
       50178,
       1351323.848,
       50177000,
       {32, 32, 0}},
      {"maxpool", pooling(56), pooling_core(), true, 1, 1636604, 231405350.4, 175616000, {1, 0, 6}},
      {"layer1 conv",
       convolution(64, 56, 56, 3, 1, 56),
       array_core(),
       true,
       4,
       80356,
       7910906.24,
       32512000,
       {5, 1, 20}},
      {"layer1 relu",
       elementwise(56, 14, false),
       array_core(),
       true,
       4,
       12546,
       337832.292,
       12545000,
       {32, 32, 0}},
      {"layer1 add",
       elementwise(56, 56, true),
       lanes(),
       true,
       1,
       75264,
       2076390.4,
       75264000,
       {22, 22, 22}},
      {"conv1 row",
       convolution(3, 112, 1, 7, 2, 224),
       array_core(),
       false,
       4,
       5538,
       117068.848,
       0,
       {0, 0, 0}},
      {"relu row", elementwise(1, 28, false), array_core(), false, 4, 66, 6111.528, 0, {0, 0, 0}},
      {"maxpool row", pooling(1), pooling_core(), false, 1, 29118, 4104038.4, 0, {0, 0, 0}},
      {"layer1 conv row",
       convolution(64, 56, 1, 3, 1, 56),
       array_core(),
       false,
       4,
       1027,
       139797.792,
       0,
       {0, 0, 0}},
      {"layer1 relu row",
       elementwise(1, 14, false),
       array_core(),
       false,
       4,
       66,
       3244.964,
       0,
       {0, 0, 0}},
      {"layer1 add row", elementwise(1, 56, true), lanes(), false, 1, 254, 25318.4, 0, {0, 0, 0}},
  };
}

StreamedCost cost_of(const Recorded& layer) {
  StreamedProblem asked;
  asked.problem = layer.problem;
  asked.parallel = layer.parallel;
  if (layer.streams)
    asked.streamed = {0, 1, 2};
  return streamed_cost(asked, layer.core, dram());
}

TEST(StreamedCost, equals_the_reference_runs) {
  for (const Recorded& layer : recorded()) {
    SCOPED_TRACE(layer.layer);
    const StreamedCost cost = cost_of(layer);
    EXPECT_EQ(cost.latency, layer.latency);
    EXPECT_NEAR(cost.onchip_pj, layer.onchip_pj, 1e-9 * layer.onchip_pj);
    EXPECT_EQ(cost.offchip_pj, layer.offchip_pj);
    for (std::size_t i = 0; i < layer.bits_per_cycle.size(); ++i)
      EXPECT_EQ(cost.rates[i].read + cost.rates[i].write, layer.bits_per_cycle[i]);
  }
}

// Alone, an order that sums over all channels first takes 74,086 cycles. Four such tiles at once
// would take 4 x (7 + 9) + (1 + 2) = 67 bits per cycle for outputs and weights, the operands with
// the most memory levels, and the off-chip memory has 64; so each takes 80,356 cycles and all 63.
TEST(StreamedCost, leaves_bandwidth_to_the_tiles_beside_it) {
  Recorded layer = recorded()[3];
  EXPECT_EQ(cost_of(layer).latency, 80356);
  layer.parallel = 1;
  EXPECT_EQ(cost_of(layer).latency, 74086);
}

// 9,216 weights load in 1,152 cycles of the 64-bit port, all but 3 of them behind 56,448 cycles of
// computing: 2 bits per cycle, beside 1 bit that passes while computing. Where outputs stream too,
// the reference books the loading in a direction that no link has.
TEST(StreamedCost, loading_behind_computing_takes_bandwidth) {
  const Recorded layer = recorded()[3];
  EXPECT_EQ(cost_of(layer).rates[1].read, 1);
  StreamedProblem asked;
  asked.problem = layer.problem;
  asked.parallel = layer.parallel;
  asked.streamed = {1};
  const StreamedCost cost = streamed_cost(asked, layer.core, dram());
  EXPECT_EQ(cost.ideal_temporal, 56448);
  EXPECT_EQ(cost.rates[1].read, 3);
}

TEST(StreamedCost, slow_operations_stretch_the_loops) {
  StreamedProblem asked;
  asked.problem = elementwise(1, 14, false);
  const StreamedCost fast = streamed_cost(asked, array_core(), dram());
  asked.cycles_per_operation = 4;
  const StreamedCost slow = streamed_cost(asked, array_core(), dram());
  EXPECT_EQ(fast.ideal_temporal, 64);
  EXPECT_EQ(slow.ideal_temporal, 4 * 64);
  EXPECT_EQ(slow.latency - slow.ideal_temporal, fast.latency - fast.ideal_temporal);
  EXPECT_EQ(slow.onchip_pj, fast.onchip_pj);
}

TEST(StreamedCost, refuses_arrays_that_compute_in_memory) {
  Core core = array_core();
  core.imc = std::make_shared<const ImcArray>();
  try {
    streamed_cost(StreamedProblem{}, core, dram());
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("computes in memory"), std::string::npos);
  }
}

TEST(StreamedCost, says_what_does_not_fit) {
  Core small = array_core();
  small.memories[2].size = {64};
  StreamedProblem asked;
  asked.problem = convolution(64, 56, 1, 3, 1, 56);
  try {
    streamed_cost(asked, small, dram());
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("bits of memory 'sram_2MB'"), std::string::npos)
        << error.what();
  }
}

TEST(StreamedCost, walks_sets_in_one_order) {
  using enum MemoryOperand;
  const std::vector<MemoryOperand> order{O, I1, I2};
  EXPECT_EQ(zigzag_set_order({I1, I2, O}), order);
  EXPECT_EQ(zigzag_set_order({I2, O, I1}), order);
}

} // namespace MONET_TEST_FILE
} // namespace monet
