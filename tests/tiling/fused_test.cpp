// Stacks of a few operators, small enough to see every tile.
#include "schedule/small_steps.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/tiling/tiling.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace monet {
namespace {

using ::testing::ElementsAre;
using testing::make_chip;
using testing::StepBuilder;

/// Three taps over the tensor `of` of `rows` rows: out[i] = sum in[stride * i + f - 1].
TensorId taps(StepBuilder& builder, const std::string& name, TensorId of, std::int64_t stride = 1) {
  const TensorId out = builder.elementwise(name, {of});
  Operator& op = builder.graph().op(*builder.graph().tensor(out).producer);
  const std::int64_t rows = builder.graph().tensor(of).shape[0] / stride;
  builder.graph().tensor(out).shape = {rows};
  op.nest.compute = ComputeKind::mac;
  op.nest.dims = {{"OY", rows}, {"FY", 3}};
  op.nest.operands[1].axes = {{{{0, stride}, {1, 1}}, -1, false}};
  return out;
}

/// 16 rows, two times three taps, then one operator per row.
struct Rows {
  StepBuilder builder;
  explicit Rows(std::int64_t rows = 16) {
    const TensorId x = builder.source("x", {rows}, TensorKind::input);
    const TensorId a = taps(builder, "a", x);
    const TensorId b = taps(builder, "b", a);
    builder.output(builder.elementwise("c", {b}));
  }
  static MappingFile by_rows(TilingFactor factor) {
    MappingFile mapping;
    MappingEntry entry;
    entry.name = "op_c";
    entry.intra_core_tiling = {std::move(factor)};
    mapping.entries = {entry};
    return mapping;
  }
  TileGraph tiles(Halo halo, const MappingFile& mapping, int cores = 1) const {
    TilingOptions options{&mapping, TilingMode::fused, {{{OpId(0), OpId(1), OpId(2)}}}, halo};
    TileGraph tiles = make_tiles(builder.step(), make_chip({.cores = cores}), options);
    verify(tiles, builder.step());
    return tiles;
  }
};

std::vector<std::pair<std::int64_t, std::int64_t>> parts(const TileGraph& tiles, std::size_t op) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (const Interval part : tiles.operators[op].parts[0])
    result.emplace_back(part.begin, part.end);
  return result;
}

/// Names of the tiles in the order of scheduling: operator and number within it.
std::vector<std::string> in_order(const TileGraph& tiles) {
  std::vector<std::string> names(tiles.tiles.size());
  for (std::size_t t = 0; t < names.size(); ++t) {
    const OpId op = tiles.tiles[t].op;
    names[tiles.rank[t]] =
        fmt::format("{}{}", "abcdefgh"[op.index()], t - tiles.operators[op.index()].first);
  }
  return names;
}

TEST(FusedTiles, slices_pull_what_they_need_from_their_producers) {
  // c in slices of 4 rows: b the same, a one row ahead because b reads row i + 1.
  const TileGraph tiles = Rows().tiles(Halo::cached, Rows::by_rows({"B", {}, 4}));
  EXPECT_THAT(parts(tiles, 2),
              ElementsAre(std::pair(0, 4), std::pair(4, 8), std::pair(8, 12), std::pair(12, 16)));
  EXPECT_EQ(parts(tiles, 1), parts(tiles, 2));
  EXPECT_THAT(parts(tiles, 0),
              ElementsAre(std::pair(0, 5), std::pair(5, 9), std::pair(9, 13), std::pair(13, 16)));
  EXPECT_THAT(in_order(tiles),
              ElementsAre("a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"));
  // b1 reads a[3, 9): rows 3 and 4 of a0, a1 as a whole.
  const auto edges = tiles.edges_into(TileId(tiles.operators[1].first + 1));
  ASSERT_EQ(edges.size(), 2U);
  EXPECT_EQ(edges[0].bits.value, 2 * 32);
  EXPECT_EQ(edges[1].bits.value, 4 * 32);
}

