// FPGA resources and ASIC figures of multiply-accumulate units, from published designs.
// The hardware report and pricing call it.
#include "monet/hardware/mac_design.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

namespace monet {

namespace {

/// Figures of a published unit. `high` and `low` are the exponent and mantissa bits of a
/// floating-point format, or the integer and fractional bits of a fixed-point one.
struct FpgaRow {
  int high, low;
  double luts, dsps;
};

constexpr std::array kDspMultipliers{FpgaRow{8, 23, 374, 2}, FpgaRow{5, 10, 195, 1},
                                     FpgaRow{8, 7, 180, 1}};
/// CFG-1 and single-precision multipliers built from look-up tables only.
constexpr std::array kLutMultipliers{FpgaRow{8, 23, 987, 0}, FpgaRow{6, 3, 115, 0},
                                     FpgaRow{5, 3, 86, 0}, FpgaRow{4, 3, 78, 0}};
constexpr std::array kFixedMultipliers{FpgaRow{16, 16, 279, 4}, FpgaRow{8, 8, 106, 1},
                                       FpgaRow{7, 7, 93, 1}, FpgaRow{6, 6, 81, 1}};
constexpr std::array kFloatAccumulators{
    FpgaRow{8, 23, 189, 2}, FpgaRow{7, 7, 255, 0}, FpgaRow{7, 5, 185, 0}, FpgaRow{7, 3, 187, 0},
    FpgaRow{6, 7, 242, 0},  FpgaRow{6, 5, 187, 0}, FpgaRow{6, 3, 165, 0}};
constexpr std::array kFixedAccumulators{FpgaRow{16, 16, 89, 0}, FpgaRow{8, 13, 55, 0},
                                        FpgaRow{8, 8, 43, 0}, FpgaRow{7, 7, 35, 0},
                                        FpgaRow{6, 6, 32, 0}};
/// Converters of these product formats to Q8.13.
constexpr std::array kConverters{FpgaRow{7, 7, 116, 0}, FpgaRow{7, 5, 103, 0},
                                 FpgaRow{7, 3, 72, 0},  FpgaRow{6, 7, 97, 0},
                                 FpgaRow{6, 5, 81, 0},  FpgaRow{6, 3, 67, 0}};
constexpr int kConvertedBits = 21; // of Q8.13

std::optional<FpgaFigure> in_table(std::span<const FpgaRow> table, const NumberFormat& format) {
  const int high = format.floating ? format.exponent_bits : format.whole_bits;
  for (const FpgaRow& row : table)
    if (row.high == high && row.low == format.mantissa_bits)
      return FpgaFigure{row.luts, row.dsps, FigureSource::measured};
  return std::nullopt;
}

FpgaFigure fitted(double luts, double dsps = 0) {
  return {std::max(1.0, luts), dsps, FigureSource::fitted};
}

/// Look-up tables of a variant relative to CFG-1. CFG-5 and CFG-6 are published to need less than
/// half; the steps between are not published and assumed equal.
double share_of(Multiplier variant) {
  constexpr double kMaxShareOfLast = 0.48;
  constexpr double kStep = (1 - kMaxShareOfLast) / 4;
  switch (variant) {
  case Multiplier::rounded:
  case Multiplier::cfg1:
    return 1;
  case Multiplier::cfg2:
    return 1 - kStep;
  case Multiplier::exact:
  case Multiplier::cfg3:
    return 1 - 2 * kStep;
  case Multiplier::cfg4:
    return 1 - 3 * kStep;
  case Multiplier::cfg5:
  case Multiplier::cfg6:
    return kMaxShareOfLast;
  }
  return 1;
}

bool is_rounded(Multiplier variant) {
  return variant == Multiplier::rounded || variant == Multiplier::cfg1 ||
         variant == Multiplier::cfg2;
}

FpgaFigure multiplier_of(const MacDesign& design) {
  const NumberFormat& format = design.multiply;
  if (!format.floating) {
    const double n = format.bits();
    constexpr double kDspBits = 18;
    if (const auto known = in_table(kFixedMultipliers, format))
      return *known;
    return fitted(0.227 * n * n - 0.1 * n + 50, std::pow(std::ceil(n / kDspBits), 2));
  }
  FpgaFigure figure;
  const auto with_dsps = in_table(kDspMultipliers, format);
  const auto without = in_table(kLutMultipliers, format);
  const double p = format.significand_bits();
  if (design.dsps && with_dsps)
    figure = *with_dsps;
  else
    figure = without ? *without : fitted(18.5 * format.exponent_bits + 1.497 * p * p - 23.5);
  if (const double share = share_of(design.variant); share < 1)
    figure = {figure.luts * share, figure.dsps, FigureSource::estimated};
  return figure;
}

FpgaFigure accumulator_of(const MacDesign& design) {
  const NumberFormat sum = sum_format(design);
  if (!sum.floating) {
    const auto known = in_table(kFixedAccumulators, sum);
    return known ? *known : fitted(2.89 * sum.bits() - 4.0);
  }
  const auto known = in_table(kFloatAccumulators, sum);
  if (known && (design.dsps || known->dsps == 0))
    return *known;
  return fitted(11.0 * sum.exponent_bits + 18.1 * sum.mantissa_bits + 41);
}

FpgaFigure converter_of(const NumberFormat& product, const NumberFormat& sum) {
  const auto known = in_table(kConverters, product);
  FpgaFigure figure =
      known ? *known : fitted(15.3 * product.exponent_bits + 9.25 * product.mantissa_bits - 56.6);
  if (sum.bits() != kConvertedBits) // a shifter as wide as the sum
    figure = {figure.luts * sum.bits() / kConvertedBits, 0, FigureSource::estimated};
  return figure;
}

/// Area of the circuits around the units: least squares on the four published systems of 64 units.
/// docs/explanation/mac-unit-costs.md lists the errors.
FpgaFigure around(const MacDesign& design, double unit_dsps) {
  constexpr double kBase = 166.0;
  constexpr double kConversion = 207.2; // from and to single precision in memory
  constexpr double kPerBitOfSums = 5.744;
  const bool converts = design.multiply != kSinglePrecision;
  return {kBase + (converts ? kConversion : 0) + kPerBitOfSums * sum_format(design).bits(),
          unit_dsps > 0 ? 1.0 : 0.0, FigureSource::fitted};
}

} // namespace

NumberFormat product_format(const MacDesign& design) {
  const NumberFormat& format = design.multiply;
  if (!format.floating)
    return format.mantissa_bits > 0 ? format : fixed_format(2 * format.whole_bits, 0);
  if (is_rounded(design.variant))
    return format;
  NumberFormat product = format;
  product.exponent_bits += 1;
  product.mantissa_bits = 2 * format.mantissa_bits + 1;
  return product;
}

NumberFormat sum_format(const MacDesign& design) {
  if (design.accumulate)
    return *design.accumulate;
  if (design.multiply.floating)
    return design.multiply.bits() > 32 ? kDoublePrecision : kSinglePrecision;
  constexpr int kSumBits = 32;
  const int fraction = design.multiply.mantissa_bits;
  return fixed_format(std::max(kSumBits - fraction, design.multiply.whole_bits), fraction);
}

std::optional<std::string> why_not_built(const MacDesign& design) {
  const NumberFormat product = product_format(design);
  const NumberFormat sum = sum_format(design);
  const auto narrower = [&](std::string_view what) {
    return fmt::format(
        "products in {} are wider than the accumulator, {}, and nothing rounds them: "
        "{}",
        name_of(product), name_of(sum), what);
  };
  if (!design.multiply.floating) {
    if (sum.floating)
      return fmt::format("products of {} are whole numbers of steps: they are added up in fixed "
                         "point, not in {}",
                         name_of(design.multiply), name_of(sum));
    if (sum.whole_bits < product.whole_bits || sum.mantissa_bits < product.mantissa_bits)
      return narrower("an accumulator has at least the product's bits on both sides of the point");
    return std::nullopt;
  }
  if (sum.floating &&
      (sum.exponent_bits < product.exponent_bits || sum.mantissa_bits < product.mantissa_bits))
    return narrower(is_rounded(design.variant)
                        ? "an accumulator has at least the product's exponent and mantissa"
                        : "use a wider accumulator, or a variant that rounds (cfg1, cfg2)");
  return std::nullopt;
}

std::string name_of(const MacDesign& design) {
  const bool plain = !design.multiply.floating || design.variant == Multiplier::rounded;
  return fmt::format("{}{}{} + {}", name_of(design.multiply), plain ? "" : " ",
                     plain ? "" : name_of(design.variant), name_of(sum_format(design)));
}

std::string_view name_of(FigureSource source) {
  constexpr std::array<std::string_view, 3> kNames{"measured", "fitted", "estimated"};
  return kNames.at(static_cast<std::size_t>(source));
}

double FpgaCost::luts() const {
  return multiplier.luts + (converter ? converter->luts : 0) + accumulator.luts;
}
double FpgaCost::dsps() const {
  return multiplier.dsps + accumulator.dsps;
}
double FpgaCost::system_luts() const {
  return luts() + around.luts;
}
double FpgaCost::system_dsps() const {
  return dsps() + around.dsps;
}

FpgaCost fpga_cost(const MacDesign& design) {
  FpgaCost cost;
  cost.multiplier = multiplier_of(design);
  cost.accumulator = accumulator_of(design);
  const NumberFormat product = product_format(design);
  const NumberFormat sum = sum_format(design);
  if (product.floating && !sum.floating)
    cost.converter = converter_of(product, sum);
  cost.around = around(design, cost.dsps());
  return cost;
}

ArithmeticCost mac_cost(const MacDesign& design, double node_nm) {
  const NumberFormat product = product_format(design);
  const NumberFormat sum = sum_format(design);
  const FormatShape shape = shape_of(design.multiply);
  ArithmeticCost cost = mac_cost(shape, shape_of(sum), node_nm);
  // Variants do not change the array of partial products.
  const double left = 1 - exponent_share(shape) * (1 - share_of(design.variant));
  cost.multiply_pj *= left;
  cost.multiply_mm2 *= left;
  if (product.floating && !sum.floating) {
    // A shifter and its rounding, priced as the share of an adder with equal look-up tables.
    const double part = converter_of(product, sum).luts /
                        (11.0 * product.exponent_bits + 18.1 * product.mantissa_bits + 41);
    const ArithmeticCost adder = mac_cost(shape_of(product), shape_of(product), node_nm);
    cost.convert_pj = part * adder.add_pj;
    cost.convert_mm2 = part * adder.add_mm2;
  }
  return cost;
}

} // namespace monet
