#include "schedule/small_steps.hpp"
#include "tiling/partition/split.hpp"
#include "tiling/shared/grid.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/imc_array.hpp"
#include "monet/tiling/tiling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>

namespace monet {
namespace {

using ::testing::HasSubstr;
using testing::make_chip;
using testing::StepBuilder;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

AxisExpr axis(std::initializer_list<AffineTerm> terms, std::int64_t offset = 0) {
  return {terms, offset, false};
}

LoopNest nest_with(std::vector<LoopDim> dims, Access output) {
  LoopNest nest;
  nest.compute = ComputeKind::mac;
  nest.dims = std::move(dims);
  nest.operands = {std::move(output)};
  return nest;
}

TEST(MaySplit, loops_whose_steps_separate_every_output) {
  // O[k][2 oy + fy - 1]: rows of neighbours overlap by one, k separates, c is a reduction.
  const LoopNest overlapping =
      nest_with({{"K", 8}, {"OY", 4}, {"FY", 3}, {"C", 5}},
                {{}, AccessMode::accumulate, "O", {axis({{0, 1}}), axis({{1, 2}, {2, 1}}, -1)}});
  EXPECT_TRUE(may_split(overlapping, 0));
  EXPECT_FALSE(may_split(overlapping, 1));
  EXPECT_FALSE(may_split(overlapping, 2));
  EXPECT_FALSE(may_split(overlapping, 3));
  // Two filter rows only: 2 oy + fy never meets its neighbour.
  const LoopNest touching =
      nest_with({{"OY", 4}, {"FY", 2}}, {{}, AccessMode::write, "O", {axis({{0, 2}, {1, 1}})}});
  EXPECT_TRUE(may_split(touching, 0));
  // rows = 16 b + s: b separates, s (16 values) does not separate b's rows.
  const LoopNest merged =
      nest_with({{"B", 4}, {"S", 16}}, {{}, AccessMode::write, "O", {axis({{0, 16}, {1, 1}})}});
  EXPECT_TRUE(may_split(merged, 0));
  EXPECT_FALSE(may_split(merged, 1));
}

TEST(MaySplit, not_along_what_data_decides) {
  AxisExpr any;
  any.data_dependent = true;
  const LoopNest scatter =
      nest_with({{"B", 4}, {"K", 8}}, {{}, AccessMode::accumulate, "O", {any, axis({{1, 1}})}});
  EXPECT_FALSE(may_split(scatter, 0)); // several rows may meet
  EXPECT_TRUE(may_split(scatter, 1));  // columns never do
  LoopNest opaque = scatter;
  opaque.operands[0].opaque = true;
  EXPECT_FALSE(may_split(opaque, 1));
}

TEST(MaySplit, every_output_counts) {
  // y[b][k] and mean[b]: only b is in both.
  LoopNest nest = nest_with({{"B", 4}, {"K", 8}},
                            {{}, AccessMode::write, "O", {axis({{0, 1}}), axis({{1, 1}})}});
  nest.operands.push_back({{}, AccessMode::write, "mean", {axis({{0, 1}})}});
  EXPECT_TRUE(may_split(nest, 0));
  EXPECT_FALSE(may_split(nest, 1));
}

TEST(EvenPart, sizes_differ_by_one_at_most) {
  // 10 in 4: 3, 3, 2, 2.
  EXPECT_EQ(even_part(10, 4, 0), (Interval{0, 3}));
  EXPECT_EQ(even_part(10, 4, 1), (Interval{3, 6}));
  EXPECT_EQ(even_part(10, 4, 2), (Interval{6, 8}));
  EXPECT_EQ(even_part(10, 4, 3), (Interval{8, 10}));
}

StepBuilder product_step(std::int64_t b, std::int64_t c, std::int64_t k) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {b, c}, TensorKind::input);
  builder.output(builder.product("o", x, builder.source("w", {c, k})));
  return builder;
}

std::vector<Interval> ranges_of(const TileGraph& tiles, std::size_t dim) {
  std::vector<Interval> ranges;
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t)
    ranges.push_back(tiles.ranges(TileId(t))[dim]);
  return ranges;
}

TEST(MakeTiles, cuts_the_loop_that_touches_the_least_data) {
  // 64 x 64 x 512 over 4 cores: cut along K, x (4096) is read by all: 16384 + w 32768 + o 32768.
  // Along B, w is: more.
  const StepBuilder wide = product_step(64, 64, 512);
  const Chip chip = make_chip({.cores = 4});
  const TileGraph tiles = make_tiles(wide.step(), chip);
  verify(tiles, wide.step());
  EXPECT_EQ(ranges_of(tiles, 1),
            (std::vector<Interval>{{0, 128}, {128, 256}, {256, 384}, {384, 512}}));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(tiles.tiles[i].core, CoreId(i));
  const StepBuilder tall = product_step(512, 64, 64);
  EXPECT_EQ(ranges_of(make_tiles(tall.step(), chip), 0).front(), (Interval{0, 128}));
}