TEST(FusedTiles, slices_pull_every_iteration_that_writes_a_row) {
  // a writes rows 2 i and 2 i + 1; c in slices of 4, 3, 3, 3 and 3 rows needs their halves, rounded
  // up.
  StepBuilder builder;
  const TensorId a = builder.elementwise("a", {builder.source("x", {8}, TensorKind::input)});
  builder.graph().tensor(a).shape = {16};
  LoopNest& nest = builder.graph().op(OpId(0)).nest;
  nest.dims = {{"OY", 8}, {"F", 2}};
  nest.operands[0].axes = {{{{0, 2}, {1, 1}}, 0, false}};
  builder.output(builder.elementwise("c", {a}));
  const MappingFile mapping = Rows::by_rows({"B", {}, 5});
  const TileGraph tiles =
      make_tiles(builder.step(), make_chip({}),
                 {&mapping, TilingMode::fused, {{{OpId(0), OpId(1)}}}, Halo::cached});
  EXPECT_THAT(parts(tiles, 1), ElementsAre(std::pair(0, 4), std::pair(4, 7), std::pair(7, 10),
                                           std::pair(10, 13), std::pair(13, 16)));
  EXPECT_THAT(parts(tiles, 0), ElementsAre(std::pair(0, 2), std::pair(2, 4), std::pair(4, 5),
                                           std::pair(5, 7), std::pair(7, 8)));
}

TEST(FusedTiles, slices_that_need_nothing_new_are_left_out) {
  // Slices of one row: a is two rows ahead of c... the last slices of b and c find all of a there.
  const TileGraph tiles =
      Rows(4).tiles(Halo::cached, Rows::by_rows({"B", TilingFactor::Amount::all, 1}));
  EXPECT_THAT(parts(tiles, 0), ElementsAre(std::pair(0, 2), std::pair(2, 3), std::pair(3, 4)));
  EXPECT_EQ(tiles.operators[1].size(), 4U);
}

TEST(FusedTiles, recomputed_halos_make_slices_independent) {
  const TileGraph tiles = Rows().tiles(Halo::recomputed, Rows::by_rows({"B", {}, 4}));
  EXPECT_THAT(parts(tiles, 0),
              ElementsAre(std::pair(0, 5), std::pair(3, 9), std::pair(7, 13), std::pair(11, 16)));
  // Each of the three inner borders makes two rows twice, of three taps each.
  EXPECT_EQ(recomputed_macs(tiles, Rows().builder.step().graph), 3 * 2 * 3);
  for (std::uint32_t slice = 0; slice < 4; ++slice) {
    const auto edges = tiles.edges_into(TileId(tiles.operators[1].first + slice));
    ASSERT_EQ(edges.size(), 1U);
    EXPECT_EQ(edges[0].from, TileId(tiles.operators[0].first + slice));
  }
}

TEST(FusedTiles, given_factors_cut_evenly_and_consumers_wait_for_halos) {
  // Every operator in four even slices: b0 needs row 4 of a, which is in a1.
  MappingFile mapping = Rows::by_rows({"B", {}, 4});
  for (const char* name : {"op_a", "op_b"}) {
    MappingEntry entry;
    entry.name = name;
    entry.intra_core_tiling = {{"OY", {}, 4}};
    mapping.entries.push_back(entry);
  }
  const TileGraph tiles = Rows().tiles(Halo::cached, mapping);
  EXPECT_EQ(parts(tiles, 0), parts(tiles, 2));
  EXPECT_THAT(in_order(tiles),
              ElementsAre("a0", "a1", "b0", "c0", "a2", "b1", "c1", "a3", "b2", "b3", "c2", "c3"));
}

TEST(FusedTiles, the_first_of_several_factors_varies_fastest) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {4, 4}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  builder.output(builder.elementwise("b", {a}));
  MappingFile mapping;
  for (const char* name : {"op_a", "op_b"}) {
    MappingEntry entry;
    entry.name = name;
    entry.intra_core_tiling = {{"D1", {}, 2}, {"B", {}, 2}};
    mapping.entries.push_back(entry);
  }
  const TilingOptions options{&mapping, TilingMode::fused, {{{OpId(0), OpId(1)}}}, Halo::cached};
  const TileGraph tiles = make_tiles(builder.step(), make_chip({}), options);
  verify(tiles, builder.step());
  std::vector<std::pair<std::int64_t, std::int64_t>> begins(tiles.tiles.size());
  for (std::size_t t = 0; t < begins.size(); ++t) {
    const auto ranges = tiles.ranges(TileId(t));
    begins[tiles.rank[t]] = {ranges[0].begin, ranges[1].begin};
  }
  using Begin = std::pair<std::int64_t, std::int64_t>;
  EXPECT_THAT(begins, ElementsAre(Begin{0, 0}, Begin{0, 0}, Begin{0, 2}, Begin{0, 2}, Begin{2, 0},
                                  Begin{2, 0}, Begin{2, 2}, Begin{2, 2}));
}

