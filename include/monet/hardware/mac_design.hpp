// Hardware design of a multiply-accumulate unit: formats of products and sums, and its cost on a
// chip and on an FPGA. Its arithmetic is in monet/numerics/mac.hpp.
// Example:
//   double bf16_mac_pj(double node_nm) {
//     MacDesign design;
//     design.multiply = floating_format(8, 7);
//     design.accumulate = kSinglePrecision;
//     return mac_cost(design, node_nm).energy_pj();
//   }
#pragma once

#include "monet/numerics/format.hpp"
#include "monet/numerics/mac.hpp"

#include <optional>
#include <string>
#include <string_view>

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

/// Design of a multiply-accumulate unit.
struct MacDesign {
  NumberFormat multiply;                    ///< format of both operands
  Multiplier variant = Multiplier::rounded; ///< for floating-point operands; rounded is cfg1
  /// Accumulator format. nullopt: single precision for floating-point operands (double for double),
  /// 32 bits for integers.
  std::optional<NumberFormat> accumulate;
  bool dsps = true; ///< use an FPGA's DSPs to multiply and add; false: look-up tables only
  friend bool operator==(const MacDesign&, const MacDesign&) = default;
};

/// Format of products: that of the operands if products are rounded or fixed-point. Otherwise
/// e(X+1)m(2Y+1), or for integers the sum of the operands' bits.
NumberFormat product_format(const MacDesign& design);
/// Format of sums.
NumberFormat sum_format(const MacDesign& design);
/// Reason why the design cannot be built; nullopt if it can.
std::optional<std::string> why_not_built(const MacDesign& design);
/// Name of a design: "e5m2 cfg5 + e6m5".
std::string name_of(const MacDesign& design);

/// Origin of a figure.
enum class FigureSource {
  measured,  ///< published for exactly this unit
  fitted,    ///< law fitted to published figures
  estimated, ///< extrapolated beyond published figures, with an assumption
};
std::string_view name_of(FigureSource source);

/// Resources on an FPGA with six-input look-up tables and 18-bit DSPs (Vitis HLS 2020.2 for a Zynq
/// UltraScale+; Archimedes project, Inria, "Exploring low-precision formats in MAC units for DNN
/// training").
struct FpgaFigure {
  double luts = 0;
  double dsps = 0;
  FigureSource source = FigureSource::measured;
};

/// Resources of a multiply-accumulate unit on an FPGA, by part.
struct FpgaCost {
  FpgaFigure multiplier;
  std::optional<FpgaFigure> converter; ///< converter of floating-point products to fixed-point sums
  FpgaFigure accumulator;
  /// Share of one unit in the overhead of a system of 64 units: buffers, control, operand
  /// conversion unless in single precision, and data paths as wide as sums. Fitted to four systems.
  FpgaFigure around;

  double luts() const;
  double dsps() const;        ///< DSPs of the unit itself
  double system_luts() const; ///< look-up tables including its share of the system
  double system_dsps() const;
};
FpgaCost fpga_cost(const MacDesign& design);

/// Energy of a product and area on a chip, for 3 to 90 nm. As mac_cost() of the formats, plus a
/// converter if needed, minus the part of the multiplier that the variant omits.
ArithmeticCost mac_cost(const MacDesign& design, double node_nm);

} // namespace monet
