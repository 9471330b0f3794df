// What a memory costs: SRAM from a table of CACTI runs, register files, DRAM by kind.
#pragma once

#include "monet/base/units.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace monet {

/// An on-chip memory. docs/explanation/hardware-costs.md has the ranges; outside them memory_cost
/// throws InfeasibleError.
struct MemoryQuery {
  Bits size;
  std::int64_t word_bits = 64; ///< of one access
  double node_nm = 22;
  int ports = 1; ///< 1: one for reads and writes; 2: one each; more cost more
};

inline constexpr std::int64_t kMaxModelledBits = std::int64_t{8} << 30; ///< 1 GiB
inline constexpr std::int64_t kMaxWordBits = 65536;

struct MemoryFigures {
  double read_pj = 0; ///< per access of one word
  double write_pj = 0;
  double area_mm2 = 0;
  double access_ns = 0; ///< of the macro; without wires between macros
};

struct MemoryCost {
  MemoryFigures figures;
  /// As one array: the upper bound that splitting starts from.
  MemoryFigures monolithic;
  bool registers = false;  ///< its macros are register files: less than 1 KiB each
  std::int64_t macros = 1; ///< each of size / macros and word / macros, read together
  /// Part of figures.read_pj that the wires between the macros take.
  double wiring_pj = 0;
};

/// The model's answer. Energy and area never fall as the size or the word grows.
MemoryCost memory_cost(const MemoryQuery& query);

/// The table alone, by log-log bilinear interpolation, neither split nor repaired: equal to the
/// table at its points. Sizes from 1 KiB; ports 1 or 2.
MemoryFigures tabulated_sram(const MemoryQuery& query);

/// One flip-flop: pJ to read or write it, and its area.
MemoryFigures register_bit(double node_nm);

/// Off-chip memory by kind.
struct DramKind {
  std::string_view name; ///< "lpddr5"
  double pj_per_bit = 0; ///< read or written, with the interface
  double gigabytes_per_second = 0;
  std::string_view source;
};
std::span<const DramKind> dram_kinds();
/// The kind of that name, or null.
const DramKind* find_dram_kind(std::string_view name);

} // namespace monet
