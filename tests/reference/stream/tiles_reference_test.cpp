// stream-coala's tiles, edges and order against runs of the reference scheduler: counts, and
// digests over everything that its scheduler looks at.
#include "reference/stream/tiles_digest.hpp"
#include "reference/stream/tiles_networks.hpp"
#include "schedule/small_steps.hpp"

#include "monet/reference/stream_tiles.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace monet::stream {
namespace MONET_TEST_FILE {

using monet::testing::Digest;
using monet::testing::make_chip;
using monet::testing::mapping_entry;
using monet::testing::quad_mapping;

/// Id, sub id, group, core, final; per operand O, I, W: sub id of the tensor's origin, bits, base
/// priority (0 when it is no constant), or -1, 0, 0.
std::uint64_t tile_digest(const Workload& workload) {
  Digest digest;
  for (const Tile& tile : workload.tiles) {
    for (const std::int64_t value :
         {std::int64_t{workload.layers[tile.layer].id}, std::int64_t{tile.sub},
          std::int64_t{tile.group}, std::int64_t{tile.core.value},
          std::int64_t{tile.final_output ? 1 : 0}})
      digest.add(value);
    for (const std::uint32_t index : tile.tensors) {
      const bool present = index != kNone;
      const Tensor tensor = present ? workload.tensors[index] : Tensor{};
      digest.add(present ? std::int64_t{workload.tiles[tensor.tile].sub} : -1);
      digest.add(tensor.bits.value);
      digest.add(tensor.base_priority);
    }
  }
  return digest.value();
}

/// By consumer, then producer: both ends as (id, sub id), operand (0 = order only), bits.
std::uint64_t edge_digest(const Workload& workload) {
  Digest digest;
  for (std::uint32_t to = 0; to < workload.tiles.size(); ++to) {
    for (const Edge& edge : workload.edges_into(to)) {
      for (const std::uint32_t end : {edge.from, to}) {
        digest.add(workload.layers[workload.tiles[end].layer].id);
        digest.add(workload.tiles[end].sub);
      }
      digest.add(static_cast<std::int64_t>(edge.operand));
      digest.add(edge.bits.value);
    }
  }
  return digest.value();
}

std::uint64_t order_digest(const Workload& workload) {
  Digest digest;
  for (const std::uint32_t tile : workload.order) {
    digest.add(workload.layers[workload.tiles[tile].layer].id);
    digest.add(workload.tiles[tile].sub);
  }
  return digest.value();
}

struct Run {
  const char* name;
  std::size_t tiles, edges, data_edges;
  std::uint64_t tile_digest, edge_digest, order_digest;
};

void expect_run(const Workload& workload, const Run& run) {
  SCOPED_TRACE(run.name);
  EXPECT_EQ(workload.tiles.size(), run.tiles);
  EXPECT_EQ(workload.edges.size(), run.edges);
  std::size_t data = 0;
  for (const Edge& edge : workload.edges)
    data += edge.carries_data() ? 1 : 0;
  EXPECT_EQ(data, run.data_edges);
  EXPECT_EQ(tile_digest(workload), run.tile_digest);
  EXPECT_EQ(edge_digest(workload), run.edge_digest);
  EXPECT_EQ(order_digest(workload), run.order_digest);
}

/// Weight memories like tpu_like_quad_core's: 4 of 2 MB and 2 of 128 kB, here spread evenly.
Chip quad() {
  return make_chip({.cores = 6, .core_bits = (4 * (std::int64_t{1} << 24) + (1 << 21)) / 6});
}

StreamOptions one_stack(int nodes) {
  StreamOptions options;
  options.stacks.emplace_back(nodes);
  std::iota(options.stacks[0].begin(), options.stacks[0].end(), 0);
  return options;
}

StreamOptions layer_by_layer() {
  return {StreamOptions::Mode::layer_by_layer, {}};
}

TEST(StreamTiles, TheFirstEightNodesOfResnet18) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(
      make_stream_workload(network, quad(), quad_mapping(), one_stack(8)),
      {"fused", 1904, 9058, 7180, 0xa1f91df5a490cb7d, 0xf71a504969ecace1, 0xca45d92ad3fadb25});
  expect_run(
      make_stream_workload(network, quad(), quad_mapping(), layer_by_layer()),
      {"layer by layer", 26, 65, 65, 0x32e4a4a7f10e2520, 0x85cc1b4af73d36f8, 0x5642e6ba8cd0c021});
  StreamOptions two;
  two.stacks = {{0, 1, 2}, {3, 4, 5, 6}};
  expect_run(
      make_stream_workload(network, quad(), quad_mapping(), two),
      {"two stacks", 1684, 8838, 7180, 0x46d9a4f8e62ce2bd, 0x172263d76d58dec1, 0x20c7baa8b600f3c5});
  expect_run(
      make_stream_workload(network, quad(), quad_mapping("4", "4", "4"), one_stack(8)),
      {"4 steps", 104, 470, 392, 0xda18dc19a42cc60d, 0xa814831c9a6edad5, 0xa20a3b4b37c946a5});
  const MappingFile free =
      parse_mapping(mapping_entry("default", "0, 1, 2, 3", "D, all", "H, 1") +
                        mapping_entry("Conv", "0, 1, 2, 3", "OY, all", "K, 1") +
                        mapping_entry("Relu", "5", "D, all", "H, 1") +
                        mapping_entry("Add", "5", "D, all", "H, 1") +
                        mapping_entry("MaxPool", "4", "OY, all", "K, 1"),
                    "free.yaml");
  expect_run(make_stream_workload(network, quad(), free, one_stack(8)),
             {"one core each", 560, 1387, 835, 0xc68b23dccdac322d, 0xbd20df6d043396a8,
              0x7d8526216a4bc325});
  const MappingFile bare = parse_mapping(mapping_entry("default", "0", "", "") +
                                             mapping_entry("Conv", "0, 1, 2, 3", "", "K, 4"),
                                         "bare.yaml");
  expect_run(make_stream_workload(network, quad(), bare, layer_by_layer()),
             {"hardly any mapping", 17, 23, 23, 0x438cc2f496067067, 0xd1d5a319d644ed30,
              0xc4122676b4b57e63});
}

