#include "base/shared/rng.hpp"
#include "hardware/shared/memory_model.hpp"
#include "hardware/shared/technology.hpp"
#include "hardware/sram_table.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace monet {
namespace {

MemoryQuery query_of(const SramPoint& point) {
  return {{std::int64_t{8} << point.log2_bytes},
          std::int64_t{1} << point.log2_word_bits,
          static_cast<double>(point.node_nm),
          point.ports};
}

TEST(MemoryModel, EqualsTheTableAtItsPoints) {
  ASSERT_EQ(sram_points().size(), 1239U);
  for (const SramPoint& point : sram_points()) {
    const MemoryFigures figures = tabulated_sram(query_of(point));
    EXPECT_NEAR(figures.read_pj, point.read_pj, 1e-12 * point.read_pj);
    EXPECT_NEAR(figures.write_pj, point.write_pj, 1e-12 * point.write_pj);
    EXPECT_NEAR(figures.area_mm2, point.area_mm2, 1e-12 * point.area_mm2);
    EXPECT_NEAR(figures.access_ns, point.access_ns, 1e-12 * point.access_ns);
  }
}

/// Pair by pair: the outcome is monotone, and a cell that was in order with all others stayed.
void expect_moves_violators_only(const LogGrid& table, const LogGrid& repaired) {
  const auto each = [](const auto& visit) {
    for (int s = SramTable::kFirstSize; s <= SramTable::kLastSize; ++s) {
      for (int w = SramTable::kFirstWord; w <= SramTable::kLastWord; ++w)
        visit(s, w);
    }
  };
  each([&](int s, int w) {
    bool in_order = true;
    each([&](int s2, int w2) {
      if (s2 < s || w2 < w)
        return;
      EXPECT_LE(repaired.at(s, w), repaired.at(s2, w2));
      in_order = in_order && table.at(s, w) <= table.at(s2, w2);
    });
    each([&](int s2, int w2) {
      if (s2 <= s && w2 <= w)
        in_order = in_order && table.at(s2, w2) <= table.at(s, w);
    });
    if (in_order)
      EXPECT_EQ(table.at(s, w), repaired.at(s, w));
    else
      EXPECT_NE(table.at(s, w), repaired.at(s, w));
  });
}

TEST(MemoryModel, TheRepairMovesOnlyViolators) {
  // What docs/explanation/hardware-costs.md states: mean over nodes and ports of the share moved,
  // and the largest move.
  for (const SramFigure which : {SramFigure::read_pj, SramFigure::write_pj, SramFigure::area_mm2}) {
    for (const int node : {90, 65, 45, 32, 22}) {
      for (const int ports : {1, 2}) {
        const LogGrid table = SramTable(sram_points(), node, ports).grid(which);
        LogGrid grid = table;
        const Repair repair = make_monotone(grid);
        std::printf("figure %d, %d nm, %d ports: %d of %d cells moved, the largest by %.1f %%\n",
                    static_cast<int>(which), node, ports, repair.moved, repair.cells,
                    100 * repair.largest);
        expect_moves_violators_only(table, grid);
        if (node <= 45 && which != SramFigure::area_mm2) {
          EXPECT_LE(repair.moved, 16);
          EXPECT_LE(repair.largest, 0.15);
        }
      }
    }
  }
}

TEST(MemoryModel, OneArrayCostsWhatTheRepairedTableSays) {
  for (const SramPoint& point : sram_points()) {
    if (point.node_nm != 22 && point.node_nm != 45)
      continue; // complete: no hole is filled from another node
    LogGrid grid = SramTable(sram_points(), point.node_nm, point.ports).grid(SramFigure::read_pj);
    make_monotone(grid);
    const double expected = std::exp(grid.at(point.log2_bytes, point.log2_word_bits));
    EXPECT_NEAR(memory_cost(query_of(point)).monolithic.read_pj, expected, 1e-12 * expected);
  }
}

/// Mean relative errors when each point is left out in turn and read off the repaired rest.
double leave_one_out(int node_nm, int ports, SramFigure figure, double SramPoint::*value) {
  std::vector<SramPoint> points(sram_points().begin(), sram_points().end());
  double sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].node_nm != node_nm || points[i].ports != ports)
      continue;
    const SramPoint left_out = points[i];
    points[i].node_nm = -1;
    LogGrid grid = SramTable(points, node_nm, ports).grid(figure);
    points[i] = left_out;
    // Corners have no neighbours on both sides.
    if (std::isnan(grid.at(left_out.log2_bytes, left_out.log2_word_bits)))
      continue;
    make_monotone(grid);
    const double found = std::exp(grid.at(left_out.log2_bytes, left_out.log2_word_bits));
    sum += std::abs(found / (left_out.*value) - 1);
    ++count;
  }
  EXPECT_GE(count, 140);
  return sum / count;
}

