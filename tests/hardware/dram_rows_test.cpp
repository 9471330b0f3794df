// Rows counted against every bit of a tensor, and their cost against banks simulated cycle by
// cycle.
#include "monet/hardware/core.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace monet {
namespace {

/// Rows of every bit of every element of the box.
std::int64_t rows_bit_by_bit(const Box& box, const std::vector<std::int64_t>& shape,
                             std::int64_t element_bits, std::int64_t row_bits) {
  std::set<std::int64_t> rows;
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape)
    elements *= extent;
  for (std::int64_t e = 0; e < elements; ++e) {
    bool inside = true;
    std::int64_t rest = e;
    for (std::size_t a = shape.size(); a-- > 0; rest /= shape[a])
      inside = inside && rest % shape[a] >= box[a].begin && rest % shape[a] < box[a].end;
    for (std::int64_t bit = 0; inside && bit < element_bits; ++bit)
      rows.insert((e * element_bits + bit) / row_bits);
  }
  return static_cast<std::int64_t>(rows.size());
}

TEST(DramRows, count_by_hand) {
  // 64 x 64 elements of 8 bits: an axis-0 line is 512 bits, half a row of 1024.
  const std::vector<std::int64_t> shape{64, 64};
  EXPECT_EQ(rows_of_box({{0, 64}, {0, 64}}, shape, 8, 1024), 32);
  EXPECT_EQ(rows_of_box({{0, 2}, {0, 64}}, shape, 8, 1024), 1);
  EXPECT_EQ(rows_of_box({{1, 3}, {0, 64}}, shape, 8, 1024), 2); // across a border
  // A column of 16: 64 runs of 128 bits, two of them in each row.
  EXPECT_EQ(rows_of_box({{0, 64}, {0, 16}}, shape, 8, 1024), 32);
  // With rows of 512 bits every run has one for itself, with rows of 256 still.
  EXPECT_EQ(rows_of_box({{0, 64}, {0, 16}}, shape, 8, 512), 64);
  EXPECT_EQ(rows_of_box({{0, 64}, {0, 16}}, shape, 8, 256), 64);
  // 128 bits from bit 192 of each line on: across the border of rows of 256.
  EXPECT_EQ(rows_of_box({{0, 64}, {24, 40}}, shape, 8, 256), 128);
  // Runs of a row with a row between them: 64 of 127.
  EXPECT_EQ(rows_of_box({{0, 64}, {0, 32}}, shape, 8, 256), 64);
  EXPECT_EQ(rows_of_box({{0, 64}, {3, 3}}, shape, 8, 256), 0);
  EXPECT_EQ(rows_of_box({}, {}, 32, 16), 2); // a scalar
}

RC_GTEST_PROP(DramRows, CountEveryRowOnce, ()) {
  const auto axes = *rc::gen::inRange<std::size_t>(0, 5);
  std::vector<std::int64_t> shape;
  Box box;
  for (std::size_t a = 0; a < axes; ++a) {
    shape.push_back(*rc::gen::inRange<std::int64_t>(1, 8));
    const auto begin = *rc::gen::inRange<std::int64_t>(0, shape.back());
    box.push_back({begin, *rc::gen::inRange<std::int64_t>(begin, shape.back() + 1)});
  }
  const auto bits = *rc::gen::inRange<std::int64_t>(1, 10);
  const auto row = *rc::gen::element<std::int64_t>(1, 3, 7, 8, 16, 20, 33, 64, 100, 1000);
  RC_ASSERT(rows_of_box(box, shape, bits, row) == rows_bit_by_bit(box, shape, bits, row));
}