/// The off-chip memory is so wide that only computing counts.
Chip wide_memory(int cores, std::int64_t lanes = 16) {
  return make_chip({.cores = cores, .dram_bandwidth = 1 << 20, .lanes = lanes});
}

TEST(MakeTiles, cuts_only_as_far_as_the_offchip_memory_can_feed) {
  // w [64, 512] and x [8, 64] are fp32. Along K, w is cut and x is read by all four: 4 * 512 +
  // 32768 + o 4096 elements; the off-chip memory feeds w and x. Along B (8 rows), w would go to
  // every core.
  const StepBuilder builder = product_step(8, 64, 512);
  const TileGraph narrow = make_tiles(builder.step(), make_chip({.cores = 4, .dram_bandwidth = 8}));
  verify(narrow, builder.step());
  for (const Interval rows : ranges_of(narrow, 0))
    EXPECT_EQ(rows, (Interval{0, 8})); // never along B
  // 16 lanes: 8 * 64 * 512 / 16 = 16384 cycles on one core; x and w take (512 + 32768) * 32 / 8 =
  // 133120 cycles to fetch, and x again for every further core. Cutting cannot pay.
  EXPECT_EQ(narrow.tiles.size(), 1U);
  EXPECT_EQ(make_tiles(builder.step(), wide_memory(4)).tiles.size(), 4U);
}

TEST(MakeTiles, uneven_sizes_and_no_more_parts_than_help) {
  // 6 rows over 4 cores: two rows each on three cores are as fast as 2, 2, 1, 1.
  const StepBuilder builder = product_step(6, 4096, 1);
  const TileGraph tiles = make_tiles(builder.step(), wide_memory(4));
  verify(tiles, builder.step());
  EXPECT_EQ(ranges_of(tiles, 0), (std::vector<Interval>{{0, 2}, {2, 4}, {4, 6}}));
  const StepBuilder seven = product_step(7, 4096, 1);
  EXPECT_EQ(ranges_of(make_tiles(seven.step(), wide_memory(4)), 0),
            (std::vector<Interval>{{0, 2}, {2, 4}, {4, 6}, {6, 7}}));
}

TEST(MakeTiles, small_operators_stay_whole) {
  // 16 lanes: 2047 iterations take 128 cycles, 2032 take 127.
  EXPECT_EQ(make_tiles(product_step(8, 16, 16).step(), wide_memory(4)).tiles.size(), 4U);
  EXPECT_EQ(make_tiles(product_step(8, 16, 15).step(), wide_memory(4)).tiles.size(), 1U);
}

TEST(MakeTiles, dataflow_decides_what_is_worth_cutting) {
  // K is unrolled 32 times: cutting 32 channels in 4 gains nothing, cutting rows does.
  const StepBuilder builder = product_step(32, 64, 32);
  Chip chip = wide_memory(4, 32);
  for (std::size_t c = 0; c < 4; ++c)
    chip.cores[c].dataflow = {{{"K", 32}}};
  EXPECT_EQ(ranges_of(make_tiles(builder.step(), chip), 0).front(), (Interval{0, 8}));
}

// 64 lanes that take eight cycles for a product are weaker than 16 that take one.
TEST(MakeTiles, the_core_with_most_products_in_a_cycle_is_the_strongest) {
  Chip chip = wide_memory(2);
  chip.cores[0].array[0].size = 64;
  const StepBuilder builder = product_step(8, 16, 15);
  const auto first_core = [&] { return make_tiles(builder.step(), chip).tiles.front().core; };
  EXPECT_EQ(first_core(), CoreId(0));
  ImcArray imc;
  imc.serial_bits = 1;
  chip.cores[0].imc = std::make_shared<const ImcArray>(imc);
  EXPECT_EQ(first_core(), CoreId(1));
}

