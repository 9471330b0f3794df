// Units as silicon: published figures exactly, laws between them, and what nobody can build.
#include "hardware/least_squares.hpp"

#include "monet/hardware/mac_design.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace monet {
namespace {

NumberFormat format(const std::string& name) {
  return parse_number_format(name).value();
}

MacDesign unit(const std::string& multiply, const std::string& variant,
               const std::string& accumulate, bool dsps = true) {
  return {format(multiply), multiplier_named(variant).value(), format(accumulate), dsps};
}

struct Figure {
  std::string format;
  double luts;
  double dsps = 0;
};

// Archimedes project, Vitis HLS 2020.2 for a ZCU104.
TEST(MacDesign, MultipliersArePublished) {
  const std::vector<Figure> figures{
      {"fp32", 374, 2}, {"fp16", 195, 1},   {"bf16", 180, 1}, {"e6m3", 115},   {"e5m3", 86},
      {"e4m3", 78},     {"q16.16", 279, 4}, {"q8.8", 106, 1}, {"q7.7", 93, 1}, {"q6.6", 81, 1}};
  for (const Figure& figure : figures) {
    const MacDesign design{format(figure.format), Multiplier::rounded, {}, true};
    const FpgaCost cost = fpga_cost(design);
    EXPECT_EQ(cost.multiplier.luts, figure.luts) << figure.format;
    EXPECT_EQ(cost.multiplier.dsps, figure.dsps) << figure.format;
    EXPECT_EQ(cost.multiplier.source, FigureSource::measured);
  }
  EXPECT_EQ(fpga_cost(unit("fp32", "rounded", "fp32", false)).multiplier.luts, 987);
  EXPECT_EQ(fpga_cost(unit("fp32", "rounded", "fp32", false)).dsps(), 0);
}

const std::vector<Figure> kFloatAccumulators{{"e7m7", 255}, {"e7m5", 185}, {"e7m3", 187},
                                             {"e6m7", 242}, {"e6m5", 187}, {"e6m3", 165}};
const std::vector<Figure> kFixedAccumulators{
    {"q16.16", 89}, {"q8.13", 55}, {"q8.8", 43}, {"q7.7", 35}, {"q6.6", 32}};

TEST(MacDesign, AccumulatorsArePublished) {
  for (const Figure& figure : kFloatAccumulators)
    EXPECT_EQ(fpga_cost(unit("e2m1", "exact", figure.format)).accumulator.luts, figure.luts)
        << figure.format;
  for (const Figure& figure : kFixedAccumulators)
    EXPECT_EQ(fpga_cost(unit("e2m1", "exact", figure.format)).accumulator.luts, figure.luts)
        << figure.format;
  const FpgaFigure fp32 = fpga_cost(unit("fp32", "rounded", "fp32")).accumulator;
  EXPECT_EQ(fp32.luts, 189);
  EXPECT_EQ(fp32.dsps, 2);
}

/// Of products in e(X+1)m(2Y+1) to Q8.13, by the operands' format.
const std::vector<Figure> kConverters{{"e6m3", 116}, {"e6m2", 103}, {"e6m1", 72},
                                      {"e5m3", 97},  {"e5m2", 81},  {"e5m1", 67}};

TEST(MacDesign, ConvertersArePublished) {
  for (const Figure& figure : kConverters) {
    const FpgaCost cost = fpga_cost(unit(figure.format, "cfg5", "q8.13"));
    ASSERT_TRUE(cost.converter) << figure.format;
    EXPECT_EQ(cost.converter->luts, figure.luts) << figure.format;
    EXPECT_EQ(cost.accumulator.luts, 55);
  }
  EXPECT_FALSE(fpga_cost(unit("e5m2", "cfg5", "e6m5")).converter);
}

/// The laws between published points keep to them, and are what other formats get.
TEST(MacDesign, LawsKeepToWhatIsPublished) {
  const auto fixed = [](double bits) { return 2.89 * bits - 4.0; };
  for (const Figure& figure : kFixedAccumulators)
    EXPECT_NEAR(fixed(format(figure.format).bits()), figure.luts, 2.0) << figure.format;
  EXPECT_DOUBLE_EQ(fpga_cost(unit("e5m2", "cfg5", "q11.13")).accumulator.luts, fixed(24));
  EXPECT_EQ(fpga_cost(unit("e5m2", "cfg5", "q11.13")).accumulator.source, FigureSource::fitted);

  const auto floating = [](const NumberFormat& f) {
    return 11.0 * f.exponent_bits + 18.1 * f.mantissa_bits + 41;
  };
  for (const Figure& figure : kFloatAccumulators)
    EXPECT_NEAR(floating(format(figure.format)), figure.luts, 24.0) << figure.format;
  EXPECT_DOUBLE_EQ(fpga_cost(unit("e4m3", "rounded", "e5m10")).accumulator.luts,
                   floating(format("e5m10")));

  const auto converter = [](const NumberFormat& operands) {
    const int exponent = operands.exponent_bits + 1;
    const int mantissa = 2 * operands.mantissa_bits + 1;
    return 15.3 * exponent + 9.25 * mantissa - 56.6;
  };
  for (const Figure& figure : kConverters)
    EXPECT_NEAR(converter(format(figure.format)), figure.luts, 6.5) << figure.format;
  EXPECT_DOUBLE_EQ(fpga_cost(unit("e4m2", "cfg5", "q8.13")).converter->luts,
                   converter(format("e4m2")));

  for (const Figure& figure : {Figure{"q16.16", 279}, {"q8.8", 106}, {"q7.7", 93}, {"q6.6", 81}}) {
    const double n = format(figure.format).bits();
    EXPECT_NEAR(0.227 * n * n - 0.1 * n + 50, figure.luts, 3.0) << figure.format;
  }
  EXPECT_NEAR(fpga_cost(unit("q10.10", "rounded", "q10.10")).multiplier.luts,
              0.227 * 400 - 0.1 * 20 + 50, 1e-9);
  EXPECT_EQ(fpga_cost(unit("q10.10", "rounded", "q10.10")).multiplier.dsps, 4); // beyond 18 bits
}

TEST(MacDesign, LastVariantsTakeLessThanHalf) {
  for (const char* name : {"e4m2", "e5m1", "e5m2", "e5m3", "e6m3"}) {
    const auto luts = [&](const char* variant) {
      return fpga_cost(unit(name, variant, "q8.13")).multiplier.luts;
    };
    EXPECT_LT(luts("cfg5"), 0.5 * luts("cfg1")) << name;
    EXPECT_EQ(luts("cfg6"), luts("cfg5")) << name;
    for (const auto& [less, more] : {std::pair("cfg2", "cfg1"), std::pair("cfg3", "cfg2"),
                                     std::pair("cfg4", "cfg3"), std::pair("cfg5", "cfg4")})
      EXPECT_LT(luts(less), luts(more)) << name << ' ' << less;
    EXPECT_EQ(fpga_cost(unit(name, "cfg5", "q8.13")).multiplier.source, FigureSource::estimated);
  }
}

struct System {
  MacDesign design;
  double luts;
  double dsps;
};
const std::vector<System>& systems() {
  static const std::vector<System> all{{unit("fp32", "rounded", "fp32"), 58420, 320},
                                       {unit("e5m2", "cfg5", "e6m5"), 42640, 0},
                                       {unit("e5m2", "cfg5", "q8.13"), 43471, 0},
                                       {unit("e5m2", "cfg5", "q11.13"), 44876, 0}};
  return all;
}
constexpr double kUnits = 64; // 16 x 4

TEST(MacDesign, SystemsAreWithinFivePercent) {
  for (const System& system : systems()) {
    const FpgaCost cost = fpga_cost(system.design);
    EXPECT_NEAR(kUnits * cost.system_luts() / system.luts, 1, 0.015) << name_of(system.design);
    EXPECT_EQ(kUnits * cost.system_dsps(), system.dsps) << name_of(system.design);
  }
}

/// The three constants fitted without one of the systems; docs/explanation/mac-unit-costs.md has
/// these figures.
TEST(MacDesign, SystemsLeftOutAreToldApart) {
  const auto around = [](const System& system) {
    const double single = system.design.multiply == kSinglePrecision ? 0 : 1;
    return std::vector<double>{1, single, static_cast<double>(sum_format(system.design).bits())};
  };
  const auto error_without = [&](std::size_t out) {
    std::vector<std::vector<double>> rows;
    std::vector<double> values;
    for (std::size_t i = 0; i < systems().size(); ++i) {
      if (i == out)
        continue;
      rows.push_back(around(systems()[i]));
      values.push_back(systems()[i].luts / kUnits - fpga_cost(systems()[i].design).luts());
    }
    const std::vector<double> constants = test::min_squares(rows, values);
    const std::vector<double> row = around(systems()[out]);
    double predicted = fpga_cost(systems()[out].design).luts();
    for (std::size_t c = 0; c < constants.size(); ++c)
      predicted += constants[c] * row[c];
    return kUnits * predicted / systems()[out].luts - 1;
  };
  EXPECT_NEAR(error_without(1), 0.096, 0.0005);
  EXPECT_NEAR(error_without(2), -0.0235, 0.0005);
  EXPECT_NEAR(error_without(3), 0.0304, 0.0005);
}

/// One law prices formats with and without a unit.
TEST(MacDesign, EnergyIsThatOfTheFormats) {
  const MacDesign design = unit("e5m2", "rounded", "fp32");
  const ArithmeticCost own = mac_cost(design, 22);
  const ArithmeticCost formats = mac_cost(shape_of(format("e5m2")), shape_of(format("fp32")), 22);
  EXPECT_DOUBLE_EQ(own.energy_pj(), formats.energy_pj());
  EXPECT_DOUBLE_EQ(own.area_mm2(), formats.area_mm2());
  EXPECT_EQ(own.convert_pj, 0);
}

// At 45 nm, by hand: a multiplier of p bits takes a p^2 + b p with 1.1 pJ at 11 and 3.7 pJ at 24
// bits, so a = 0.0041667 and b = 0.0541667; of E5M2's p = 3 the second term is 0.8125 of all. The
// law for 3 bits is 1.1 (3/11)^1.5548 = 0.1459 pJ, and CFG-5 leaves 1 - 0.8125 * 0.52.
TEST(MacDesign, VariantsTakeFromTheExponentsPart) {
  EXPECT_NEAR(exponent_share(shape_of(format("e5m2"))), 0.8125, 1e-4);
  EXPECT_NEAR(exponent_share(shape_of(format("fp16"))), 0.0541667 * 11 / 1.1, 1e-4);
  EXPECT_EQ(exponent_share(shape_of(format("int8"))), 0);
  const ArithmeticCost cost = mac_cost(unit("e5m2", "cfg5", "e6m5"), 45);
  const double product = 1.1 * std::pow(3.0 / 11, std::log(3.7 / 1.1) / std::log(24.0 / 11));
  EXPECT_NEAR(product, 0.1459, 1e-4);
  EXPECT_NEAR(cost.multiply_pj, product * (1 - 0.8125 * 0.52), 1e-5);
  // 0.4 (6/11)^1.0394
  EXPECT_NEAR(cost.add_pj, 0.4 * std::pow(6.0 / 11, std::log(0.9 / 0.4) / std::log(24.0 / 11)),
              1e-9);
}

TEST(MacDesign, ConvertersTakeAnAddersPart) {
  const MacDesign design = unit("e5m2", "cfg5", "q8.13");
  const ArithmeticCost cost = mac_cost(design, 45);
  const double adder = 0.4 * std::pow(6.0 / 11, std::log(0.9 / 0.4) / std::log(24.0 / 11));
  EXPECT_NEAR(cost.convert_pj, adder * 81 / (11 * 6 + 18.1 * 5 + 41), 1e-9);
  EXPECT_GT(cost.convert_mm2, 0);
}

TEST(MacDesign, WhatNobodyCanBuild) {
  EXPECT_FALSE(why_not_built(unit("e5m2", "cfg5", "e6m5")));
  EXPECT_FALSE(why_not_built(unit("e5m2", "cfg1", "e5m2")));
  EXPECT_FALSE(why_not_built(unit("e5m2", "cfg5", "q4.4"))); // a converter rounds
  EXPECT_FALSE(why_not_built(unit("int8", "rounded", "int16")));
  EXPECT_FALSE(why_not_built({format("mxint8"), Multiplier::rounded, {}, true}));
  for (const MacDesign& design : {unit("e5m2", "cfg5", "e6m4"), unit("e5m2", "cfg3", "e5m5"),
                                  unit("e5m3", "cfg1", "e5m2"), unit("int8", "rounded", "int15"),
                                  unit("q8.8", "rounded", "q8.6"), unit("int8", "rounded", "fp16")})
    EXPECT_TRUE(why_not_built(design)) << name_of(design);
}

TEST(MacDesign, HasAName) {
  EXPECT_EQ(name_of(unit("e4m2", "cfg5", "e5m5")), "e4m2 cfg5 + e5m5");
  EXPECT_EQ(name_of(unit("int8", "rounded", "int32")), "int8 + int32");
}

} // namespace
} // namespace monet