/// Cycle by cycle: row i lies in bank i mod banks. A bank opens its rows in turn, each for t_row
/// cycles, the next one from the cycle on in which the last bits of the one before have passed. The
/// port takes rows in order, `cycles_of_row` cycles each.
std::int64_t simulated(const DramRows& dram, std::int64_t rows, std::int64_t cycles_of_row) {
  struct Bank {
    std::int64_t row;     ///< that it has or opens
    std::int64_t opening; ///< cycles that are left
  };
  std::vector<Bank> banks;
  for (std::int64_t b = 0; b < dram.banks; ++b)
    banks.push_back({b, dram.t_row});
  std::int64_t row = 0;
  std::int64_t passed = 0; // cycles of it
  std::int64_t cycle = 0;
  for (; row < rows; ++cycle) {
    Bank& bank = banks[static_cast<std::size_t>(row % dram.banks)];
    const bool passes = bank.row == row && bank.opening == 0;
    for (Bank& other : banks)
      other.opening = std::max<std::int64_t>(0, other.opening - 1);
    if (passes && ++passed == cycles_of_row) {
      bank = {row + dram.banks, dram.t_row};
      passed = 0;
      ++row;
    }
  }
  return cycle;
}

TEST(DramRows, cost_by_hand) {
  // Rows of 16384 bits pass a port of 64 bits in 256 cycles.
  const DramRows ddr{16, 16384, 40};
  EXPECT_EQ(row_overhead(ddr, 1, 256), 40);
  EXPECT_EQ(row_overhead(ddr, 1000, 256000), 40); // all but the first are opened meanwhile
  // One bank: every row waits for the one before.
  EXPECT_EQ(row_overhead({1, 16384, 40}, 1000, 256000), 40 * 1000);
  // Two banks, t_row 600: two rows take 600 + 256 in place of 512 cycles, from the third on.
  EXPECT_EQ(row_overhead({2, 16384, 600}, 2, 512), 600);
  EXPECT_EQ(row_overhead({2, 16384, 600}, 3, 768), 600 + 344);
  EXPECT_EQ(row_overhead({2, 16384, 600}, 201, 201 * 256), 600 + 100 * 344);
  // Runs of one cycle, each in a row of its own: 16 rows take 41 cycles in place of 16.
  EXPECT_EQ(row_overhead(ddr, 161, 161), 40 + 10 * 25);
  EXPECT_EQ(row_overhead({16, 16384, 0}, 161, 161), 0);
  // Just enough banks: 3 rows of 20 cycles pass while one is opened; with 2 rows 20 are missing.
  EXPECT_EQ(row_overhead({3, 64, 40}, 31, 31 * 20), 40);
  EXPECT_EQ(row_overhead({2, 64, 40}, 31, 31 * 20), 40 + 15 * 20);
}

RC_GTEST_PROP(DramRows, CostWhatBanksTake, ()) {
  const DramRows dram{*rc::gen::inRange<std::int64_t>(1, 9), 1,
                      *rc::gen::inRange<std::int64_t>(0, 50)};
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 60);
  const auto cycles = *rc::gen::inRange<std::int64_t>(1, 30);
  RC_ASSERT(rows * cycles + row_overhead(dram, rows, rows * cycles) ==
            simulated(dram, rows, cycles));
}

/// Rows that hold a fraction of a cycle of bits: the same in units of a row's share of a cycle.
RC_GTEST_PROP(DramRows, CostWhatBanksTakeOfFractions, ()) {
  const DramRows dram{*rc::gen::inRange<std::int64_t>(1, 9), 1,
                      *rc::gen::inRange<std::int64_t>(0, 20)};
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 40);
  const auto cycles = *rc::gen::inRange<std::int64_t>(1, 60);
  const DramRows finer{dram.banks, 1, dram.t_row * rows};
  const std::int64_t units = simulated(finer, rows, cycles);
  RC_ASSERT(cycles + row_overhead(dram, rows, cycles) == (units + rows - 1) / rows);
}

/// What Network::streaming_in() rests on: part of a load never takes longer than more of it.
RC_GTEST_PROP(DramRows, MoreTakesNoLess, ()) {
  const DramRows dram{*rc::gen::inRange<std::int64_t>(1, 9), 1,
                      *rc::gen::inRange<std::int64_t>(0, 50)};
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto cycles = *rc::gen::inRange<std::int64_t>(2, 300);
  std::int64_t before = 0;
  for (std::int64_t part = 1; part <= cycles; ++part) {
    const std::int64_t of_part = (rows * part + cycles - 1) / cycles;
    const std::int64_t takes = part + row_overhead(dram, of_part, part);
    RC_ASSERT(takes >= before);
    before = takes;
  }
}

} // namespace
} // namespace monet
