// Which memories layers do without where data stay on the chip between them.
#include "core_cost/cores.hpp"

#include "monet/core_cost/layers.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace monet {
namespace MONET_TEST_FILE {

using test::memory;
using test::port;
using test::product;
using test::use;

/// Weights in registers, inputs and outputs in an SRAM of so many bits, everything in DRAM.
Core three_memories(std::int64_t sram_bits) {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core;
  core.name = "three_memories";
  core.array = {{"D1", 2}, {"D2", 2}};
  const std::vector<PortUse> both{use(I1, fh), use(I1, tl), use(O, fh),
                                  use(O, tl),  use(O, fl),  use(O, th)};
  std::vector<PortUse> all = both;
  all.push_back(use(I2, fh));
  all.push_back(use(I2, tl));
  core.memories = {
      memory("registers", 64, 0.1, {I2}, {false, false},
             {port(read_write, 8, 8, {use(I2, fh), use(I2, tl)})}),
      memory("sram", sram_bits, 1, {I1, O}, {true, true}, {port(read_write, 64, 64, both)}),
      memory("dram", 1 << 30, 100, {I1, I2, O}, {true, true}, {port(read_write, 64, 64, all)})};
  return core;
}

/// Products of 8 x 4 inputs and 4 x 4 outputs: 256 bits in, 256 bits of partial sums out.
std::vector<Layer> layers(const std::vector<std::vector<std::size_t>>& makers) {
  std::vector<Layer> list;
  for (const auto& made_by : makers) {
    Layer layer;
    layer.name = std::to_string(list.size());
    layer.problem = product(8, 4, 4);
    layer.makers = made_by;
    for (const std::size_t maker : made_by)
      list[maker].takers.push_back(list.size());
    list.push_back(std::move(layer));
  }
  return list;
}

/// The outermost memory of an operand, by layer.
std::vector<std::string> tops(const std::vector<Core>& cores, MemoryOperand operand) {
  std::vector<std::string> names;
  for (const Core& core : cores)
    names.push_back(core.top(operand) != nullptr ? core.top(operand)->name : "none");
  return names;
}

using Names = std::vector<std::string>;

TEST(DataLocality, AChainStaysOnTheChipWhereItFits) {
  const auto chain = layers({{}, {0}, {1}});
  const auto fits = with_data_locality(chain, three_memories(512));
  EXPECT_EQ(tops(fits, MemoryOperand::I1), (Names{"sram", "sram", "sram"}));
  EXPECT_EQ(tops(fits, MemoryOperand::O), (Names{"sram", "sram", "sram"}));
  EXPECT_EQ(tops(fits, MemoryOperand::I2), (Names{"dram", "dram", "dram"}));
  EXPECT_EQ(port_of(fits[0].memories[2], MemoryOperand::O, Direction::fl), nullptr);
  const auto large = with_data_locality(chain, three_memories(511));
  EXPECT_EQ(tops(large, MemoryOperand::I1), (Names{"dram", "dram", "dram"}));
  EXPECT_EQ(tops(large, MemoryOperand::O), (Names{"dram", "dram", "dram"}));
}

// The first goes to two layers; the second and third meet in the last.
TEST(DataLocality, BranchesGoThroughTheOutermostMemory) {
  const auto cores = with_data_locality(layers({{}, {0}, {0}, {1, 2}}), three_memories(512));
  EXPECT_EQ(tops(cores, MemoryOperand::I1), (Names{"dram", "dram", "dram", "dram"}));
  EXPECT_EQ(tops(cores, MemoryOperand::O), (Names{"dram", "dram", "dram", "sram"}));
}

// A memory that is left out before the cells changes their place in the list.
TEST(DataLocality, CellsAreFoundAgain) {
  Core core = three_memories(512);
  std::swap(core.memories[0], core.memories[1]); // the SRAM first, a second one above it
  core.memories.insert(core.memories.begin() + 1, core.memories[0]);
  ImcArray imc;
  imc.cells = 2;
  core.imc = std::make_shared<const ImcArray>(imc);
  for (const Core& seen : with_data_locality(layers({{}, {0}}), core)) {
    EXPECT_EQ(seen.imc->cells, 1U);
    EXPECT_EQ(seen.memories.at(1).name, "registers");
  }
}

// Inputs stay below the cells; a second operand that a layer makes needs the cells all the same,
// and a memory to come from.
TEST(DataLocality, CellsStayWhereInputsLieBelowThem) {
  Core core = three_memories(512);
  std::swap(core.memories[0], core.memories[1]);
  ImcArray imc;
  imc.cells = 1;
  core.imc = std::make_shared<const ImcArray>(imc);
  std::vector<Layer> chain = layers({{}, {0}});
  chain[1].constant_weights = false;
  const std::vector<Core> cores = with_data_locality(chain, core);
  EXPECT_EQ(tops(cores, MemoryOperand::I1), (Names{"sram", "sram"}));
  EXPECT_EQ(tops(cores, MemoryOperand::I2), (Names{"dram", "dram"}));
  for (const Core& seen : cores)
    EXPECT_EQ(seen.memories.at(seen.imc->cells).name, "registers");
  core.memories.back().operands = {MemoryOperand::I1, MemoryOperand::O};
  const Core none_above = with_data_locality(chain, core).at(1);
  EXPECT_EQ(none_above.top(MemoryOperand::I2)->name, "registers");
  EXPECT_EQ(none_above.memories.at(none_above.imc->cells).name, "registers");
}

/// Products y of so many rows of x and a square matrix, and sums of two tensors.
class Products {
public:
  TensorId input() { return tensor(TensorKind::input); }
  TensorId product(TensorId x) { return add("MatMul", {x, tensor(TensorKind::parameter)}); }
  TensorId sum(TensorId a, TensorId b) { return add("Add", {a, b}); }
  std::vector<Layer> layers() const { return zigzag_layers(graph_).layers; }

private:
  TensorId tensor(TensorKind kind) {
    Tensor made;
    made.name = "t" + std::to_string(graph_.tensors().size());
    made.shape = {4, 4};
    made.kind = kind;
    return graph_.add_tensor(made);
  }
  TensorId add(const std::string& type, std::vector<TensorId> inputs) {
    Operator op;
    op.name = type + std::to_string(graph_.operators().size());
    op.op_type = type;
    op.inputs.assign(inputs.begin(), inputs.end());
    const TensorId made = tensor(TensorKind::activation);
    op.outputs = {made};
    graph_.add_operator(op);
    return made;
  }

  Graph graph_;
};

using Places = std::vector<std::size_t>;

// A chain of residual additions: every layer takes all before it, of which the first two are kept.
TEST(DataLocality, LayersTakeEachOtherThroughAdditions) {
  Products network;
  TensorId sum = network.product(network.input());
  constexpr std::size_t kLayers = 6;
  for (std::size_t i = 1; i < kLayers; ++i)
    sum = network.sum(sum, network.product(sum));
  const std::vector<Layer> layers = network.layers();
  ASSERT_EQ(layers.size(), kLayers);
  EXPECT_EQ(layers[0].makers, Places{});
  EXPECT_EQ(layers[1].makers, Places{0});
  EXPECT_EQ(layers[0].takers, (Places{1, 2}));
  for (std::size_t i = 2; i < kLayers; ++i)
    EXPECT_EQ(layers[i].makers, (Places{0, 1})) << i;
  EXPECT_EQ(layers[3].takers, (Places{4, 5}));
  EXPECT_EQ(layers[4].takers, Places{5}); // which has other makers: a branch ends here
  EXPECT_EQ(layers[5].takers, Places{});
}

} // namespace MONET_TEST_FILE
} // namespace monet
