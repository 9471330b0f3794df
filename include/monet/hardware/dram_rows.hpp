// Rows and banks of an off-chip memory: the number of rows that a box of a tensor occupies, and the
// time to open them. Optional; a memory without `dram: {banks, row_bits, t_row}` has no rows.
#pragma once

#include "monet/base/interval.hpp"

#include <cstdint>
#include <span>

namespace monet {

/// Organisation of a DRAM into banks, each with one open row at a time. Consecutive rows of a
/// transfer are in alternating banks, so that the next rows are opened while one is read or
/// written.
struct DramRows {
  std::int64_t banks = 1;
  std::int64_t row_bits = 1; ///< bits of one row over all devices and channels of the port
  std::int64_t t_row = 0;    ///< cycles to precharge a bank and activate another row

  friend bool operator==(const DramRows&, const DramRows&) = default;
};

/// Number of rows that hold a box of a contiguous row-major tensor whose element 0 is at the
/// beginning of a row. The box is a number of contiguous runs; each row counts once, even if it
/// holds several runs. 0 for an empty box.
std::int64_t rows_of_box(const Box& box, std::span<const std::int64_t> shape,
                         std::int64_t element_bits, std::int64_t row_bits);

/// Additional cycles of a transfer beyond the `stream_cycles` > 0 in which its bits cross the port,
/// if they lie in equal parts in `rows` > 0 rows. The first row costs t_row. With c cycles of bits
/// per row, every `banks` rows then need max(banks x c, t_row + c) cycles, since a bank opens its
/// next row once the previous one has been transferred. Not modelled: rows open at the start, other
/// transfers in the same banks, refresh, read-write turnaround.
std::int64_t row_overhead(const DramRows& dram, std::int64_t rows, std::int64_t stream_cycles);

} // namespace monet