TEST(MakeTiles, an_operator_that_stays_whole_follows_its_data) {
  StepBuilder builder;
  const TensorId x = builder.source("x", {4}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  builder.output(builder.elementwise("b", {a}));
  MappingFile mapping;
  MappingEntry entry;
  entry.name = "op_a";
  entry.core_allocation = {{2}};
  mapping.entries = {entry};
  const TileGraph tiles = make_tiles(builder.step(), make_chip({.cores = 4}), {&mapping});
  EXPECT_EQ(tiles.tiles[0].core, CoreId(2));
  EXPECT_EQ(tiles.tiles[1].core, CoreId(2));
}

TEST(MakeTiles, a_mapping_may_send_element_wise_work_to_arrays) {
  StepBuilder builder;
  builder.output(builder.elementwise("a", {builder.source("x", {4}, TensorKind::input)}));
  Chip chip = make_chip({.cores = 2});
  for (std::size_t c = 0; c < 2; ++c) {
    chip.cores[c].kind = CoreKind::array;
    chip.cores[c].runs_vector_operators = false;
  }
  EXPECT_THROW(make_tiles(builder.step(), chip), InfeasibleError);
  MappingFile mapping;
  MappingEntry entry;
  entry.name = "default";
  entry.core_allocation = {{1}};
  mapping.entries = {entry};
  EXPECT_EQ(make_tiles(builder.step(), chip, {&mapping}).tiles.at(0).core, CoreId(std::size_t{1}));
  chip.cores[1].operator_types = {"Conv"}; // the core's own list has the last word
  EXPECT_THROW(make_tiles(builder.step(), chip, {&mapping}), InfeasibleError);
}

struct Mapped {
  StepBuilder builder = product_step(8, 64, 64);
  MappingFile mapping;
  MappingEntry& entry() { return mapping.entries.front(); }
  Mapped() {
    MappingEntry e;
    e.name = "default";
    e.where = {"map.yaml", 3, 1, ""};
    mapping.entries = {e};
  }
  TileGraph tiles(int cores = 4) {
    TileGraph result = make_tiles(builder.step(), make_chip({.cores = cores}), {&mapping});
    verify(result, builder.step());
    return result;
  }
};

TEST(MakeTiles, mapping_gives_loop_factor_and_cores) {
  Mapped mapped;
  mapped.entry().core_allocation = {{3, 1}};
  mapped.entry().inter_core_tiling = {{"K", TilingFactor::Amount::number, 3}};
  const TileGraph tiles = mapped.tiles();
  ASSERT_EQ(tiles.tiles.size(), 3U); // 22, 21, 21 on cores 3, 1, 3
  EXPECT_EQ(ranges_of(tiles, 1), (std::vector<Interval>{{0, 22}, {22, 43}, {43, 64}}));
  EXPECT_EQ(tiles.tiles[0].core, CoreId(3));
  EXPECT_EQ(tiles.tiles[1].core, CoreId(1));
  EXPECT_EQ(tiles.tiles[2].core, CoreId(3));
}

TEST(MakeTiles, star_is_the_number_of_cores_and_all_is_every_iteration) {
  Mapped mapped;
  mapped.entry().inter_core_tiling = {{"K", TilingFactor::Amount::chosen, 1}};
  EXPECT_EQ(mapped.tiles().tiles.size(), 4U);
  mapped.entry().inter_core_tiling = {{"B", TilingFactor::Amount::all, 1}};
  EXPECT_EQ(mapped.tiles().tiles.size(), 8U);
  mapped.entry().inter_core_tiling = {{"B", TilingFactor::Amount::number, 2},
                                      {"K", TilingFactor::Amount::number, 2}};
  EXPECT_EQ(mapped.tiles().tiles.size(), 4U);
}

TEST(MakeTiles, factors_that_do_not_apply_leave_the_choice_to_the_tool) {
  Mapped mapped;
  const TileGraph automatic = mapped.tiles();
  mapped.entry().inter_core_tiling = {{"OY", TilingFactor::Amount::number, 2}}; // no such loop
  EXPECT_EQ(mapped.tiles().tiles.size(), automatic.tiles.size());
  mapped.entry().inter_core_tiling = {{"B", TilingFactor::Amount::number, 99}}; // clipped to 8
  EXPECT_EQ(mapped.tiles().tiles.size(), 8U);
}

TEST(MakeTiles, a_reduction_is_cut_where_the_mapping_says_so) {
  Mapped mapped;
  mapped.entry().inter_core_tiling = {{"C", TilingFactor::Amount::number, 2}};
  const TileGraph tiles = mapped.tiles();
  EXPECT_EQ(ranges_of(tiles, 2), (std::vector<Interval>{{0, 32}, {32, 64}}));
  // The second adds into what the first has made.
  ASSERT_EQ(tiles.edges_into(TileId(1)).size(), 1U);
  EXPECT_EQ(tiles.edges_into(TileId(1))[0].from, TileId(0));
  EXPECT_EQ(tiles.edges_into(TileId(1))[0].bits.value, 8 * 64 * 32);
}

TEST(MakeTiles, a_result_that_nobody_knows_the_order_of_is_one_piece) {
  StepBuilder builder;
  const TensorId scattered = builder.elementwise("scattered", {builder.source("x", {16, 4})});
  builder.output(builder.elementwise("y", {scattered}));
  Access& written = builder.graph().op(OpId(0)).nest.operands[0];
  written = {scattered, AccessMode::accumulate, "O", {}, 1, true};
  const TileGraph tiles = make_tiles(builder.step(), make_chip({.cores = 2}), {});
  verify(tiles, builder.step());
  ASSERT_EQ(tiles.edges_into(TileId(1)).size(), 1U);
  EXPECT_EQ(tiles.edges_into(TileId(1))[0].bits.value, 16 * 4 * 32);
}

TEST(LoopUse, sums_add_up_and_what_overlaps_in_part_may_not_be_cut) {
  const LoopNest product =
      nest_with({{"B", 4}, {"C", 8}}, {{}, AccessMode::write, "O", {axis({{0, 1}})}});
  EXPECT_EQ(loop_use(product, 0), LoopUse::parallel);
  EXPECT_EQ(loop_use(product, 1), LoopUse::summed);
  const LoopNest overlapping = nest_with(
      {{"OY", 4}, {"FY", 3}}, {{}, AccessMode::accumulate, "O", {axis({{0, 2}, {1, 1}}, -1)}});
  EXPECT_EQ(loop_use(overlapping, 0), LoopUse::never);
  EXPECT_EQ(loop_use(overlapping, 1), LoopUse::never);
  LoopNest coupled = product;
  coupled.dims[1].coupled = true;
  EXPECT_EQ(loop_use(coupled, 1), LoopUse::never);
  // Rows that data pick: sums may meet, plain writes may not.
  AxisExpr any;
  any.data_dependent = true;
  EXPECT_EQ(loop_use(nest_with({{"B", 4}}, {{}, AccessMode::accumulate, "O", {any}}), 0),
            LoopUse::summed);
  EXPECT_EQ(loop_use(nest_with({{"B", 4}}, {{}, AccessMode::write, "O", {any}}), 0),
            LoopUse::never);
}

TEST(MappedDim, own_names_first_then_streams) {
  const LoopNest image =
      nest_with({{"N", 1}, {"C", 8}, {"H", 4}, {"W", 4}},
                {{},
                 AccessMode::write,
                 "O",
                 {axis({{0, 1}}), axis({{1, 1}}), axis({{2, 1}}), axis({{3, 1}})}});
  LoopNest elementwise = image;
  elementwise.compute = ComputeKind::vector;
  EXPECT_EQ(find_mapped_dim(elementwise, "B"), 0U);
  EXPECT_EQ(find_mapped_dim(elementwise, "H"), 2U); // ours; Stream means channels
  EXPECT_EQ(find_mapped_dim(elementwise, "D"), 2U);
  EXPECT_EQ(find_mapped_dim(elementwise, "K"), 3U);
  EXPECT_EQ(find_mapped_dim(elementwise, "OY"), 4U); // none
  EXPECT_EQ(find_mapped_dim(image, "K"), 4U);        // a product has names of its own
  LoopNest pooling = elementwise;
  pooling.dims[2].name = "OY";
  pooling.dims[3].name = "OX";
  EXPECT_EQ(find_mapped_dim(pooling, "K"), 1U);
  EXPECT_EQ(find_mapped_dim(pooling, "D"), 4U);
}

TEST(MakeTiles, complains_about_unknown_cores_and_too_many_tiles) {
  Mapped mapped;
  mapped.entry().core_allocation = {{0, 4, -1}}; // 4 is the off-chip memory
  const std::string message = message_of([&] { mapped.tiles(); });
  EXPECT_THAT(message, HasSubstr("map.yaml:3:1: entry 'default' allocates core 4, which is not a "
                                 "compute core of 'small'"));
  EXPECT_THAT(message, HasSubstr("core -1"));
  Mapped huge;
  huge.builder = product_step(512, 1, 512);
  huge.entry().inter_core_tiling = {{"B", TilingFactor::Amount::all, 1},
                                    {"K", TilingFactor::Amount::all, 1}};
  EXPECT_THAT(message_of([&] { huge.tiles(); }), HasSubstr("262144 tiles"));
}

TEST(MakeTiles, names_the_operators_without_a_core) {
  const StepBuilder builder = product_step(8, 8, 8);
  Chip chip = make_chip({});
  chip.cores[0].kind = CoreKind::vector;
  EXPECT_THROW(make_tiles(builder.step(), chip), InfeasibleError);
  EXPECT_EQ(message_of([&] { make_tiles(builder.step(), chip); }),
            "no core of 'small' may run 'op_o' (MatMul): see kind, vector_operators and "
            "operator_types of its cores");
}

/// Convolution rows with a halo: out[8] reads 3 rows of a[8].
StepBuilder halo_step() {
  StepBuilder builder;
  const TensorId x = builder.source("x", {8}, TensorKind::input);
  const TensorId a = builder.elementwise("a", {x});
  builder.output(builder.elementwise("b", {a}));
  LoopNest& nest = builder.graph().op(OpId(1)).nest;
  nest.dims.push_back({"FY", 3});
  nest.operands[1].axes = {axis({{0, 1}, {1, 1}}, -1)};
  return builder;
}

/// Each operator's first loop in so many parts, all on one core.
TileGraph cut_rows(const StepBuilder& builder, std::initializer_list<std::int64_t> parts) {
  TileGraph tiles;
  std::size_t op = 0;
  for (const std::int64_t count : parts) {
    OperatorTiling tiling = uncut(builder.step().graph.operators()[op].nest);
    cut(tiling, {0, count});
    const CoreId core(0);
    append_tiles(tiles, OpId(op++), std::move(tiling), {&core, 1});
  }
  make_edges(tiles, builder.step().graph);
  rank_in_order(tiles);
  return tiles;
}

TEST(Edges, halos_reach_into_the_neighbours) {
  const StepBuilder builder = halo_step();
  const TileGraph tiles = cut_rows(builder, {4, 2});
  verify(tiles, builder.step());
  // b[0, 4) reads a[0, 5): tiles 0, 1 whole and one row of 2. b[4, 8) reads a[3, 8): one row of 1,
  // tiles 2, 3.
  const std::vector<std::tuple<std::size_t, std::size_t, std::int64_t>> expected{
      {0, 4, 64}, {1, 4, 64}, {2, 4, 32}, {1, 5, 32}, {2, 5, 64}, {3, 5, 64}};
  std::vector<std::tuple<std::size_t, std::size_t, std::int64_t>> found;
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t) {
    for (const TileEdge& edge : tiles.edges_into(TileId(t)))
      found.emplace_back(edge.from.index(), t, edge.bits.value);
  }
  EXPECT_EQ(found, expected);
}

