// Energy and area of a multiplier, a lane and their registers, by number format and node.
#pragma once

#include "monet/numerics/format.hpp"

namespace monet {

/// A number format as relevant for the cost of its arithmetic.
struct FormatShape {
  bool floating = true;
  int significand_bits = 24; ///< significand with the hidden bit; all bits of an integer
  int bits = 32;
};

FormatShape shape_of(const NumberFormat& format);

/// Energy and area of a multiply-accumulate, by part.
struct ArithmeticCost {
  double multiply_pj = 0;
  double add_pj = 0;
  double convert_pj = 0;   ///< products to fixed point
  double registers_pj = 0; ///< two operands and a result
  double multiply_mm2 = 0;
  double add_mm2 = 0;
  double convert_mm2 = 0;
  double registers_mm2 = 0;

  double energy_pj() const { return multiply_pj + add_pj + convert_pj + registers_pj; }
  double area_mm2() const { return multiply_mm2 + add_mm2 + convert_mm2 + registers_mm2; }
};

/// Cost of a product in one format, accumulated in another, at 3 to 90 nm.
/// docs/explanation/hardware-costs.md has the data points and laws.
ArithmeticCost mac_cost(const FormatShape& product, const FormatShape& sum, double node_nm);
/// Share of a floating-point multiplier's energy and area for exponents, rounding and subnormal
/// numbers, which grows linearly with the significand's bits. The rest, the array of partial
/// products, grows quadratically. 0 for integers.
double exponent_share(const FormatShape& product);
/// Default accumulator format: int32 for integers, fp64 for fp64, otherwise fp32.
FormatShape default_accumulator(const FormatShape& product);

} // namespace monet
