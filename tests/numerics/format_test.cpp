// Formats by name, and what their codes stand for.
#include "base/shared/half.hpp"

#include "monet/numerics/format.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace monet {
namespace {

NumberFormat format_of(std::string_view name) {
  const auto format = parse_number_format(name);
  EXPECT_TRUE(format) << name;
  return format.value_or(NumberFormat{});
}

/// Two doubles are the same number, NaN and NaN among them; zeros by sign.
void expect_same(double a, double b, const std::string& what) {
  if (std::isnan(a) || std::isnan(b)) {
    EXPECT_TRUE(std::isnan(a) && std::isnan(b)) << what << ": " << a << " and " << b;
    return;
  }
  EXPECT_EQ(a, b) << what;
  EXPECT_EQ(std::signbit(a), std::signbit(b)) << what;
}

TEST(NumberFormats, KnowTheTableOfTheOcp) {
  struct Row {
    const char* name;
    int bits;
    double largest, smallest_normal, smallest;
  };
  for (const Row& row :
       {Row{"mxfp8_e5m2", 8, 57344, 0x1p-14, 0x1p-16}, Row{"mxfp8_e4m3", 8, 448, 0x1p-6, 0x1p-9},
        Row{"mxfp6_e3m2", 6, 28, 0.25, 0.0625}, Row{"mxfp6_e2m3", 6, 7.5, 1, 0.125},
        Row{"mxfp4_e2m1", 4, 6, 1, 0.5}, Row{"fp16", 16, 65504, 0x1p-14, 0x1p-24},
        Row{"e4m3", 8, 240, 0x1p-6, 0x1p-9}, Row{"mxint8", 8, 1.984375, 0x1p-6, 0x1p-6},
        Row{"q8.13", 21, 128 - 0x1p-13, 0x1p-13, 0x1p-13},
        Row{"bf16", 16, 0x1.FEp127, 0x1p-126, 0x1p-133}}) {
    const NumberFormat format = format_of(row.name);
    EXPECT_EQ(format.bits(), row.bits) << row.name;
    EXPECT_EQ(largest_number(format), row.largest) << row.name;
    EXPECT_EQ(smallest_normal(format), row.smallest_normal) << row.name;
    EXPECT_EQ(smallest_number(format), row.smallest) << row.name;
  }
  EXPECT_EQ(lowest_number(format_of("mxint8")), -2);
  EXPECT_EQ(lowest_number(format_of("uint8")), 0);
}

TEST(NumberFormats, AreFoundByTheirOwnNames) {
  for (const std::string& name : common_format_names())
    EXPECT_EQ(parse_number_format(name_of(format_of(name))), format_of(name)) << name;
  for (int exponent = 1; exponent <= 8; ++exponent) {
    for (int mantissa = 0; mantissa <= 23; ++mantissa) {
      for (const TopCodes top :
           {TopCodes::ieee, TopCodes::nan, TopCodes::infinity, TopCodes::numbers}) {
        const NumberFormat format = floating_format(exponent, mantissa, top);
        EXPECT_EQ(parse_number_format(name_of(format)), format) << name_of(format);
      }
    }
  }
  for (const char* name :
       {"",     "e",      "e5",   "m2",    "e0m3", "e5m2x", "fp",   "fp9_",  "q",     "q8",
        "q0.3", "q40.40", "int0", "int65", "mx",   "mxfp8", "mxmx", "e31m3", "e5m99", "x5m2"})
    EXPECT_FALSE(parse_number_format(name)) << name;
}

TEST(NumberFormats, EncodeWhatTheyDecode) {
  for (const char* name :
       {"e5m2", "e4m3", "e4m3_fn", "e3m4", "e2m1", "e2m3_n", "e3m2_n", "fp4_e2m1", "e1m2",
        "e1m6_fn", "e5m2_inf", "e7m0", "int8", "uint8", "q4.4", "mxint8", "int4", "fp16", "bf16"}) {
    const NumberFormat format = format_of(name);
    for (std::uint64_t code = 0; code < std::uint64_t{1} << format.bits(); ++code) {
      const double value = decode(format, code);
      const auto back = encode(format, value);
      ASSERT_TRUE(back) << name << " " << code;
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(decode(format, *back)));
      else
        EXPECT_EQ(*back, code) << name;
    }
  }
}

TEST(NumberFormats, ReadAllCodesOfSixteenBitsAsBefore) {
  for (const auto& [name, exponent_bits] : {std::pair{"fp16", 5}, std::pair{"bf16", 8}}) {
    const NumberFormat format = format_of(name);
    for (std::uint64_t code = 0; code < 0x10000; ++code) {
      expect_same(decode(format, code),
                  half_to_double(static_cast<std::uint16_t>(code), exponent_bits),
                  std::string(name) + " " + std::to_string(code));
    }
  }
}

TEST(NumberFormats, ReadSinglesAsTheMachine) {
  const NumberFormat single = format_of("fp32");
  std::uint32_t code = 1;
  for (int i = 0; i < 100000; ++i) {
    code = code * 2654435761U + 12345U;
    expect_same(decode(single, code), std::bit_cast<float>(code), std::to_string(code));
  }
}

TEST(NumberFormats, SayWhatCanBeComputedWith) {
  EXPECT_TRUE(is_emulated(format_of("fp64")));
  EXPECT_TRUE(is_emulated(format_of("fp32")));
  EXPECT_TRUE(is_emulated(format_of("q16.16")));
  EXPECT_FALSE(is_emulated(format_of("int64")));
  EXPECT_FALSE(is_emulated(format_of("e11m21")));
  EXPECT_FALSE(is_emulated(format_of("e12m3")));
  EXPECT_TRUE(fits_single(format_of("bf16")));
  EXPECT_FALSE(fits_single(format_of("e9m2")));
  EXPECT_FALSE(fits_single(format_of("q16.16")));
  EXPECT_TRUE(fits_single(format_of("q8.13")));
}

} // namespace
} // namespace monet