TEST(StreamTiles, Resnet18) {
  const Graph network = monet::testing::resnet18(8);
  expect_run(make_stream_workload(network, quad(), quad_mapping(), one_stack(22)),
             {"22 layers fused", 3863, 25213, 21509, 0x69e5275e83014b1f, 0xec2e884340ec0b82,
              0x3e6c38f46533c51b});
  expect_run(make_stream_workload(network, quad(), quad_mapping()),
             {"as many layers as fit", 4618, 30500, 26041, 0x7fdb64d1cc6811d7, 0x61ad9bbe0659724f,
              0xb051e0f51ebc17d7});
  expect_run(make_stream_workload(network, quad(), quad_mapping(), layer_by_layer()),
             {"layer by layer", 159, 538, 538, 0xd88c8aaef6b4f1e8, 0x9ec028a23c25bcaf,
              0x0b6315e261767645});
}

TEST(StreamTiles, FactorsThatDoNotDivide) {
  const Graph network = monet::testing::resnet18_end();
  expect_run(
      make_stream_workload(network, quad(), quad_mapping("16", "16", "all", "H"), one_stack(11)),
      {"16 steps of 7 rows", 266, 1364, 1136, 0x1e28d5665fc59160, 0xe09fa126696ea595,
       0x9b9b231f034f37e8});
}

TEST(StreamTiles, DepthwiseConvolutionsAndDummies) {
  expect_run(
      make_stream_workload(monet::testing::mobilenet_beginning(), quad(), quad_mapping(),
                           one_stack(12)),
      {"mobilenet", 1736, 6186, 4468, 0x7cad791e14b5e41d, 0x4b0606c20085f0d1, 0x434ee16f8af69165});
}

TEST(StreamTiles, AttentionOverReshapesAndTransposes) {
  const Graph network = monet::testing::attention();
  const MappingFile by_columns =
      parse_mapping(mapping_entry("default", "0, 1, 2, 3", "D, 4", "H, 4") +
                        mapping_entry("MatMul", "0, 1, 2, 3", "D, 4", "K, 4") +
                        mapping_entry("Add", "0, 1, 2, 3", "H, 4", "D, 4"),
                    "attention.yaml");
  expect_run(make_stream_workload(network, quad(), by_columns, one_stack(30)),
             {"columns over cores", 176, 868, 736, 0x17ce9ae00c40cf45, 0x721778898a01b3a5,
              0xf941ff275b587925});
  expect_run(
      make_stream_workload(network, quad(), by_columns, layer_by_layer()),
      {"layer by layer", 44, 136, 136, 0x37221bf5bbb47b05, 0x68581532eb6b0f2d, 0xbd4cda4e961806a5});
  const MappingFile by_rows = parse_mapping(mapping_entry("default", "0, 1, 2, 3", "D, 4", "D, 4") +
                                                mapping_entry("Add", "0, 1, 2, 3", "H, 4", "H, 4"),
                                            "attention.yaml");
  expect_run(make_stream_workload(network, quad(), by_rows, one_stack(30)),
             {"rows over cores", 176, 820, 688, 0xc9e8db647f322985, 0x436536823d6326a5,
              0xf941ff275b587925});
}

TEST(StreamTiles, TheMistakeOfAReshapeBetweenConvolutions) {
  monet::testing::StreamNetwork net;
  const TensorId first = net.conv(net.input({1, 3, 16, 16}), 8, 3);
  net.conv(net.reshape(first, {1, 8, 16, 16}), 8, 3);
  expect_run(make_stream_workload(net.graph, quad(), quad_mapping(), one_stack(3)),
             {"480 edges where 736 are right", 128, 600, 480, 0xeff93379098571a5,
              0x79bbb1b0e41463e5, 0xc9477baafb47eb25});
}

} // namespace MONET_TEST_FILE
} // namespace monet::stream
