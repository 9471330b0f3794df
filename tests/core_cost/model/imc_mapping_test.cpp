// What mappings use of arrays that compute in memory, and what they cost, by hand.
#include "core_cost/cores.hpp"
#include "core_cost/model/imc_work.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace monet::core_cost_detail {
namespace {

using test::convolution;
using test::ConvProduct;
using test::memory;
using test::port;
using test::product;
using test::use;

/// Four columns (K) and eight rows (C) of 8-bit weights, two bits of the activations at a time, as
/// many weights in an element as given; one memory for everything else.
Core four_by_eight(std::int64_t depth = 1) {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core;
  core.name = "four_by_eight";
  core.array = {{"D1", 4}, {"D2", 8}};
  core.dataflow = {{{"K", 4}}, {{"C", 8}}};
  core.memories.push_back(memory("cells", 8 * depth, 0, {I2}, {false, false},
                                 {port(read_write, 8, 8, {use(I2, tl), use(I2, fh)})}));
  core.memories[0].write_energy_pj = 0.1;
  core.memories.push_back(
      memory("sram", 1 << 20, 10, {I1, I2, O}, {true, true},
             {port(read, 64, 1024, {use(I1, tl), use(I2, tl), use(O, tl), use(O, th)}),
              port(write, 64, 1024, {use(I1, fh), use(I2, fh), use(O, fh), use(O, fl)})}));
  ImcArray imc;
  imc.kind = ImcKind::digital;
  imc.serial_bits = 2;
  imc.columns = 4;
  imc.rows = 8;
  imc.cell_bits = 8 * depth;
  core.imc = std::make_shared<const ImcArray>(imc);
  return core;
}

CoreCost fixed_cost(const CoreProblem& problem, const Core& core,
                    const std::vector<OrderedLoop>& order = {}) {
  CoreCostOptions options;
  options.temporal_order = order;
  options.objective = Objective::energy;
  options.fixed_dataflow = true;
  return core_cost(problem, core, options);
}

// O[D,K] += I[D,C] W[C,K] with D = 5, K = 4, C = 8: the array is full, D its only temporal loop.
// Five waves of four cycles. All 32 weights are written once.
TEST(ImcMapping, FullArrayByHand) {
  const Core core = four_by_eight();
  const CoreCost cost = fixed_cost(product(8, 5, 4), core);
  ASSERT_TRUE(cost.imc.has_value());
  EXPECT_EQ(cost.imc->work.rows, 8);
  EXPECT_EQ(cost.imc->work.columns, 4);
  EXPECT_EQ(cost.imc->work.waves, 5);
  EXPECT_EQ(cost.imc->work.weight_reads, 32);
  EXPECT_EQ(cost.parts.ideal_temporal, 20);
  EXPECT_EQ(cost.ideal.value, 20);
  EXPECT_EQ(cost.spatial_utilisation, 1);
  const double peak = imc_peak_energy_pj(*core.imc).total();
  EXPECT_NEAR(cost.compute_energy.value, 20 * peak, 1e-12 * 20 * peak);
  EXPECT_EQ(cost.compute_energy.value, cost.imc->energy_pj.total());
  EXPECT_EQ(cost.levels.at(0).memory, "sram"); // O
  double cells = 0;
  for (const LevelEnergy& level : cost.levels)
    cells += level.memory == "cells" ? level.energy.value : 0;
  EXPECT_NEAR(cells, 32 * 0.1, 1e-12);
}

// Three columns and six rows of it: multipliers of the whole macro work, the rest counts columns.
TEST(ImcMapping, PartOfAnArray) {
  const Core core = four_by_eight();
  const CoreCost cost = fixed_cost(product(6, 5, 3), core);
  EXPECT_EQ(cost.imc->work.rows, 6);
  EXPECT_EQ(cost.imc->work.columns, 3);
  EXPECT_EQ(cost.imc->work.waves, 5);
  const ImcParts full = fixed_cost(product(8, 5, 4), core).imc->energy_pj;
  const ImcParts part = cost.imc->energy_pj;
  EXPECT_DOUBLE_EQ(part.multipliers, full.multipliers);
  EXPECT_DOUBLE_EQ(part.place_values, full.place_values * 3 / 4);
  EXPECT_DOUBLE_EQ(part.accumulators, full.accumulators * 3 / 4);
  EXPECT_LT(part.adder_trees, full.adder_trees * 3 / 4);
}

// 17 columns on four take five steps: whole columns count.
TEST(ImcMapping, WholeColumnsCount) {
  const CoreCost cost = fixed_cost(product(8, 5, 17), four_by_eight());
  EXPECT_EQ(cost.imc->work.columns, 4);
  EXPECT_DOUBLE_EQ(cost.imc->work.waves, 5 * 17 / 4.0);
  EXPECT_EQ(cost.parts.ideal_temporal, 25 * 4);
}

// Two weights in an element, K = 8 in two steps. With D inside, each weight is chosen once; each
// time it charges a wordline and two cells of a bitline. With K inside it is chosen for every row,
// but rows are fetched once, which saves more.
TEST(ImcMapping, WeightsThatTakeTurns) {
  const Core core = four_by_eight(2);
  const CoreCost best = fixed_cost(product(8, 5, 8), core);
  EXPECT_EQ(best.imc->work.weight_reads, 5 * 64);
  const CoreCost cost = fixed_cost(product(8, 5, 8), core, {{"D", 5}, {"K", 2}});
  EXPECT_EQ(cost.imc->work.weight_reads, 64);
  EXPECT_LT(best.energy().value, cost.energy().value);
  const double once = 8 * (0.35e-3 + 2 * 0.35e-3) * 0.81;
  EXPECT_NEAR(cost.imc->energy_pj.precharge, 64 * once, 1e-9);
  EXPECT_EQ(cost.compute_energy.value, cost.imc->energy_pj.total());
}

// Cells for 8-bit weights cannot hold wider ones, and nothing passes by them.
TEST(ImcMapping, CellsAreNotPassedBy) {
  CoreProblem problem = product(8, 5, 4);
  for (ProblemOperand& operand : problem.operands) {
    if (operand.memory == MemoryOperand::I2)
      operand.bits = operand.partial_bits = 16;
  }
  try {
    core_cost(problem, four_by_eight());
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("of memory 'cells', which holds 8"), std::string::npos)
        << error.what();
  }
}

