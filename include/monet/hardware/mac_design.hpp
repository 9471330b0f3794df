// A multiply-accumulate unit as silicon: what it multiplies in, what it adds up in, and what that
// takes on a chip and on an FPGA. What such a unit computes is in monet/numerics/mac.hpp.
#pragma once

#include "monet/hardware/arithmetic_model.hpp"
#include "monet/numerics/mac.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace monet {

struct MacDesign {
  NumberFormat multiply;                    ///< of both operands
  Multiplier variant = Multiplier::rounded; ///< of floating-point operands; rounded is cfg1
  /// None: single precision for floating-point operands (double for double), 32 bits for integers.
  std::optional<NumberFormat> accumulate;
  bool dsps = true; ///< an FPGA's DSPs may multiply and add; false: look-up tables alone
  friend bool operator==(const MacDesign&, const MacDesign&) = default;
};

/// The format of products: that of the operands where they are rounded, as those of fixed point
/// are; else e(X+1)m(2Y+1), or of integers as many bits as both operands have.
NumberFormat product_format(const MacDesign& design);
/// What sums are in.
NumberFormat sum_format(const MacDesign& design);
/// Why nobody can build it, in words; nothing if somebody can.
std::optional<std::string> why_not_built(const MacDesign& design);
/// "e5m2 cfg5 + e6m5".
std::string name_of(const MacDesign& design);

/// Where a figure comes from.
enum class FigureSource {
  measured,  ///< published for this very unit
  fitted,    ///< from a law through published figures
  estimated, ///< beyond what is published: an assumption is part of it
};
std::string_view name_of(FigureSource source);

/// On an FPGA with six-input look-up tables and 18-bit DSPs (Vitis HLS 2020.2 for a Zynq
/// UltraScale+; Archimedes project, Inria, "Exploring low-precision formats in MAC units for DNN
/// training").
struct FpgaFigure {
  double luts = 0;
  double dsps = 0;
  FigureSource source = FigureSource::measured;
};

struct FpgaCost {
  FpgaFigure multiplier;
  std::optional<FpgaFigure> converter; ///< of floating-point products to fixed-point sums
  FpgaFigure accumulator;
  /// Of a unit's share of a system of 64 of them: buffers, control, conversion of operands that are
  /// not single precision, and paths as wide as sums. Fitted on four systems.
  FpgaFigure around;

  double luts() const;
  double dsps() const;        ///< of the unit itself
  double system_luts() const; ///< with its share of the system
  double system_dsps() const;
};
FpgaCost fpga_cost(const MacDesign& design);

/// Energy of a product and area on a chip; 3 to 90 nm. As mac_cost() of the formats, with a
/// converter where there is one, and without the part of a multiplier that a variant takes away.
ArithmeticCost mac_cost(const MacDesign& design, double node_nm);

} // namespace monet