TEST(Verify, complains_about_damaged_tile_graphs) {
  const StepBuilder builder = halo_step();
  const TileGraph good = cut_rows(builder, {2, 1});
  const auto complaint = [&](const std::function<void(TileGraph&)>& damage) {
    TileGraph bad = good;
    damage(bad);
    return message_of([&] { verify(bad, builder.step()); });
  };
  EXPECT_EQ(complaint([](TileGraph&) {}), "");
  EXPECT_THAT(complaint([](TileGraph& t) { t.operators[0].parts[0][1].begin = 5; }),
              HasSubstr("do not partition"));
  EXPECT_THAT(complaint([](TileGraph& t) { t.operators[0].parts[0][1].end = 7; }),
              HasSubstr("do not partition"));
  EXPECT_THAT(complaint([](TileGraph& t) {
                t.edges.pop_back();
                --t.first_edge.back();
              }),
              HasSubstr("2 dependencies"));
  EXPECT_THAT(complaint([](TileGraph& t) { std::swap(t.edges[0], t.edges[1]); }),
              HasSubstr("out of order"));
  EXPECT_THAT(complaint([](TileGraph& t) { t.edges[0].bits = {0}; }), HasSubstr("or nothing"));
}

TEST(Tiling, idle_cores_run_nothing_that_others_may_run) {
  testing::StepBuilder builder;
  const TensorId x = builder.source("x", {64, 64}, TensorKind::input);
  const TensorId w = builder.source("w", {64, 64});
  builder.output(builder.product("out", x, w));
  const Chip chip = testing::make_chip({.cores = 3});
  const auto cores_used = [&](std::vector<bool> idle) {
    TilingOptions options;
    options.idle = std::move(idle);
    const TileGraph tiles = make_tiles(builder.step(), chip, options);
    std::set<std::uint32_t> used;
    for (const Tile& tile : tiles.tiles)
      used.insert(tile.core.value);
    return used;
  };
  EXPECT_EQ(cores_used({}), (std::set<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(cores_used({true, false, false, false}), (std::set<std::uint32_t>{1, 2}));
  EXPECT_EQ(cores_used({true, true, true, false}), (std::set<std::uint32_t>{0, 1, 2}));
}

} // namespace
} // namespace monet