TEST(FusedTiles, slices_are_shared_out_over_cores) {
  MappingFile mapping = Rows::by_rows({"B", {}, 4});
  mapping.entries[0].inter_core_tiling = {{"B", {}, 3}};
  const TileGraph tiles = Rows().tiles(Halo::cached, mapping, 3);
  EXPECT_EQ(tiles.operators[2].size(), 12U);
  for (std::uint32_t i = 0; i < 12; ++i)
    EXPECT_EQ(tiles.tiles[tiles.operators[2].first + i].core, CoreId(i % 3));
  EXPECT_EQ(tiles.ranges(TileId(tiles.operators[2].first + 4))[0], (Interval{6, 7}));
}

TEST(FusedTiles, rows_that_interleave_in_some_slice_are_not_shared_out) {
  // out[2 * IY + FY]: both values of FY write between each other's rows as soon as a slice has two
  // of IY. The slice in the middle has one.
  StepBuilder builder;
  const TensorId x = builder.source("x", {8}, TensorKind::input);
  const TensorId up = builder.elementwise("up", {x});
  builder.graph().tensor(up).shape = {16};
  Operator& op = builder.graph().op(*builder.graph().tensor(up).producer);
  op.nest.compute = ComputeKind::mac;
  op.nest.dims = {{"IY", 8}, {"FY", 2}, {"C", 4096}};
  op.nest.operands[0].mode = AccessMode::accumulate;
  op.nest.operands[0].axes = {{{{0, 2}, {1, 1}}, 0, false}};
  op.nest.operands[1].axes = {{{{0, 1}}, 0, false}};
  builder.output(builder.elementwise("c", {up}));
  MappingFile mapping;
  MappingEntry entry;
  entry.name = "op_up";
  entry.intra_core_tiling = {{"IY", {}, 6}};
  mapping.entries = {entry};
  const TilingOptions options{&mapping, TilingMode::fused, {{{OpId(0), OpId(1)}}}, Halo::cached};
  const TileGraph tiles = make_tiles(builder.step(), make_chip({.cores = 2}), options);
  verify(tiles, builder.step());
  ASSERT_EQ(tiles.operators[0].parts[0].size(), 6U);
  EXPECT_EQ(tiles.operators[0].parts[1].size(), 1U);
}

TEST(FusedTiles, sums_over_slices_form_a_chain) {
  // dw[c][k] += x[b][c] * dy[b][k] in four slices of b; the update waits for the last of them.
  StepBuilder builder;
  const TensorId x = builder.source("x", {8, 4}, TensorKind::input);
  const TensorId dy = builder.elementwise("dy", {builder.source("z", {8, 4}, TensorKind::input)});
  const TensorId dw = builder.product("dw", x, dy, Phase::backward);
  LoopNest& nest = builder.graph().op(OpId(1)).nest;
  const auto loop = [](std::uint32_t dim) { return AxisExpr{{{dim, 1}}, 0, false}; };
  nest.dims = {{"B", 8}, {"K", 4}, {"C", 4}};
  builder.graph().tensor(dw).shape = {4, 4};
  nest.operands[0].axes = {loop(2), loop(1)};
  nest.operands[1].axes = {loop(0), loop(2)};
  nest.operands[2].axes = {loop(0), loop(1)};
  builder.update(builder.source("w", {4, 4}), dw);
  MappingFile mapping;
  MappingEntry entry;
  entry.name = "op_dw";
  entry.intra_core_tiling = {{"B", {}, 4}};
  mapping.entries = {entry};
  TilingOptions options{&mapping, TilingMode::fused, {{{OpId(0), OpId(1), OpId(2)}}}, {}};
  const TileGraph tiles = make_tiles(builder.step(), make_chip({}), options);
  verify(tiles, builder.step());
  EXPECT_THAT(in_order(tiles), ElementsAre("a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3", "c0"));
  const std::uint32_t first = tiles.operators[1].first;
  EXPECT_EQ(tiles.edges_into(TileId(first)).size(), 1U);
  const auto edges = tiles.edges_into(TileId(first + 2));
  ASSERT_EQ(edges.size(), 2U);
  EXPECT_EQ(edges[1].from, TileId(first + 1));
  EXPECT_EQ(edges[1].tensor, dw);
  EXPECT_EQ(edges[1].bits.value, 16 * 32);
  const auto update = tiles.edges_into(TileId(tiles.operators[2].first));
  ASSERT_EQ(update.size(), 1U);
  EXPECT_EQ(update[0].from, TileId(first + 3));
}