// Parts of a strided input gradient have one, two or four taps and are mapped differently; rows and
// columns are those of the part that the mapping is of.
TEST(ImcMapping, PartsOfAStridedInputGradient) {
  for (const std::int64_t padding : {0, 1}) {
    const CoreProblem problem = convolution({.k = 2,
                                             .ox = 4,
                                             .oy = 4,
                                             .c = 4,
                                             .fx = 3,
                                             .fy = 3,
                                             .stride = 2,
                                             .padding = padding,
                                             .ix = 8,
                                             .iy = 8},
                                            ConvProduct::input_gradient);
    Core core = four_by_eight();
    core.dataflow = {{{"C", 4}}, {{"K", 2}, {"FX", 2}, {"FY", 2}}};
    CoreCostOptions options;
    options.input_gradient = InputGradient::decomposed;
    options.fixed_dataflow = true;
    const CoreCost cost = core_cost(problem, core, options);
    ASSERT_EQ(cost.variant, "decomposed");
    const auto along = [&](std::size_t d) {
      double product = 1;
      for (const MappedLoop& loop : cost.spatial.unrolled.at(d))
        product *= loop.size;
      return product;
    };
    EXPECT_EQ(static_cast<double>(cost.imc->work.columns), along(0)) << padding;
    EXPECT_EQ(static_cast<double>(cost.imc->work.rows), along(1)) << padding;
    EXPECT_EQ(cost.imc->work.rows, 8) << padding;
  }
}

/// Rows of a 3x3 convolution with OX = 2 along the wordline, C = 4 and FX = 3 along the bitline.
std::int64_t rows(bool at_their_loop) {
  const CoreProblem problem = convolution(
      {.k = 4, .ox = 6, .oy = 6, .c = 4, .fx = 3, .fy = 3, .ix = 8, .iy = 8}, ConvProduct::forward);
  ModelChoices choices = ModelChoices::zigzag_3_8();
  choices.rows_shift_at_their_loop = at_their_loop;
  const NestModel model = make_nest_model(problem, choices);
  Core core = four_by_eight();
  core.array[1].size = 16;
  const Hierarchy hierarchy = make_hierarchy(problem, model, core);
  const auto dim = [&](const char* name) {
    return static_cast<std::uint32_t>(model.dim_named(name));
  };
  const ImcWork work = imc_work(model, hierarchy,
                                {{{dim("K"), 2}, {dim("OX"), 2}}, {{dim("C"), 4}, {dim("FX"), 3}}});
  EXPECT_EQ(work.columns, 4);
  EXPECT_DOUBLE_EQ(work.waves, static_cast<double>(model.iterations) / (4 * 12));
  return work.rows;
}

// Two columns side by side see filters of three one row apart: four rows for each channel. ZigZag
// finds FX before C in their set and so counts the shift at C.
TEST(ImcMapping, RowsShiftAtTheirLoop) {
  EXPECT_EQ(rows(true), 4 * (3 + 1));
  EXPECT_EQ(rows(false), (4 + 1) * 3);
}

