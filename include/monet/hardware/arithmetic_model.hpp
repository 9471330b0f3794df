// What a multiplier, a lane and their registers cost, by number format and node.
#pragma once

#include "monet/numerics/format.hpp"

namespace monet {

/// A number format as its arithmetic sees it.
struct FormatShape {
  bool floating = true;
  int significand_bits = 24; ///< with the hidden one; all bits of an integer
  int bits = 32;
};

FormatShape shape_of(const NumberFormat& format);

struct ArithmeticCost {
  double multiply_pj = 0;
  double add_pj = 0;
  double convert_pj = 0;   ///< products to fixed point
  double registers_pj = 0; ///< two operands and a result, in and out of the lane
  double multiply_mm2 = 0;
  double add_mm2 = 0;
  double convert_mm2 = 0;
  double registers_mm2 = 0;

  double energy_pj() const { return multiply_pj + add_pj + convert_pj + registers_pj; }
  double area_mm2() const { return multiply_mm2 + add_mm2 + convert_mm2 + registers_mm2; }
};

/// A product in one format, added up in another, at 3 to 90 nm. docs/explanation/hardware-costs.md
/// has the points and laws.
ArithmeticCost mac_cost(const FormatShape& product, const FormatShape& sum, double node_nm);
/// Part of the energy and area of a floating-point multiplier that exponents, rounding and
/// subnormal numbers take, which grows with the bits of the significand; the rest, the array of
/// partial products, grows with their square. 0 for integers.
double exponent_share(const FormatShape& product);
/// What products are added up in unless the file says so: int32 for integers, fp64 for fp64, else
/// fp32.
FormatShape default_accumulator(const FormatShape& product);

} // namespace monet
