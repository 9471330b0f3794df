// Counts the DRAM rows that a transfer of a box of a tensor opens, and the cycles that this costs.
// The scheduler prices off-chip transfers with it.
#include "base/shared/checked.hpp"

#include "monet/base/units.hpp"
#include "monet/hardware/core.hpp"

#include <vector>

namespace monet {

namespace {

/// Sum of floor((start + i * step) / divisor) for 0 <= i < count; all at least 0, divisor > 0.
std::int64_t sum_of_floors(std::int64_t count, std::int64_t start, std::int64_t step,
                           std::int64_t divisor) {
  if (count == 0)
    return 0;
  const std::int64_t whole =
      checked_add(checked_multiply(count, start / divisor),
                  checked_multiply(checked_multiply(count, count - 1) / 2, step / divisor));
  start %= divisor;
  step %= divisor;
  // The rest counts lattice points below a line: count them by rows, not by columns.
  const std::int64_t end = checked_add(checked_multiply(step, count), start);
  if (end < divisor)
    return whole;
  return checked_add(whole, sum_of_floors(end / divisor, end % divisor, divisor, step));
}

/// Equal blocks of bits at a constant distance of `pitch` between their first bits.
struct Level {
  std::int64_t count = 1;
  std::int64_t pitch = 0; ///< bits
};

/// Number of rows that hold blocks of `span` bits, if no two blocks share a row; the first block
/// begins `start` bits into a row.
std::int64_t rows_of_blocks(const Level& blocks, std::int64_t start, std::int64_t span,
                            std::int64_t row_bits) {
  // Whole rows between the blocks shift first and last bits alike.
  const std::int64_t pitch = blocks.pitch % row_bits;
  return blocks.count + sum_of_floors(blocks.count, start + span - 1, pitch, row_bits) -
         sum_of_floors(blocks.count, start, pitch, row_bits);
}

} // namespace

std::int64_t rows_of_box(const Box& box, std::span<const std::int64_t> shape,
                         std::int64_t element_bits, std::int64_t row_bits) {
  if (volume(box) == 0)
    return 0;
  std::int64_t offset = 0;          // first bit of the box
  std::int64_t span = element_bits; // from the first bit of a block to its last
  std::int64_t pitch = element_bits;
  std::vector<Level> levels; // innermost first: blocks that share no row
  for (std::size_t a = box.size(); a-- > 0;) {
    offset = checked_add(offset, checked_multiply(box[a].begin, pitch));
    const std::int64_t count = box[a].size();
    if (count > 1 && pitch - span < row_bits) {
      // No row fits between two blocks: every row from the first to the last is touched. Outer
      // axes leave gaps no smaller than inner ones, so no separated level precedes this case.
      span = checked_add(checked_multiply(count - 1, pitch), span);
    } else if (count > 1 && !levels.empty() && levels.back().count * levels.back().pitch == pitch) {
      levels.back().count *= count;
    } else if (count > 1) {
      levels.push_back({count, pitch});
    }
    pitch = checked_multiply(pitch, shape[a]);
  }
  if (levels.empty())
    levels.push_back({1, 0});
  std::int64_t combinations = 1;
  for (std::size_t l = 1; l < levels.size(); ++l)
    combinations = checked_multiply(combinations, levels[l].count);
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < combinations; ++i) {
    std::int64_t start = offset;
    std::int64_t rest = i;
    for (std::size_t l = 1; l < levels.size(); ++l) {
      start += rest % levels[l].count * levels[l].pitch;
      rest /= levels[l].count;
    }
    rows += rows_of_blocks(levels.front(), start % row_bits, span, row_bits);
  }
  return rows;
}

std::int64_t row_overhead(const DramRows& dram, std::int64_t rows, std::int64_t stream_cycles) {
  const std::int64_t rounds = (rows - 1) / dram.banks;
  // Stall cycles of the port per round of the banks, times rows.
  const std::int64_t wait =
      checked_multiply(dram.t_row, rows) - checked_multiply(dram.banks - 1, stream_cycles);
  if (rounds == 0 || wait <= 0)
    return dram.t_row;
  return dram.t_row + checked_multiply(rounds, wait / rows) +
         ceil_div(checked_multiply(rounds, wait % rows), rows);
}

} // namespace monet
