// Rows and banks of an off-chip memory: how many rows a box of a tensor lies in, and what opening
// them costs a transfer. Optional; a memory without `dram: {banks, row_bits, t_row}` has no rows.
#pragma once

#include "monet/base/interval.hpp"

#include <cstdint>
#include <span>

namespace monet {

/// One row of a bank is open at a time. Rows that follow each other in a transfer lie in banks that
/// take turns, so that rows to come are opened while one is read or written.
struct DramRows {
  std::int64_t banks = 1;
  std::int64_t row_bits = 1; ///< of one row over all devices and channels behind the port
  std::int64_t t_row = 0;    ///< cycles to precharge a bank and activate another of its rows

  friend bool operator==(const DramRows&, const DramRows&) = default;
};

/// Rows that hold a box of a tensor that lies row-major and contiguous, element 0 at the beginning
/// of a row. The box is a number of contiguous runs; each row counts once, however many of them
/// are in it. 0 for an empty box.
std::int64_t rows_of_box(const Box& box, std::span<const std::int64_t> shape,
                         std::int64_t element_bits, std::int64_t row_bits);

/// Cycles that a transfer takes beyond the `stream_cycles` > 0 in which its bits pass the port,
/// when they lie in equal parts in `rows` > 0 rows. The first row costs t_row. With c cycles of
/// bits in each row, `banks` rows take max(banks x c, t_row + c) from then on: a bank opens its
/// next row when the one before has passed. Not modelled: rows that are open when the transfer
/// begins, other transfers in the same banks, refresh, turning from reads to writes.
std::int64_t row_overhead(const DramRows& dram, std::int64_t rows, std::int64_t stream_cycles);

} // namespace monet
