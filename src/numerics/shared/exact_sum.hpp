// ExactSum: sums without rounding, as in a Kulisch accumulator (Kulisch, "Computer arithmetic and
// validity", 2013).
#pragma once

#include <array>
#include <cstdint>

namespace monet {

/// Exact sum of up to 2^31 doubles.
class ExactSum {
public:
  void add(double x);
  /// Adds a * b without rounding. The product must neither overflow nor have bits below 2^-1074.
  void add_product(double a, double b);

  /// The sum rounded to the nearest double, ties to even. Infinity and NaN as in IEEE 754.
  double rounded() const { return value(false); }
  /// The sum rounded to odd: an inexact sum becomes the neighbouring double with an odd last bit.
  /// Rounding this to a format with at least two bits fewer equals rounding the exact sum. Infinity
  /// and NaN as in IEEE 754.
  double odd() const { return value(true); }

private:
  double value(bool odd) const;

  /// Number of limbs of 32 bits, each stored with room for carries; the lowest bit is worth
  /// 2^-1074.
  static constexpr int kLimbs = 68;
  std::array<std::int64_t, kLimbs> limbs_{};
  double special_ = 0; ///< sum of infinities and NaN
};

} // namespace monet