TEST(MemoryModel, LeavingOnePointOutErrsByTenPercentAtMost) {
  for (const int node : {22, 45}) {
    for (const int ports : {1, 2}) {
      const double read = leave_one_out(node, ports, SramFigure::read_pj, &SramPoint::read_pj);
      const double write = leave_one_out(node, ports, SramFigure::write_pj, &SramPoint::write_pj);
      const double area = leave_one_out(node, ports, SramFigure::area_mm2, &SramPoint::area_mm2);
      std::printf("%d nm, %d ports: read %.2f %%, write %.2f %%, area %.2f %%\n", node, ports,
                  100 * read, 100 * write, 100 * area);
      EXPECT_LE(read, 0.10);
      EXPECT_LE(write, 0.10);
      EXPECT_LE(area, 0.10);
    }
  }
}

/// A random memory, from registers to beyond the table.
MemoryQuery random_query(RandomStream& rng) {
  const double nodes[] = {90, 65, 45, 40, 32, 28, 22, 16, 12, 7, 5, 3};
  MemoryQuery query;
  query.size = {static_cast<std::int64_t>(std::exp2(33 * rng.unit()))};
  query.word_bits = static_cast<std::int64_t>(std::exp2(16 * rng.unit()));
  query.node_nm = nodes[rng.below(std::size(nodes))];
  query.ports = 1 + static_cast<int>(rng.below(4));
  return query;
}

TEST(MemoryModel, EnergyAndAreaNeverFallInSizeAndWord) {
  RandomStream rng(7);
  const auto check = [](const MemoryFigures& a, const MemoryFigures& b) {
    const double slack = 1 + 1e-9;
    return a.read_pj <= b.read_pj * slack && a.write_pj <= b.write_pj * slack &&
           a.area_mm2 <= b.area_mm2 * slack;
  };
  for (int i = 0; i < 100000; ++i) {
    const MemoryQuery small = random_query(rng);
    MemoryQuery large = small;
    const double factor = std::exp2(rng.unit() * (rng.below(2) == 0 ? 0.3 : 6));
    if (rng.below(2) == 0)
      large.size.value =
          std::min(kMaxModelledBits,
                   static_cast<std::int64_t>(static_cast<double>(small.size.value) * factor));
    else
      large.word_bits = std::min(
          kMaxWordBits, static_cast<std::int64_t>(static_cast<double>(small.word_bits) * factor));
    const MemoryCost a = memory_cost(small);
    const MemoryCost b = memory_cost(large);
    ASSERT_TRUE(check(a.figures, b.figures) && check(a.monolithic, b.monolithic))
        << small.size.value << " x " << small.word_bits << " and " << large.size.value << " x "
        << large.word_bits << " at " << small.node_nm << " nm, " << small.ports
        << " ports: " << a.figures.read_pj << " " << b.figures.read_pj << ", " << a.figures.area_mm2
        << " " << b.figures.area_mm2;
    ASSERT_TRUE(check(a.figures, a.monolithic));
    ASSERT_GT(a.figures.read_pj, 0);
    ASSERT_GT(a.figures.area_mm2, 0);
    ASSERT_LE(a.wiring_pj, a.figures.read_pj);
  }
}

TEST(MemoryModel, SplitsWideWords) {
  const MemoryCost narrow = memory_cost({{8 * 8192}, 64, 22, 1});
  EXPECT_EQ(narrow.macros, 1);
  const MemoryCost wide = memory_cost({{std::int64_t{8} << 20}, 1024, 22, 2});
  EXPECT_GT(wide.macros, 1);
  EXPECT_GT(wide.wiring_pj, 0);
  EXPECT_LT(wide.figures.read_pj, wide.monolithic.read_pj);
  EXPECT_NEAR(wide.monolithic.read_pj, 358, 4);
}

