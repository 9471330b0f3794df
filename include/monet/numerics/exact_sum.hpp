// Sums without rounding, as a Kulisch accumulator holds them (Kulisch, "Computer arithmetic and
// validity", 2013).
#pragma once

#include <array>
#include <cstdint>

namespace monet {

/// The exact sum of up to 2^31 doubles.
class ExactSum {
public:
  void add(double x);
  /// a * b without rounding, for factors whose product neither overflows nor has bits below
  /// 2^-1074.
  void add_product(double a, double b);

  /// The sum rounded to double: to even, or to the neighbour of the two with an odd last bit, which
  /// a format with two bits less rounds as it would the sum itself. Infinity and NaN as in IEEE.
  double rounded() const { return value(false); }
  double odd() const { return value(true); }

private:
  double value(bool odd) const;

  /// 32 bits each and room for carries, the lowest worth 2^-1074.
  static constexpr int kLimbs = 68;
  std::array<std::int64_t, kLimbs> limbs_{};
  double special_ = 0; ///< the sum of infinities and NaN
};

} // namespace monet