/// A core that lets a convolution read its inputs side by side, `rows` of it.
CoreCost shifted(std::int64_t rows, bool at_their_loop) {
  const CoreProblem problem = convolution(
      {.k = 2, .ox = 6, .oy = 6, .c = 4, .fx = 3, .fy = 1, .ix = 8, .iy = 6}, ConvProduct::forward);
  Core core = four_by_eight();
  core.array[1].size = rows;
  core.dataflow = {{{"K", 2}, {"OX", 2}}, {{"C", 4}, {"FX", 3}}};
  ImcArray imc = *core.imc;
  imc.rows = rows;
  core.imc = std::make_shared<const ImcArray>(imc);
  CoreCostOptions options;
  options.fixed_dataflow = true;
  options.model.rows_shift_at_their_loop = at_their_loop;
  return core_cost(problem, core, options);
}

// Twelve products of a column reach 4 * (3 + 1) = 16 rows. On twelve, FX = 1 leaves 4 * 1 loops
// that shift nothing; ZigZag counts more rows than there are.
TEST(ImcMapping, RowsThatShiftAreThere) {
  EXPECT_EQ(shifted(16, true).imc->work.rows, 16);
  EXPECT_EQ(shifted(16, true).imc->work.columns, 4);
  const CoreCost few = shifted(12, true);
  EXPECT_EQ(few.imc->work.rows, 4);
  EXPECT_EQ(few.imc->work.columns, 4);
  EXPECT_EQ(shifted(12, false).imc->work.rows, (4 + 1) * 3);
}

// An unrolling whose rows are not there is no mapping, wherever it comes from.
TEST(ImcMapping, RowsThatAreNotThereAreRefused) {
  CoreCostOptions options;
  options.model.free_unrolling = false;
  Core core = four_by_eight();
  core.array[1].size = 12;
  core.dataflow = {{{"K", 2}, {"OX", 2}}, {{"C", 4}, {"FX", 3}}};
  ImcArray imc = *core.imc;
  imc.rows = 12;
  core.imc = std::make_shared<const ImcArray>(imc);
  const CoreProblem problem = convolution(
      {.k = 2, .ox = 6, .oy = 6, .c = 4, .fx = 3, .fy = 1, .ix = 8, .iy = 6}, ConvProduct::forward);
  try {
    core_cost(problem, core, options);
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("need 16 rows of the array, which has 12"),
              std::string::npos)
        << error.what();
  }
}

// A loop of one iteration along the bitlines shifts nothing, though it shares its axis.
TEST(ImcMapping, OneIterationShiftsNothing) {
  const CoreProblem problem = convolution(
      {.k = 4, .ox = 6, .oy = 6, .c = 4, .fx = 3, .fy = 3, .ix = 8, .iy = 8}, ConvProduct::forward);
  const NestModel model = make_nest_model(problem, ModelChoices{});
  const Hierarchy hierarchy = make_hierarchy(problem, model, four_by_eight());
  const auto dim = [&](const char* name) {
    return static_cast<std::uint32_t>(model.dim_named(name));
  };
  const ImcWork work = imc_work(model, hierarchy,
                                {{{dim("K"), 2}, {dim("OX"), 2}}, {{dim("C"), 4}, {dim("FX"), 1}}});
  EXPECT_EQ(work.rows, 4);
}

// Published chips on the nearest array of the model, as an evaluation of its equations elsewhere
// gave them: areas and delays by part, energy of a cycle.
TEST(ImcMapping, PublishedChips) {
  const auto chips = nlohmann::json::parse(
      read_file(std::string(MONET_SOURCE_DIR) + "/tests/fixtures/zigzag/imc/chips.json"));
  ASSERT_EQ(chips.size(), 7U);
  const auto same = [](double found, double expected, const std::string& what) {
    EXPECT_NEAR(found, expected, 1e-9 * std::abs(expected)) << what;
  };
  for (const auto& chip : chips) {
    ImcArray a;
    a.kind = chip.at("imc_type") == "analog" ? ImcKind::analog : ImcKind::digital;
    a.activation_bits = chip.at("input_precision")[0];
    a.weight_bits = chip.at("input_precision")[1];
    a.serial_bits = chip.at("bit_serial_precision");
    a.adc_bits = chip.at("adc_resolution");
    a.columns = chip.at("columns");
    a.rows = chip.at("rows");
    a.macros = chip.at("macros");
    a.cell_bits = a.weight_bits;
    a.cell_area_mm2 = chip.at("cells_mm2").get<double>() / static_cast<double>(a.columns * a.rows);
    const std::string name = chip.at("chip");
    const auto parts = [&](const ImcParts& found, const char* key) {
      for (const auto& [part, figure] : found.named()) {
        const auto& expected = chip.at(key);
        const std::string named(part);
        same(figure, expected.value(named, 0.0), name + " " + key + " " + named);
      }
    };
    parts(imc_area_mm2(a), "area_mm2");
    parts(imc_clock_ns(a), "clock_ns");
    parts(imc_peak_energy_pj(a), "energy_pj");
    same(imc_peak(a).tops_per_w, chip.at("tops_per_w"), name + " TOPS/W");
  }
}

} // namespace
} // namespace monet::core_cost_detail