// The repair of the split grid must not carry the cost of one absurd memory to its neighbours.
TEST(MemoryModel, ASplitCostsWhatItsMacrosDo) {
  double mean = 0;
  int count = 0;
  for (const double node : {90.0, 65.0, 45.0, 32.0, 22.0}) {
    for (int size = 5; size <= SramTable::kLastSize; ++size) {
      for (int word = 3; word <= std::min(size + 3, SramTable::kLastWord + 2); ++word) {
        for (const int ports : {1, 2}) {
          const MemoryQuery query{{std::int64_t{8} << size}, std::int64_t{1} << word, node, ports};
          const MemoryCost cost = memory_cost(query);
          MemoryQuery part = query;
          part.size.value /= cost.macros;
          part.word_bits /= cost.macros;
          const MemoryFigures macro = memory_cost(part).monolithic;
          const double macros = static_cast<double>(cost.macros);
          const double read = (cost.figures.read_pj - cost.wiring_pj) / (macro.read_pj * macros);
          const double area = cost.figures.area_mm2 / (macro.area_mm2 * macros);
          for (const double ratio : {read, area}) {
            // Words beyond the table have no array to be compared with.
            EXPECT_LE(std::abs(ratio - 1), word <= SramTable::kLastWord ? 0.21 : 0.40)
                << node << " nm, 2^" << size << " bytes, 2^" << word << " bits, " << ports
                << " ports, " << cost.macros << " macros";
            mean += std::abs(ratio - 1);
            ++count;
          }
        }
      }
    }
  }
  std::printf("splits: off their macros by %.2f %% on average\n", 100 * mean / count);
  EXPECT_LE(mean / count, 0.005);
}

TEST(MemoryModel, NewerNodesTakeLessOfBoth) {
  double read = 1e9;
  double area = 1e9;
  for (const double node : {90.0, 65.0, 45.0, 32.0, 28.0, 22.0, 16.0, 10.0, 7.0, 5.0, 3.0}) {
    const MemoryFigures sram = memory_cost({{std::int64_t{8} << 20}, 64, node, 1}).figures;
    const MemoryFigures file = memory_cost({{1024}, 32, node, 1}).figures;
    EXPECT_LT(sram.read_pj, read);
    EXPECT_LT(sram.area_mm2, area);
    EXPECT_LT(file.read_pj, sram.read_pj);
    read = sram.read_pj;
    area = sram.area_mm2;
  }
  EXPECT_DOUBLE_EQ(logic_energy_scale(45), 1);
  EXPECT_DOUBLE_EQ(logic_area_scale(45), 1);
  EXPECT_DOUBLE_EQ(sram_area_scale(22), 1);
  EXPECT_NEAR(sram_area_scale(7), 0.027 / 0.092, 1e-12);
  EXPECT_NEAR(wire_pj_per_bit_mm(40), 0.121, 1e-12);
}

TEST(MemoryModel, RegisterFilesLieNearSmallRunsOfCacti) {
  // Runs of CACTI quoted elsewhere, 45 nm, 32 bits: 128 B at 0.68 pJ and 0.0015 mm2.
  const MemoryFigures file = memory_cost({{1024}, 32, 45, 1}).figures;
  EXPECT_NEAR(file.read_pj, 0.68, 0.15);
  EXPECT_NEAR(file.area_mm2, 0.0015, 0.0004);
}

TEST(MemoryModel, SaysWhatItDoesNotCover) {
  EXPECT_THROW(memory_cost({{8192}, 32, 130, 1}), InfeasibleError);
  EXPECT_THROW(memory_cost({{8192}, 32, 2, 1}), InfeasibleError);
  EXPECT_THROW(memory_cost({{kMaxModelledBits + 1}, 32, 22, 1}), InfeasibleError);
  EXPECT_THROW(memory_cost({{8192}, 0, 22, 1}), InfeasibleError);
  EXPECT_NO_THROW(memory_cost({{kMaxModelledBits}, kMaxWordBits, 3, 64}));
  EXPECT_NO_THROW(memory_cost({{1}, 1, 90, 1}));
}

TEST(MemoryModel, KnowsDramByKind) {
  ASSERT_NE(find_dram_kind("lpddr5"), nullptr);
  EXPECT_EQ(find_dram_kind("lpddr9"), nullptr);
  for (const DramKind& kind : dram_kinds()) {
    EXPECT_GT(kind.pj_per_bit, 3);
    EXPECT_LT(kind.pj_per_bit, 25);
    EXPECT_FALSE(kind.source.empty());
  }
}

} // namespace
} // namespace monet
