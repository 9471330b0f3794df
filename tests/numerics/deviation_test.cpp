#include "base/shared/rng.hpp"
#include "numerics/shared/exact_sum.hpp"

#include "monet/numerics/blocks.hpp"
#include "monet/numerics/mac.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace monet {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

TensorFormat format_named(const char* name) {
  return *parse_tensor_format(name);
}

TEST(Deviation, CountsAndErrorsByHand) {
  const std::vector<double> before{4, 3, 0.5, 0, 5, kNotANumber, kInf};
  const std::vector<double> after{4, 2, 0, 0, kInf, kNotANumber, kInf};
  const Deviation found = deviation(before, after);
  EXPECT_EQ(found.numbers, 7);
  EXPECT_EQ(found.inexact, 3); // 3, 0.5 and 5
  EXPECT_EQ(found.flushed, 1);
  EXPECT_EQ(found.nan, 1);
  EXPECT_EQ(found.infinite, 2);
  EXPECT_EQ(found.largest_absolute, 1);
  EXPECT_EQ(found.largest_relative, 1); // 0.5 became 0
  // Of 4, 3, 0.5 and 0: squares of errors 0, 1, 0.25, 0, of numbers 16, 9, 0.25, 0.
  EXPECT_DOUBLE_EQ(found.rms, std::sqrt(1.25 / 4));
  EXPECT_NEAR(*found.sqnr_db, 10 * std::log10(25.25 / 1.25), 1e-12);
}

TEST(Deviation, NothingIsNoNoise) {
  const std::vector<double> exact{1, 2};
  EXPECT_FALSE(deviation(exact, exact).sqnr_db);
  EXPECT_FALSE(deviation({}, {}).sqnr_db);
  EXPECT_EQ(deviation({}, {}).rms, 0);
  // Squares of these overflow and vanish.
  for (const double scale : {1e300, 1e-300}) {
    const Deviation found = deviation(std::vector<double>{scale}, std::vector<double>{1.5 * scale});
    EXPECT_NEAR(found.rms / scale, 0.5, 1e-12);
    EXPECT_NEAR(*found.sqnr_db, 20 * std::log10(2.0), 1e-9);
  }
}

BeyondRange beyond(const char* name, const std::vector<double>& numbers, Rounding rounding = {},
                   bool full_range = false) {
  const TensorFormat format = format_named(name);
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(numbers.size())};
  return beyond_range(numbers, quantise(shape, numbers, format, {rounding, full_range, 0, {}}),
                      format, format.blocks ? !full_range : rounding.symmetric);
}

TEST(BeyondRange, IsWhatTheFormatDoesWithIt) {
  Rounding saturate;
  saturate.saturate = true;
  Rounding symmetric;
  symmetric.symmetric = true;
  const auto expect = [](const BeyondRange& found, std::int64_t saturated,
                         std::int64_t overflowed) {
    EXPECT_EQ(found.saturated, saturated);
    EXPECT_EQ(found.overflowed, overflowed);
  };
  expect(beyond("e5m2", {57344, 60000, 70000, -70000, kInf, kNotANumber}), 1, 2);
  expect(beyond("e5m2", {57344, 60000, 70000, -70000, kInf, kNotANumber}, saturate), 4, 0);
  expect(beyond("fp8_e4m3", {448, 449, 480, -kInf}), 1, 2); // half a step is 16
  expect(beyond("fp4_e2m1", {6, 6.1, -100, kInf}), 3, 0);
  expect(beyond("int8", {127, 127.4, -128, -129, -127.4}), 2, 0);
  expect(beyond("int8", {127, 127.4, -128, -129, -127.4}, symmetric), 4, 0);
  // A scale of 1, under which 6 is the largest.
  expect(beyond("mxfp4_e2m1", {4, 6, 7, -7}), 2, 0);
  expect(beyond("mxfp4_e2m1", {4, kInf}), 0, 0); // the whole block is NaN
}

