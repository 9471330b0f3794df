// What stream-coala does otherwise than our default, each by the name it has in
// docs/explanation/stream-coala.md, and how it goes on where the reference stops.
#include "reference/stream/tiles/network.hpp"
#include "reference/stream/tiles/stages.hpp"
#include "reference/stream/tiles_networks.hpp"
#include "schedule/small_steps.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/reference/stream_tiles.hpp"
#include "monet/tiling/tiling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace monet::stream {
namespace MONET_TEST_FILE {

using monet::testing::make_chip;
using monet::testing::mapping_entry;
using monet::testing::quad_mapping;
using monet::testing::StreamNetwork;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

Chip quad() {
  return make_chip({.cores = 6});
}

MappingFile mapping(const std::string& intra, const std::string& inter,
                    const std::string& cores = "0, 1, 2, 3") {
  return parse_mapping(mapping_entry("default", cores, intra, inter), "m.yaml");
}

/// Activations are cut into 4 by ONNX's rows, convolutions by `loop`.
MappingFile rows_and(const std::string& loop) {
  return parse_mapping(mapping_entry("default", "0", "D, 4", "") +
                           mapping_entry("Conv", "0", loop + ", 4", ""),
                       "m.yaml");
}

/// All layers in one stack.
Workload fused(const Graph& network, const MappingFile& mapping, StreamOptions options = {}) {
  options.stacks.emplace_back();
  for (int i = 0; i < 200; ++i)
    options.stacks[0].push_back(i);
  return make_stream_workload(network, quad(), mapping, options);
}

/// The default model's tiles of the same network.
TileGraph default_tiles(Graph network, const MappingFile& mapping) {
  for (std::size_t i = 0; i < network.operators().size(); ++i)
    build_nest(network, OpId(i));
  for (const monet::Tensor& tensor : network.tensors()) {
    if (tensor.consumers.empty() && tensor.producer)
      network.outputs.push_back(*network.find_tensor(tensor.name));
  }
  return make_tiles(make_inference_graph(network), quad(), {&mapping});
}

std::size_t data_edges(const Workload& workload) {
  return static_cast<std::size_t>(
      std::count_if(workload.edges.begin(), workload.edges.end(),
                    [](const Edge& edge) { return edge.carries_data(); }));
}

/// Sub ids of the tiles whose data a tile waits for.
std::vector<std::uint32_t> producers(const Workload& workload, std::uint32_t layer,
                                     std::uint32_t sub) {
  std::vector<std::uint32_t> subs;
  for (const Edge& edge : workload.edges_into(workload.layers[layer].first_tile + sub)) {
    if (edge.carries_data())
      subs.push_back(workload.tiles[edge.from].sub);
  }
  return subs;
}

std::vector<std::string> note_names(const Workload& workload) {
  std::vector<std::string> names;
  for (const Note& note : workload.notes)
    names.push_back(note.name);
  return names;
}

Interval range_of(const Workload& workload, std::uint32_t tile, std::string_view axis) {
  const Layer& layer = workload.layers[workload.tiles[tile].layer];
  for (std::size_t i = 0; i < layer.axes(); ++i) {
    if (layer.axis_name(i) == axis)
      return workload.ranges(tile)[i];
  }
  return {};
}

Graph two_convolutions(std::int64_t size) {
  StreamNetwork net;
  net.conv(net.conv(net.input({1, 3, size, size}), 8, 3), 8, 3);
  return net.graph;
}

TEST(StreamDifferences, padded_tiles) {
  // Ten rows in four parts: the reference makes twelve of them, we cut 3, 3, 2, 2.
  const MappingFile rows = mapping("OY, 4", "OX, 4");
  const Workload workload = fused(two_convolutions(10), rows);
  EXPECT_EQ(workload.layers[0].dims[6].name, "OY");
  EXPECT_EQ(workload.layers[0].dims[6].size, 12);
  EXPECT_EQ(range_of(workload, 15, "OX"), (Interval{9, 12}));
  const TileGraph ours = default_tiles(two_convolutions(10), rows);
  std::int64_t last = 0;
  for (std::uint32_t tile = 0; tile < ours.operators[0].last; ++tile) {
    for (const Interval& range : ours.ranges(TileId(tile)))
      last = std::max(last, range.end);
  }
  EXPECT_EQ(last, 10);
}

TEST(StreamDifferences, padding_counts_as_data) {
  const Workload workload = fused(two_convolutions(8), mapping("OY, 8", ""));
  EXPECT_EQ(range_of(workload, 0, "IY"), (Interval{-1, 2}));
  EXPECT_EQ(range_of(workload, 0, "IX"), (Interval{-1, 9}));
  const Tensor& image = workload.tensors[workload.tiles[0].tensors[1]];
  EXPECT_EQ(image.bits.value, 3 * 3 * 10 * 8); // C, IY, IX, bits; of 3 x 2 x 8 real elements
}

TEST(StreamDifferences, whole_tiles_move) {
  // The second convolution needs 3 of the 4 rows that a neighbour makes, or 1; it gets all 4.
  const Workload workload = fused(two_convolutions(8), mapping("OY, 2", ""));
  for (const Edge& edge : workload.edges) {
    EXPECT_EQ(edge.bits.value, edge.carries_data() ? 8 * 4 * 8 * 8 : 0);
  }
  EXPECT_EQ(producers(workload, 1, 1), (std::vector<std::uint32_t>{0, 1}));
}

TEST(StreamDifferences, lone_layers_lose_their_tiling) {
  StreamOptions options;
  options.stacks = {{0}};
  const Workload workload =
      make_stream_workload(two_convolutions(10), quad(), mapping("OY, 4", "K, 4"), options);
  EXPECT_TRUE(workload.layers[0].alone);
  EXPECT_TRUE(workload.layers[0].intra.empty());
  EXPECT_EQ(workload.layers[0].tiles, 4);
  EXPECT_EQ(workload.layers[0].dims[6].size, 12) << "rounded up for a factor that is gone";
}

TEST(StreamDifferences, elements_have_eight_bits) {
  StreamNetwork net;
  Attributes bits;
  bits.set("act_size", std::int64_t{4});
  bits.set("weight_size", std::int64_t{2});
  const TensorId x = net.input({1, 8, 16});
  net.op("MatMul", {x, net.weight({16, 4})}, {1, 8, 4}, bits);
  net.product(x, 4);
  const Workload workload = fused(net.graph, mapping("", ""));
  const auto bits_of = [&](std::uint32_t layer, Operand operand) {
    return workload.layers[layer].operands[static_cast<std::size_t>(operand)].bits;
  };
  EXPECT_EQ(bits_of(0, Operand::I), 4);
  EXPECT_EQ(bits_of(0, Operand::W), 2);
  EXPECT_EQ(workload.layers[0].operands[0].partial_bits, 8);
  EXPECT_EQ(bits_of(1, Operand::I), 8);
  EXPECT_EQ(workload.layers[1].operands[0].partial_bits, 16);
}

TEST(StreamDifferences, free_operators) {
  StreamNetwork net;
  const TensorId x = net.conv(net.input({1, 3, 8, 8}), 8, 3);
  const TensorId clipped = net.op("Clip", {x}, net.shape(x));
  net.conv(clipped, 8, 3);
  const Workload workload = fused(net.graph, mapping("OY, 8", ""));
  EXPECT_EQ(workload.layers.size(), 2);
  EXPECT_EQ(workload.layers[1].id, 2) << "the clip keeps its id";
  EXPECT_EQ(producers(workload, 1, 3), (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(default_tiles(net.graph, mapping("", "")).operators.size(), 3);
}

TEST(StreamDifferences, pooling_counts_channels_twice) {
  StreamNetwork net;
  net.max_pool(net.conv(net.input({1, 3, 8, 8}), 16, 3), 3, 2);
  const auto operations = [](const Workload& workload) {
    std::int64_t all = 1;
    for (const Dim& dim : workload.layers[1].dims)
      all *= dim.parsed;
    return all;
  };
  EXPECT_EQ(operations(fused(net.graph, mapping("", ""))), 16 * 16 * 4 * 4 * 3 * 3);
  StreamOptions once;
  once.pools_channels_twice = false;
  EXPECT_EQ(operations(fused(net.graph, mapping("", ""), once)), 16 * 4 * 4 * 3 * 3);
}

TEST(StreamDifferences, a_pooled_input_is_read_by_nobody) {
  StreamNetwork net;
  net.max_pool(net.input({1, 4, 8, 8}), 3, 2);
  const Workload workload = fused(net.graph, mapping("", ""));
  EXPECT_EQ(workload.layers[0].operands[1].source, Source::absent);
  EXPECT_THAT(workload.layers[0].constants, ElementsAre(Operand::W));
}

TEST(StreamDifferences, axes_compare_by_place) {
  // A convolution calls ONNX's height X and writes Y before X: of an image that is not square,
  // its columns meet the rows of the layer that reads it.
  StreamNetwork net;
  net.relu(net.conv(net.input({1, 3, 4, 16}), 8, 3));
  const Workload workload = fused(net.graph, rows_and("OY"));
  // The convolution is cut into columns of 4, the activation into rows of 1: by place, each row
  // finds its elements in the first column.
  EXPECT_EQ(producers(workload, 1, 3), (std::vector<std::uint32_t>{0}));
}

TEST(StreamDifferences, broadcast_axes_count_in_full) {
  // A factor per channel, of one element: tiles of other rows do not wait for it.
  StreamNetwork net;
  const TensorId x = net.conv(net.input({1, 3, 8, 8}), 8, 3);
  const TensorId mean = net.op("GlobalAveragePool", {x}, {1, 8, 1, 1});
  net.op("Mul", {x, mean}, net.shape(x));
  const Workload workload = fused(net.graph, mapping("D, 4", ""));
  const Layer& scale = workload.layers[2];
  EXPECT_EQ(scale.operands[2].axes.size(), 4);
  const auto waits_for_mean = [&](std::uint32_t sub) {
    const auto edges = workload.edges_into(scale.first_tile + sub);
    return std::any_of(edges.begin(), edges.end(),
                       [](const Edge& edge) { return edge.operand == Operand::W; });
  };
  EXPECT_TRUE(waits_for_mean(0));
  EXPECT_FALSE(waits_for_mean(1));
}

TEST(StreamDifferences, one_edge_between_two_tiles) {
  StreamNetwork net;
  const TensorId x = net.relu(net.conv(net.input({1, 3, 8, 8}), 8, 3));
  net.op("Mul", {x, x}, net.shape(x));
  const Workload workload = fused(net.graph, mapping("D, 4", ""));
  const auto edges = workload.edges_into(workload.layers[2].first_tile);
  ASSERT_EQ(edges.size(), 1);
  EXPECT_EQ(edges[0].operand, Operand::I);
}

TEST(StreamDifferences, layout_operators_beside_convolutions) {
  StreamNetwork net;
  const TensorId x = net.conv(net.input({1, 3, 16, 16}), 8, 3);
  net.conv(net.reshape(x, {1, 8, 16, 16}), 8, 3);
  const Workload workload = fused(net.graph, quad_mapping());
  EXPECT_EQ(data_edges(workload), 480);
  EXPECT_TRUE(producers(workload, 1, 0).empty()) << "the padded first row";
  // What is right: all four channel parts of the rows around.
  Network network = parse_network(net.graph, quad(), quad_mapping());
  network.layers = workload.layers;
  std::vector<RawEdge> edges;
  ASSERT_TRUE(add_layout_edges(workload, net.graph, network, {0, 2, true}, true, edges));
  EXPECT_EQ(edges.size(), 736);
}

TEST(StreamDifferences, layout_where_the_reference_stops) {
  // Conv -> Reshape -> Relu fails an assertion there: five axes of the layer, four of the tensor.
  StreamNetwork net;
  const TensorId x = net.conv(net.input({1, 3, 16, 16}), 8, 3);
  net.relu(net.reshape(x, {1, 8, 16, 16}));
  const Workload workload = fused(net.graph, rows_and("OX"));
  EXPECT_THAT(note_names(workload), Contains("layout"));
  for (std::uint32_t sub = 0; sub < workload.layers[1].tiles; ++sub)
    EXPECT_EQ(producers(workload, 1, sub), (std::vector<std::uint32_t>{sub}));
}

TEST(StreamDifferences, joined_results_where_the_reference_stops) {
  StreamNetwork net;
  const TensorId x = net.input({1, 3, 8, 8});
  const TensorId a = net.conv(x, 4, 3);
  const TensorId b = net.conv(x, 4, 3);
  Attributes axis;
  axis.set("axis", std::int64_t{1});
  net.conv(net.op("Concat", {a, b}, {1, 8, 8, 8}, axis), 4, 1);
  const Workload workload = fused(net.graph, mapping("OX, 4", ""));
  EXPECT_THAT(note_names(workload), Contains("layout"));
  EXPECT_EQ(producers(workload, 2, 1), (std::vector<std::uint32_t>{1, 1}));
}

TEST(StreamDifferences, cut_out_and_split_tensors) {
  StreamNetwork net;
  const TensorId x = net.product(net.input({1, 8, 16}), 16);
  Attributes axis;
  axis.set("axis", std::int64_t{1});
  Operator split;
  split.name = "split";
  split.op_type = "Split";
  split.attributes = axis;
  split.inputs = {x};
  for (const char* name : {"upper", "lower"}) {
    monet::Tensor part;
    part.name = name;
    part.shape = {1, 4, 16};
    split.outputs.emplace_back(net.graph.add_tensor(part));
  }
  const std::vector<std::optional<TensorId>> parts = split.outputs;
  net.graph.add_operator(split);
  net.relu(*parts[1]);
  const TensorId rows = net.op(
      "Slice", {x, net.integers({2}), net.integers({6}), net.integers({1}), net.integers({1})},
      {1, 4, 16});
  net.relu(rows);
  const Workload workload =
      fused(net.graph, parse_mapping(mapping_entry("default", "0", "H, 4", "") +
                                         mapping_entry("MatMul", "0", "D, 4", ""),
                                     "m.yaml"));
  // Products are cut into pairs of rows, activations into single ones.
  EXPECT_THAT(note_names(workload), Contains("layout")) << "sizes of the split are no input";
  EXPECT_EQ(producers(workload, 1, 0), (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(producers(workload, 1, 3), (std::vector<std::uint32_t>{3}));
  EXPECT_EQ(producers(workload, 2, 0), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(producers(workload, 2, 3), (std::vector<std::uint32_t>{2}));
}

TEST(StreamDifferences, layout_operators_read_by_two_operands) {
  StreamNetwork net;
  const TensorId x = net.transpose(net.product(net.input({1, 8, 8}), 8), {0, 1, 2});
  net.op("MatMul", {x, x}, {1, 8, 8});
  const Workload workload = fused(net.graph, mapping("D, 4", ""));
  for (const Edge& edge : workload.edges_into(workload.layers[1].first_tile))
    EXPECT_EQ(edge.operand, Operand::W); // all rows, and by luck those of I among them
}

TEST(StreamDifferences, a_slice_looks_at_its_first_axis) {
  StreamNetwork net;
  const TensorId x = net.product(net.input({1, 8, 16}), 16);
  const TensorId cut = net.op(
      "Slice",
      {x, net.integers({2, 0}), net.integers({6, 4}), net.integers({1, 2}), net.integers({1, 1})},
      {1, 4, 4});
  net.relu(cut);
  const MappingFile columns = parse_mapping(mapping_entry("default", "0", "H, 2", "") +
                                                mapping_entry("MatMul", "0", "K, 2", ""),
                                            "m.yaml");
  const Workload workload = fused(net.graph, columns);
  EXPECT_EQ(producers(workload, 1, 0), (std::vector<std::uint32_t>{0}));
  // Columns 4 to 7 would be others; the reference still looks for them in the first four.
  const TensorId right = net.op(
      "Slice",
      {x, net.integers({2, 8}), net.integers({6, 12}), net.integers({1, 2}), net.integers({1, 1})},
      {1, 4, 4});
  net.relu(right);
  const Workload both = fused(net.graph, columns);
  EXPECT_EQ(producers(both, 2, 0), (std::vector<std::uint32_t>{0}));
}

TEST(StreamDifferences, an_axis_left_out_is_the_last) {
  // Flatten's axis is 1 in ONNX where it is left out; the reference takes the last one.
  StreamNetwork net;
  const TensorId x = net.conv(net.input({1, 3, 8, 8}), 8, 3);
  const TensorId mean = net.op("GlobalAveragePool", {x}, {1, 8, 1, 1});
  net.product(net.op("Flatten", {mean}, {1, 8}), 4);
  const Workload workload = fused(net.graph, mapping("K, 2", ""));
  EXPECT_EQ(producers(workload, 2, 0), (std::vector<std::uint32_t>{0}));
  StreamNetwork given;
  Attributes axis;
  axis.set("axis", std::int64_t{1});
  const TensorId y = given.conv(given.input({1, 3, 8, 8}), 8, 3);
  const TensorId flat =
      given.op("Flatten", {given.op("GlobalAveragePool", {y}, {1, 8, 1, 1})}, {1, 8}, axis);
  given.product(flat, 4);
  EXPECT_EQ(producers(fused(given.graph, mapping("K, 2", "")), 2, 0),
            (std::vector<std::uint32_t>{0, 1}));
}

TEST(StreamDifferences, other_number_of_axes) {
  // Global pooling, a squeeze (a dummy there) and a product: boxes of four axes against two.
  StreamNetwork net;
  const TensorId x = net.conv(net.input({1, 3, 8, 8}), 8, 3);
  const TensorId mean = net.op("GlobalAveragePool", {x}, {1, 8, 1, 1});
  net.product(net.op("Squeeze", {mean}, {1, 8}), 4);
  const Workload workload = fused(net.graph, mapping("K, 2", ""));
  EXPECT_THAT(note_names(workload), Contains("rank"));
  EXPECT_EQ(producers(workload, 2, 0), (std::vector<std::uint32_t>{0, 1}));
}

TEST(StreamDifferences, steps_that_are_no_multiples) {
  const MappingFile uneven = parse_mapping(
      mapping_entry("default", "0", "OY, 2", "") + mapping_entry("n1", "0", "OY, 3", ""), "m.yaml");
  const Workload workload = fused(two_convolutions(12), uneven);
  EXPECT_THAT(note_names(workload), Contains("uneven-slots"));
  EXPECT_EQ(workload.order.size(), 5);
  EXPECT_THAT(workload.order, ElementsAre(0, 2, 1, 3, 4));
}

TEST(StreamDifferences, factors_left_to_the_tool) {
  const Workload workload = fused(two_convolutions(8), mapping("OY, 2", "K, *"));
  EXPECT_THAT(note_names(workload), Contains("wildcard"));
  EXPECT_EQ(workload.layers[0].inter_splits, 4);
}

TEST(StreamDifferences, a_shorter_way_through_a_layer) {
  // From the first layer to the last: over two dummies, or shorter over an activation.
  StreamNetwork net;
  const TensorId x = net.product(net.input({1, 8, 16}), 16);
  const TensorId dummies = net.op("Clip", {net.op("Clip", {x}, {1, 8, 16})}, {1, 8, 16});
  net.add(net.relu(x), dummies);
  const Workload workload = fused(net.graph, mapping("H, 8", ""));
  EXPECT_THAT(note_names(workload), Contains("shorter-way"));
  EXPECT_EQ(workload.edges_into(workload.layers[2].first_tile).size(), 2);
}

TEST(StreamDifferences, more_axes_than_names) {
  StreamNetwork net;
  net.relu(net.relu(net.input({2, 3, 4, 5, 6})));
  const Workload workload = fused(net.graph, mapping("D, 4", ""));
  EXPECT_THAT(note_names(workload), Contains("many-axes"));
  EXPECT_EQ(workload.layers[0].dims.size(), 5);
  EXPECT_EQ(producers(workload, 1, 3), (std::vector<std::uint32_t>{3}));
}

TEST(StreamErrors, cores_that_the_chip_lacks) {
  try {
    fused(two_convolutions(8), mapping("", "", "0, 6, 9"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 2);
    EXPECT_THAT(error.what(), HasSubstr("m.yaml:1"));
    EXPECT_THAT(error.what(), HasSubstr("names core 9, but the chip's cores are 0 to 5"));
  }
}

TEST(StreamErrors, no_default_entry) {
  EXPECT_THROW(
      fused(two_convolutions(8), parse_mapping(mapping_entry("Conv", "0", "", ""), "m.yaml")),
      InputError);
}

TEST(StreamErrors, a_layer_in_two_stacks) {
  StreamOptions options;
  options.stacks = {{0, 1}, {1}};
  EXPECT_THROW(make_stream_workload(two_convolutions(8), quad(), mapping("", ""), options),
               InputError);
}

TEST(StreamErrors, too_many_tiles) {
  StreamNetwork net;
  net.conv(net.input({1, 64, 4096, 4096}), 64, 3);
  const MappingFile tiny = parse_mapping("- name: default\n  core_allocation: [0]\n"
                                         "  intra_core_tiling: ['OY, all', 'OX, all', 'K, all']\n",
                                         "m.yaml");
  EXPECT_EQ(fused(net.graph, tiny).tiles.size(), 1) << "alone in its stack";
  net.graph = {};
  net.relu(net.conv(net.input({1, 64, 4096, 4096}), 64, 3));
  EXPECT_THROW(fused(net.graph, tiny), InfeasibleError);
}

TEST(StreamErrors, all_notes_are_told_once) {
  StreamNetwork net;
  net.op("Softmax", {net.input({2, 3, 4, 5, 6})}, {2, 3, 4, 5, 6});
  const Workload workload = fused(net.graph, mapping("", ""));
  std::set<std::string> texts;
  for (const Note& note : workload.notes)
    texts.insert(note.name + note.node + note.what);
  EXPECT_EQ(texts.size(), workload.notes.size());
}

} // namespace MONET_TEST_FILE
} // namespace monet::stream