TEST(FusedTiles, a_stack_around_an_operator_of_another_is_legal) {
  // a and c are a stack, b between them is not: what c needs of b comes before it.
  const Rows rows;
  TilingOptions options{nullptr, TilingMode::fused, {{{OpId(0), OpId(2)}}}, {}};
  const TileGraph tiles = make_tiles(rows.builder.step(), make_chip({}), options);
  verify(tiles, rows.builder.step());
  EXPECT_EQ(tiles.stack_of[0], tiles.stack_of[2]);
  EXPECT_NE(tiles.stack_of[0], tiles.stack_of[1]);
}

TEST(FusedTiles, automatic_stacks_only_where_memory_is_short) {
  StepBuilder builder;
  TensorId at = builder.source("x", {256, 16}, TensorKind::input);
  for (const char* name : {"a", "b", "c"})
    at = builder.elementwise(name, {at});
  builder.output(at);
  TilingOptions options;
  options.mode = TilingMode::fused;
  // A tensor is 128 kbit. With 1 Mbit everything fits; with 64 kbit, slices do.
  const TileGraph roomy = make_tiles(builder.step(), make_chip({.core_bits = 1 << 20}), options);
  EXPECT_EQ(roomy.tiles.size(), 3U);
  const TileGraph tight = make_tiles(builder.step(), make_chip({.core_bits = 1 << 16}), options);
  verify(tight, builder.step());
  EXPECT_EQ(tight.stack_of, (std::vector<std::uint32_t>{0, 0, 0}));
  // Two tensors' slices at a time in three quarters of the memory: 8 slices, 2 * 16 kbit.
  EXPECT_EQ(tight.operators[1].size(), 8U);
}

TEST(FusedTiles, a_default_does_not_slice_operators_that_run_alone) {
  MappingFile mapping = Rows::by_rows({"B", {}, 4});
  mapping.entries[0].name = "default";
  TilingOptions options{&mapping, TilingMode::fused, {{{OpId(0), OpId(1)}}}, {}};
  const TileGraph tiles = make_tiles(Rows().builder.step(), make_chip({}), options);
  EXPECT_EQ(tiles.operators[2].size(), 1U);
  mapping.entries[0].name = "op_c";
  EXPECT_EQ(make_tiles(Rows().builder.step(), make_chip({}), options).operators[2].size(), 4U);
}

/// 1,024 tokens against 128 KB of memory: slices that all read each other would be 270 million
/// edges.
TEST(FusedTiles, automatic_slices_of_a_long_sequence_can_be_scheduled) {
  const std::string data = MONET_SOURCE_DIR "/data/";
  OnnxReadOptions read;
  read.batch = 1;
  const TrainingGraph step =
      fold_views(make_training_graph(read_onnx(data + "workload/gpt2.onnx", read), {}));
  TilingOptions options;
  options.mode = TilingMode::fused;
  const TileGraph tiles =
      make_tiles(step, read_chip(data + "hardware/tpu_like_quad_core.yaml"), options);
  EXPECT_LT(tiles.tiles.size(), 300'000U);
  EXPECT_LT(tiles.edges.size(), 10'000'000U);
}

} // namespace
} // namespace monet