TEST(PreciseProduct, IsTheExactSumInDouble) {
  const GemmShape shape{3, 5, 64};
  std::vector<double> a;
  std::vector<double> b;
  const auto number = [](std::uint64_t i) {
    const std::uint64_t bits = random_bits(7, i);
    return std::ldexp(static_cast<double>(bits >> 11), static_cast<int>(bits % 40) - 73) *
           (bits % 2 == 0 ? 1 : -1);
  };
  for (std::uint64_t i = 0; i < 3 * 64; ++i)
    a.push_back(number(i));
  for (std::uint64_t i = 0; i < 64 * 5; ++i)
    b.push_back(number(1000 + i));
  const std::vector<double> c = precise_product(shape, a, b, 2);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 5; ++j) {
      ExactSum sum;
      for (std::size_t q = 0; q < 64; ++q)
        sum.add_product(a[i * 64 + q], b[q * 5 + j]);
      EXPECT_DOUBLE_EQ(c[i * 5 + j], sum.rounded());
    }
  }
  const std::vector<double> huge =
      precise_product({1, 1, 2}, std::vector<double>{1e308, 1}, std::vector<double>{1e10, 1});
  EXPECT_EQ(huge[0], kInf);
  EXPECT_EQ(precise_product({2, 2, 0}, {}, {}), std::vector<double>(4, 0.0));
}

TEST(ExactSum, RoundsByEveryBitBelow) {
  for (int scale = 0; scale < 32; ++scale)
    for (int place = 54; place < 250; ++place)
      for (const double sign : {1.0, -1.0}) {
        const double one = std::ldexp(sign, scale);
        const double last = std::ldexp(one, -52);
        const double tiny = std::ldexp(one, -place);
        ExactSum above; // one, half of its last bit, and a little more
        ExactSum below;
        for (const double x : {one, last / 2, tiny})
          above.add(x);
        for (const double x : {one, last / 2, -tiny})
          below.add(x);
        ASSERT_EQ(above.rounded(), one + last) << scale << " " << place;
        ASSERT_EQ(below.rounded(), one) << scale << " " << place;
        ASSERT_EQ(below.odd(), one + last) << scale << " " << place;
      }
}

TEST(Stored, CodesOfElementsAndScales) {
  EXPECT_EQ(element_code(format_named("fp8_e4m3"), 448), 0x7EU);
  EXPECT_EQ(element_code(format_named("int8"), -1), 0xFFU);
  EXPECT_EQ(element_code(format_named("int8"), kNotANumber), std::nullopt);
  EXPECT_EQ(element_code(format_named("fp8_e4m3"), kNotANumber), 0x7FU);
  EXPECT_EQ(element_code(format_named("mxfp4_e2m1"), kNotANumber), 0U); // its scale is NaN
  const BlockScaling power = *format_named("mxfp4_e2m1").blocks;
  EXPECT_EQ(scale_code(power, 0.25), 125U);
  EXPECT_EQ(scale_code(power, kNotANumber), 255U);
  EXPECT_EQ(scale_bits(power), 8);
  const BlockScaling nvidia = *format_named("nvfp4").blocks;
  EXPECT_EQ(scale_code(nvidia, 448), 0x7EU);
  EXPECT_EQ(scale_bits(*format_named("fp8_e4m3_1x128").blocks), 32);
}

TEST(Stored, BitsPerElement) {
  EXPECT_EQ(bits_per_element(format_named("fp16")), 16);
  EXPECT_EQ(bits_per_element(format_named("mxfp8_e4m3")), 8.25);
  EXPECT_EQ(bits_per_element(format_named("mxfp6_e3m2")), 6.25);
  EXPECT_EQ(bits_per_element(format_named("mxfp4_e2m1")), 4.25);
  EXPECT_EQ(bits_per_element(format_named("nvfp4")), 4.5);
  EXPECT_EQ(bits_per_element(format_named("fp8_e4m3_1x128")), 8.25);
}

} // namespace
} // namespace monet
