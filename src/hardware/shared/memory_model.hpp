// Energy and area of memories: SRAM from a table of CACTI runs, register files, DRAM by kind.
#pragma once

#include "monet/base/units.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace monet {

/// Parameters of an on-chip memory. docs/explanation/hardware-costs.md has the ranges; outside them
/// memory_cost() throws InfeasibleError.
struct MemoryQuery {
  Bits size;
  std::int64_t word_bits = 64; ///< width of one access
  double node_nm = 22;
  int ports = 1; ///< 1: one for reads and writes; 2: one each; more ports cost more
};

inline constexpr std::int64_t kMaxModelledBits = std::int64_t{8} << 30; ///< 1 GiB
inline constexpr std::int64_t kMaxWordBits = 65536;

/// Energy, area and access time of a memory.
struct MemoryFigures {
  double read_pj = 0; ///< energy per access of one word
  double write_pj = 0;
  double area_mm2 = 0;
  double access_ns = 0; ///< access time of a macro, without wires between macros
};

/// Result of memory_cost().
struct MemoryCost {
  MemoryFigures figures;
  /// Figures without splitting into macros: the upper bound from which splitting starts.
  MemoryFigures monolithic;
  bool registers = false;  ///< the macros are register files: less than 1 KiB each
  std::int64_t macros = 1; ///< number of macros of size / macros and word / macros, read together
  /// Part of figures.read_pj for the wires between the macros.
  double wiring_pj = 0;
};

/// Cost of an on-chip memory. Energy and area never decrease with size or word width.
MemoryCost memory_cost(const MemoryQuery& query);

/// SRAM figures from the table alone, by log-log bilinear interpolation; exact at the table's
/// points. Neither split into macros nor corrected to be monotonic. Sizes from 1 KiB; ports 1 or 2.
MemoryFigures tabulated_sram(const MemoryQuery& query);

/// Figures of one flip-flop: energy in pJ per read or write, and area.
MemoryFigures register_bit(double node_nm);

/// A kind of off-chip memory.
struct DramKind {
  std::string_view name; ///< "lpddr5"
  double pj_per_bit = 0; ///< energy per bit read or written, including the interface
  double gigabytes_per_second = 0;
  std::string_view source;
};
std::span<const DramKind> dram_kinds();
/// Kind with this name, or null.
const DramKind* find_dram_kind(std::string_view name);

} // namespace monet
