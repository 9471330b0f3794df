// Operators as layers of the reference: loops, names, operands, numbers.
#include "schedule/small_steps.hpp"
#include "reference/stream/tiles_networks.hpp"

#include "monet/reference/stream_tiles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace monet::stream {
namespace {

using monet::testing::make_chip;
using monet::testing::mapping_entry;
using monet::testing::StreamNetwork;
using ::testing::ElementsAre;

Workload layer_by_layer(const Graph& network, const std::string& extra = {}) {
  const MappingFile mapping =
      parse_mapping(mapping_entry("default", "0", "", "") + extra, "m.yaml");
  return make_stream_workload(network, make_chip({.cores = 2}), mapping,
                              {StreamOptions::Mode::layer_by_layer, {}});
}

/// "B=1 K=8 ..." in the order of the loops.
std::string loops(const Layer& layer) {
  std::string text;
  for (const Dim& dim : layer.dims)
    text += (text.empty() ? "" : " ") + dim.name + "=" + std::to_string(dim.parsed);
  return text;
}

/// "O[B][K] I[B][C] W[]" in the order of the equation.
std::string equation(const Layer& layer) {
  std::string text;
  for (const Operand operand : layer.equation) {
    text += text.empty() ? "" : " ";
    text += letter_of(operand);
    for (const std::uint32_t axis : layer.operands[static_cast<std::size_t>(operand)].axes)
      text += "[" + layer.axis_name(axis) + "]";
  }
  return text;
}

TEST(StreamLayers, Convolutions) {
  StreamNetwork net;
  const TensorId x = net.input({2, 6, 8, 10});
  net.conv(x, 4, 3);
  net.conv(x, 12, 3, 1, 3);
  net.conv(x, 6, 3, 1, 6);
  const Workload workload = layer_by_layer(net.graph);
  EXPECT_EQ(loops(workload.layers[0]), "B=2 K=4 G=1 OX=8 C=6 FX=3 OY=10 FY=3");
  EXPECT_EQ(equation(workload.layers[0]), "O[B][G][K][OY][OX] W[K][C][FY][FX] I[B][G][C][IY][IX]");
  EXPECT_THAT(workload.layers[0].constants, ElementsAre(Operand::W, Operand::I));
  EXPECT_EQ(equation(workload.layers[1]), "O[B][G][K][OY][OX] W[G][C][FY][FX] I[B][G][C][IY][IX]");
  EXPECT_EQ(loops(workload.layers[2]), "B=2 G=6 OX=8 FX=3 OY=10 FY=3");
  EXPECT_EQ(equation(workload.layers[2]), "O[B][G][OY][OX] W[G][FY][FX] I[B][G][IY][IX]");
}

TEST(StreamLayers, ProductsOfActivationsHaveBatchesInBothOperands) {
  StreamNetwork net;
  const TensorId a = net.product(net.input({2, 4, 8}), 8);
  const TensorId b = net.product(net.input({2, 8, 6}), 6);
  net.op("MatMul", {a, b}, {2, 4, 6});
  const Workload workload = layer_by_layer(net.graph);
  EXPECT_EQ(equation(workload.layers[0]), "O[B][D][K] I[B][D][C] W[C][K]");
  EXPECT_EQ(equation(workload.layers[2]), "O[B][D][K] I[B][D][C] W[B][C][K]");
  EXPECT_TRUE(workload.layers[2].constants.empty());
}

TEST(StreamLayers, ASoftmaxIsFour) {
  StreamNetwork net;
  net.relu(net.op("Softmax", {net.product(net.input({4, 8}), 16)}, {4, 16}));
  const Workload workload = layer_by_layer(net.graph);
  ASSERT_EQ(workload.layers.size(), 6);
  EXPECT_EQ(workload.layers[1].name, "n1-max/");
  EXPECT_EQ(equation(workload.layers[1]), "O[B][R] I[B][H] W");
  EXPECT_EQ(equation(workload.layers[2]), "O[B][H] I[B][H] W[B][R]");
  EXPECT_EQ(workload.layers[4].type, "div");
  EXPECT_EQ(workload.layers[5].id, 5);
  EXPECT_EQ(workload.edges_into(4).size(), 2) << "e / sum reads both";
}

TEST(StreamLayers, ElementWiseOperandsAreNamedFromTheLeft) {
  StreamNetwork net;
  const TensorId x = net.relu(net.input({1, 4, 6, 8}));
  const TensorId y = net.relu(x);
  net.op("Add", {y, net.weight({8})}, {1, 4, 6, 8});
  net.add(x, y);
  const Workload workload = layer_by_layer(net.graph);
  EXPECT_EQ(equation(workload.layers[0]), "O[B][H][D][K] I[B][H][D][K] W[B][H][D][K]")
      << "an input of the network has weights as large as itself";
  EXPECT_EQ(equation(workload.layers[1]), "O[B][H][D][K] I[B][H][D][K] W");
  EXPECT_EQ(equation(workload.layers[2]), "O[B][H][D][K] I[B][H][D][K] W[K]");
  EXPECT_EQ(workload.edges_into(3)[0].operand, Operand::W) << "the first of two equal shapes";
}

TEST(StreamLayers, NamesFromTheMapping) {
  StreamNetwork net;
  net.relu(net.product(net.input({2, 4, 8}), 6));
  const Workload workload = layer_by_layer(
      net.graph, "- {name: MatMul, core_allocation: [0], layer_dimension_names: [A, T, S, U]}\n"
                 "- {name: Relu, core_allocation: [0], layer_dimension_names: [X, Y]}\n");
  EXPECT_EQ(loops(workload.layers[0]), "A=2 T=4 S=8 U=6");
  EXPECT_EQ(loops(workload.layers[1]), "B=2 H=4 D=6") << "two names do not name three axes";
}

TEST(StreamLayers, EinsumsLettersAreLoops) {
  StreamNetwork net;
  Attributes equation_given;
  equation_given.set("equation", std::string("bhd, dk -> bhk"));
  net.op("Einsum", {net.input({2, 4, 8}), net.weight({8, 6})}, {2, 4, 6}, equation_given);
  const Workload workload = layer_by_layer(net.graph);
  EXPECT_EQ(loops(workload.layers[0]), "B=2 H=4 D=8 K=6");
  EXPECT_EQ(equation(workload.layers[0]), "O[B][H][K] I[B][H][D] W[D][K]");
  EXPECT_TRUE(workload.notes.empty());
}

TEST(StreamLayers, TensorsOfEqualRangesAreShared) {
  StreamNetwork net;
  net.relu(net.conv(net.input({1, 8, 8, 8}), 8, 3));
  StreamOptions fused;
  fused.stacks = {{0, 1}};
  const MappingFile mapping =
      parse_mapping(mapping_entry("default", "0, 1", "OY, 4", "K, 2"), "m.yaml");
  const Workload workload =
      make_stream_workload(net.graph, make_chip({.cores = 2}), mapping, fused);
  // Tile n: channel half n % 2 on core n % 2, rows n / 2.
  EXPECT_EQ(workload.tiles[5].core, CoreId(1));
  EXPECT_EQ(workload.tiles[5].tensors[2], workload.tiles[1].tensors[2]);
  EXPECT_EQ(workload.tiles[5].tensors[1], workload.tiles[4].tensors[1]);
  const Tensor& weights = workload.tensors[workload.tiles[1].tensors[2]];
  EXPECT_EQ(weights.base_priority, 4);
  EXPECT_EQ(weights.bits.value, 4 * 8 * 3 * 3 * 8);
  EXPECT_EQ(workload.name_of(weights), "Tensor(0, 1, W)");
  EXPECT_EQ(workload.tensors[workload.tiles[4].tensors[1]].base_priority, 2);
}

} // namespace
} // namespace monet::stream
