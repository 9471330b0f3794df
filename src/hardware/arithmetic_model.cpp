// Energy and area of floating-point and integer arithmetic by number format and technology node.
// pricing.cpp calls it for cores that leave these figures out.
#include "hardware/shared/memory_model.hpp"
#include "hardware/shared/technology.hpp"

#include "monet/hardware/mac_design.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

/// Published figures of a narrow and a wide unit: pJ of one operation at 45 nm (Horowitz, ISSCC
/// 2014) and at 7 nm (Jouppi et al., ISCA 2021, table 2), and square micrometres at 45 nm
/// (Horowitz; Dally, NIPS 2015 tutorial). Other widths follow a power law in the bits of the
/// significand.
struct UnitPoints {
  double narrow_bits, wide_bits;
  double narrow_pj_45, wide_pj_45;
  double narrow_pj_7, wide_pj_7;
  double narrow_um2, wide_um2;
};
constexpr UnitPoints kIntegerMultiply{8, 32, 0.2, 3.1, 0.07, 1.48, 282, 3495};
constexpr UnitPoints kIntegerAdd{8, 32, 0.03, 0.1, 0.007, 0.03, 36, 137};
constexpr UnitPoints kFloatMultiply{11, 24, 1.1, 3.7, 0.34, 1.31, 1640, 7700};
constexpr UnitPoints kFloatAdd{11, 24, 0.4, 0.9, 0.16, 0.38, 1360, 4184};

double power_law(double bits, const UnitPoints& unit, double narrow, double wide) {
  const double exponent = std::log(wide / narrow) / std::log(unit.wide_bits / unit.narrow_bits);
  return narrow * std::pow(bits / unit.narrow_bits, exponent);
}

/// Energy of one operation in pJ. The node scales it log-log between 45 and 7 nm; larger nodes
/// scale it like logic, smaller ones like wires and cells.
double unit_pj(const UnitPoints& unit, int bits, double node_nm) {
  const double at_45 = power_law(bits, unit, unit.narrow_pj_45, unit.wide_pj_45);
  const double at_7 = power_law(bits, unit, unit.narrow_pj_7, unit.wide_pj_7);
  if (node_nm >= 45)
    return at_45 * logic_energy_scale(node_nm);
  if (node_nm < 7)
    return at_7 * sram_energy_scale(node_nm) / sram_energy_scale(7);
  return at_45 * std::pow(at_7 / at_45, std::log(45 / node_nm) / std::log(45.0 / 7));
}

double unit_mm2(const UnitPoints& unit, int bits, double node_nm) {
  constexpr double kSquareMillimetres = 1e-6; // in a square micrometre
  return power_law(bits, unit, unit.narrow_um2, unit.wide_um2) * kSquareMillimetres *
         logic_area_scale(node_nm);
}

} // namespace

FormatShape shape_of(const NumberFormat& format) {
  return {format.floating, format.significand_bits(), format.bits()};
}

FormatShape default_accumulator(const FormatShape& product) {
  if (!product.floating)
    return {false, std::max(32, product.bits), std::max(32, product.bits)};
  return product.bits > 32 ? product : FormatShape{true, 24, 32};
}

ArithmeticCost mac_cost(const FormatShape& product, const FormatShape& sum, double node_nm) {
  const UnitPoints& multiply = product.floating ? kFloatMultiply : kIntegerMultiply;
  const UnitPoints& add = sum.floating ? kFloatAdd : kIntegerAdd;
  const MemoryFigures bit = register_bit(node_nm);
  const double bits = 2.0 * product.bits + sum.bits;
  return {unit_pj(multiply, product.significand_bits, node_nm),
          unit_pj(add, sum.significand_bits, node_nm),
          0,
          bits * bit.write_pj,
          unit_mm2(multiply, product.significand_bits, node_nm),
          unit_mm2(add, sum.significand_bits, node_nm),
          0,
          bits * bit.area_mm2};
}

double exponent_share(const FormatShape& product) {
  if (!product.floating)
    return 0;
  // a p^2 + b p through both published points
  constexpr UnitPoints kUnit = kFloatMultiply;
  const double slope =
      (kUnit.wide_pj_45 / kUnit.wide_bits - kUnit.narrow_pj_45 / kUnit.narrow_bits) /
      (kUnit.wide_bits - kUnit.narrow_bits);
  const double linear = kUnit.narrow_pj_45 / kUnit.narrow_bits - slope * kUnit.narrow_bits;
  return linear / (linear + slope * product.significand_bits);
}

} // namespace monet
