// Quantities with a unit in their type: mixing cycles with bits does not compile.
// Example:
//   constexpr Cycles transfer_cycles(Bits bits, std::int64_t bits_per_cycle) {
//     return {ceil_div(bits.value, bits_per_cycle)}; // `return bits;` does not compile
//   }
//   static_assert(transfer_cycles(Bits{100}, 64) == Cycles{2});
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

namespace monet {

/// A number with a unit. Quantities add and compare only with the same unit, and scale by plain
/// numbers.
template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) { return {a.value * factor}; }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return {a.value * factor}; }
  constexpr Quantity& operator+=(Quantity b) {
    value += b.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity b) {
    value -= b.value;
    return *this;
  }
};

using Cycles = Quantity<struct CyclesTag, std::int64_t>;
using Bits = Quantity<struct BitsTag, std::int64_t>;
using Picojoules = Quantity<struct PicojoulesTag, double>;

/// Energy in whole units of 1/64 pJ, as a schedule's ledger counts it. Integer sums do not depend
/// on their order, so totals by layer, phase, core and component agree exactly. Below 1.4e14 pJ the
/// value in pJ is exact as a double, so sums over the JSON output match, too.
struct Energy {
  std::int64_t units{}; ///< 1/64 pJ

  static constexpr double kUnitsPerPicojoule = 64.0;
  static Energy from(Picojoules e) { return {std::llround(e.value * kUnitsPerPicojoule)}; }
  constexpr Picojoules picojoules() const {
    return {static_cast<double>(units) / kUnitsPerPicojoule};
  }
  friend constexpr auto operator<=>(const Energy&, const Energy&) = default;
  friend constexpr Energy operator+(Energy a, Energy b) { return {a.units + b.units}; }
  friend constexpr Energy operator-(Energy a, Energy b) { return {a.units - b.units}; }
  constexpr Energy& operator+=(Energy b) {
    units += b.units;
    return *this;
  }
};

/// Number of whole bytes that hold `bits`, rounded up.
constexpr std::int64_t bytes_of(Bits bits) {
  return (bits.value + 7) / 8;
}

/// Quotient a / b rounded up, for a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

} // namespace monet
