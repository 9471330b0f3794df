// Blocks that share a scale: reference files bit for bit, and what the standard says of the edges.
#include "base/shared/rng.hpp"
#include "numerics/fixture.hpp"

#include "monet/numerics/blocks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace monet {
namespace {

TensorFormat blocked(const std::string& name, std::int64_t rows, std::int64_t columns) {
  TensorFormat format = *parse_tensor_format(name);
  format.blocks->rows = rows;
  format.blocks->columns = columns;
  return format;
}

void expect_file(const std::string& element, const std::string& block, std::int64_t rows,
                 std::int64_t columns) {
  const TensorFormat format = blocked(element == "int8" ? "mxint8" : "mx" + element, rows, columns);
  const NpyArray input = numerics_fixture("mx_input_64x96");
  const QuantisedTensor found = quantise(input.shape, input.real, format);
  const NpyArray values = numerics_fixture("exact_" + element + "_even_" + block);
  ASSERT_EQ(values.real.size(), found.values.size());
  for (std::size_t i = 0; i < found.values.size(); ++i)
    ASSERT_EQ(found.values[i], values.real[i]) << element << " " << i;
  const NpyArray scales = numerics_fixture("exact_" + element + "_scaleE8M0_" + block);
  ASSERT_EQ(found.scale_shape, scales.shape);
  for (std::size_t i = 0; i < found.scales.size(); ++i)
    ASSERT_EQ(e8m0_code(found.scales[i]), scales.whole[i]) << element << " " << i;
  if (block != "row1x32")
    return;
  const NpyArray codes = numerics_fixture("codes_" + element + "_even_" + block);
  for (std::size_t i = 0; i < found.elements.size(); ++i)
    ASSERT_EQ(static_cast<std::int64_t>(*encode(format.element, found.elements[i])), codes.whole[i])
        << element << " " << i;
}

TEST(Blocks, EqualTheReferenceFiles) {
  expect_file("fp4_e2m1", "row1x32", 1, 32);
  expect_file("fp8_e5m2", "row1x32", 1, 32);
  expect_file("int8", "row1x32", 1, 32);
  expect_file("fp8_e4m3", "sq8x8", 8, 8);
}

TEST(Blocks, HaveTheScaleThatTheModeSays) {
  const NumberFormat e4m3 = *parse_number_format("fp8_e4m3"); // largest 448 = 1.75 x 2^8
  const auto exponent = [&](ScaleMode mode, double amax) {
    return std::ilogb(power_scale(e4m3, mode, amax));
  };
  EXPECT_EQ(exponent(ScaleMode::floor, 448), 0);
  EXPECT_EQ(exponent(ScaleMode::floor, 511), 0); // cut to 448
  EXPECT_EQ(exponent(ScaleMode::ceil, 256), 0);
  EXPECT_EQ(exponent(ScaleMode::ceil, 257), 1);
  EXPECT_EQ(exponent(ScaleMode::even, 495.9), 0);
  EXPECT_EQ(exponent(ScaleMode::even, 496), 1); // 1.9375 rounds to 2 in three bits
  EXPECT_EQ(exponent(ScaleMode::rceil, 448), 0);
  EXPECT_EQ(exponent(ScaleMode::rceil, 448.1), 1);
  EXPECT_EQ(exponent(ScaleMode::rceil, 300), 0);
  // The exponent field, not a rounded logarithm.
  EXPECT_EQ(
      power_scale(*parse_number_format("mxint8"), ScaleMode::floor, std::nextafter(128.0F, 0.0F)),
      64);
  EXPECT_EQ(power_scale(e4m3, ScaleMode::floor, 0), 0x1p-127);
  EXPECT_EQ(power_scale(*parse_number_format("mxint8"), ScaleMode::floor, 0), 0x1p-126);
  EXPECT_EQ(power_scale(e4m3, ScaleMode::floor, 0x1p-149), 0x1p-127);
  EXPECT_TRUE(
      std::isnan(power_scale(e4m3, ScaleMode::floor, std::numeric_limits<double>::infinity())));
}

TEST(Blocks, NeverExceedTheLargestNumberInModesThatRoundTheScaleUp) {
  const NpyArray input = numerics_fixture("mx_input_64x96");
  for (const char* name : {"mxfp8_e4m3", "mxfp4_e2m1", "mxfp6_e2m3", "mxint8"}) {
    TensorFormat format = *parse_tensor_format(name);
    format.blocks->mode = ScaleMode::rceil;
    const QuantisedTensor found = quantise(input.shape, input.real, format);
    double worst = 0; // relative to the block's largest
    for (std::size_t i = 0; i < found.values.size(); ++i) {
      const std::size_t block = i / 96 * 3 + i % 96 / 32;
      if (found.scales[block] > 0x1p-120)
        worst = std::max(worst, std::abs(found.values[i] - input.real[i]) / found.scales[block]);
    }
    // Half a step of the largest binade: nothing was cut.
    const int top = std::ilogb(largest_number(format.element));
    const double step = format.element.floating
                            ? std::ldexp(1.0, top - format.element.mantissa_bits)
                            : smallest_number(format.element);
    EXPECT_LE(worst, step / 2) << name;
  }
}

TEST(Blocks, ScaleCodesCoverAByte) {
  for (int code = 0; code < 255; ++code)
    EXPECT_EQ(e8m0_code(std::ldexp(1.0, code - 127)), code);
  EXPECT_EQ(e8m0_code(std::numeric_limits<double>::quiet_NaN()), 255);
}

TEST(Blocks, AreNaNAsAWhole) {
  std::vector<double> numbers(64, 1.0);
  numbers[40] = -std::numeric_limits<double>::infinity();
  const std::vector<std::int64_t> shape{64};
  const QuantisedTensor found = quantise(shape, numbers, *parse_tensor_format("mxfp8_e5m2"));
  for (std::size_t i = 0; i < 64; ++i)
    EXPECT_EQ(std::isnan(found.values[i]), i >= 32) << i;
  EXPECT_EQ(e8m0_code(found.scales[1]), 255);
}

/// Every block by itself, found by comparing places.
TEST(Blocks, MayHaveAnyShapeAxisAndEdge) {
  const std::vector<std::int64_t> shape{3, 5, 7};
  std::vector<double> numbers;
  for (int i = 0; i < 105; ++i)
    numbers.push_back(std::sin(i) * std::pow(2.0, i % 23 - 11));
  for (const auto& [rows, columns, row_axis, column_axis] : {std::array{1, 3, -2, -1},
                                                             {2, 4, -2, -1},
                                                             {8, 8, -2, -1},
                                                             {2, 3, 2, 0},
                                                             {1, 2, -1, 1},
                                                             {3, 1, -3, -2}}) {
    TensorFormat format = *parse_tensor_format("mxfp6_e3m2");
    format.blocks->rows = rows;
    format.blocks->columns = columns;
    format.blocks->row_axis = row_axis;
    format.blocks->column_axis = column_axis;
    const QuantisedTensor found = quantise(shape, numbers, format);
    const auto place = [&](int i) { return std::array<int, 3>{i / 35, i / 7 % 5, i % 7}; };
    const auto axis = [](int a) { return static_cast<std::size_t>(a < 0 ? a + 3 : a); };
    const auto same = [&](int i, int j) {
      auto a = place(i), b = place(j);
      a[axis(row_axis)] /= rows, b[axis(row_axis)] /= rows;
      a[axis(column_axis)] /= columns, b[axis(column_axis)] /= columns;
      return a == b;
    };
    for (int i = 0; i < 105; ++i) {
      double amax = 0;
      for (int j = 0; j < 105; ++j)
        amax = same(i, j) ? std::max(amax, std::abs(numbers[static_cast<std::size_t>(j)])) : amax;
      const double scale = power_scale(format.element, ScaleMode::floor, amax);
      Rounding cut;
      cut.saturate = true;
      EXPECT_EQ(found.values[static_cast<std::size_t>(i)],
                scale *
                    round_to(format.element, numbers[static_cast<std::size_t>(i)] / scale, cut));
    }
  }
}

TEST(Blocks, OfIntegersAreSymmetricUnlessAsked) {
  const std::vector<double> numbers{-1.999, 1.0, 0.0, -0.4};
  const std::vector<std::int64_t> shape{4};
  const TensorFormat format = *parse_tensor_format("mxint8");
  EXPECT_EQ(quantise(shape, numbers, format).values[0], -1.984375);
  EXPECT_EQ(quantise(shape, numbers, format, {{}, true, 0, {}}).values[0], -2.0);
}

TEST(Blocks, OfTwoLevelsUseTheWholeRange) {
  std::vector<double> numbers;
  for (int i = 0; i < 64; ++i)
    numbers.push_back((i % 13 - 6) * (i < 32 ? 1.0 : 0.01));
  const std::vector<std::int64_t> shape{2, 32};
  const QuantisedTensor found = quantise(shape, numbers, *parse_tensor_format("nvfp4"));
  EXPECT_EQ(found.scale_shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(found.tensor_scale, static_cast<double>(static_cast<float>(6.0 / (6 * 448))));
  EXPECT_EQ(found.scales[0], 448);
  for (std::size_t i = 0; i < 16; ++i) // 6 is met up to the rounding of the tensor's scale
    EXPECT_NEAR(found.values[i], numbers[i], std::abs(numbers[i]) > 4 ? 1.0 : 0.5);
}

TEST(Blocks, OfSinglePrecisionScalesAreThoseOfTheirLargest) {
  std::vector<double> numbers(256);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = std::cos(static_cast<double>(i)) * (i < 128 ? 3.0 : 700.0);
  const std::vector<std::int64_t> shape{1, 256};
  const QuantisedTensor found = quantise(shape, numbers, *parse_tensor_format("fp8_e4m3_1x128"));
  EXPECT_EQ(found.scales[0], static_cast<double>(static_cast<float>(3.0 / 448)));
  double most = 0;
  for (std::size_t i = 0; i < 128; ++i)
    most = std::max(most, std::abs(found.elements[i]));
  EXPECT_EQ(most, 448);
}

/// By vectors as number by number: signs of zeros, NaN and all edges among them.
TEST(RoundTensor, IsQuantiseInSinglePrecision) {
  const std::vector<std::int64_t> shape{3, 7, 3, 64};
  std::vector<double> numbers;
  for (std::uint64_t i = 0; i < 3 * 21 * 64; ++i) {
    double x = (random_unit(1, i) - 0.5) *
               std::exp2(static_cast<double>(random_bits(2, i / 40) % 300) - 160);
    if (i % 97 == 0)
      x = i % 2 == 0 ? -0.0 : std::numeric_limits<double>::infinity();
    numbers.push_back(static_cast<double>(static_cast<float>(x)));
  }
  numbers[700] = std::numeric_limits<double>::quiet_NaN();
  for (const char* name :
       {"mxfp8_e5m2", "mxfp8_e4m3", "mxfp6_e3m2", "mxfp4_e2m1", "mxint8", "e5m2", "e4m3_fn", "fp16",
        "bf16", "tf32", "fp32", "q4.4", "q8.13", "int8", "e3m2_n", "nvfp4", "e6m5"}) {
    for (int variation = 0; variation < 13; ++variation) {
      TensorFormat format = *parse_tensor_format(name);
      Rounding rounding;
      rounding.saturate = variation == 1;
      rounding.mode = variation == 2 ? RoundTo::stochastic : RoundTo::even;
      if (format.blocks && variation > 0) {
        format.blocks->rows = variation < 5 ? variation : variation % 3 + 1;
        format.blocks->columns = variation < 5 ? 8 * variation + variation % 2 : variation % 4 + 1;
        if (variation >= 5) { // any two axes, in either order
          format.blocks->row_axis = -1 - variation % 4;
          format.blocks->column_axis = (-2 - variation % 4 - variation / 5) % 4 - (variation == 7);
          if ((format.blocks->row_axis - format.blocks->column_axis) % 4 == 0)
            --format.blocks->column_axis;
          if (format.blocks->column_axis < -4)
            format.blocks->column_axis += 4;
        }
        format.blocks->mode = variation == 3 ? ScaleMode::rceil : ScaleMode::even;
      }
      const QuantisedTensor expected = quantise(shape, numbers, format, {rounding, false, 9, {}});
      for (const Instructions instructions :
           {Instructions::portable, Instructions::avx2, Instructions::avx512}) {
        if (!is_available(instructions))
          continue;
        std::vector<float> found(numbers.begin(), numbers.end());
        round_tensor(shape, found, format, rounding, {9, variation % 5, instructions});
        for (std::size_t i = 0; i < found.size(); ++i) {
          const auto value = static_cast<float>(expected.values[i]);
          ASSERT_TRUE(std::isnan(value)
                          ? std::isnan(found[i])
                          : found[i] == value && std::signbit(found[i]) == std::signbit(value))
              << name << " " << variation << " " << i << ": " << numbers[i] << " " << found[i]
              << " " << value;
        }
      }
    }
  }
}

/// Rows that are shorter than a block, and blocks shorter than 32.
TEST(RoundTensor, OfShortBlocksIsQuantise) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const std::int64_t columns : {1, 2, 4, 8, 12, 16, 32, 64, 320}) {
    for (const std::int64_t length : {1, 2, 4, 8, 16, 32, 128}) {
      for (const char* name : {"mxfp8_e4m3", "mxint8", "mxfp4_e2m1"}) {
        const TensorFormat format = [&] {
          TensorFormat made = *parse_tensor_format(name);
          made.blocks->columns = length;
          return made;
        }();
        const std::vector<std::int64_t> shape{7, 9, columns};
        std::vector<double> numbers;
        for (std::int64_t i = 0; i < 63 * columns; ++i) {
          const auto x = static_cast<double>(i);
          const double spread = std::exp2(std::fmod(x * 0.37, 300) - 150);
          const bool rare = (i / length) % 5 == 3;
          numbers.push_back(rare && i % 7 == 1   ? kInfinity
                            : rare && i % 7 == 2 ? std::nan("")
                            : (i / length) % 5 == 4
                                ? 0
                                : static_cast<double>(static_cast<float>(std::sin(x) * spread)));
        }
        const QuantisedTensor expected = quantise(shape, numbers, format);
        for (const Instructions instructions :
             {Instructions::portable, Instructions::avx2, Instructions::avx512}) {
          if (!is_available(instructions))
            continue;
          std::vector<float> found(numbers.begin(), numbers.end());
          round_tensor(shape, found, format, {}, {0, 2, instructions});
          for (std::size_t i = 0; i < found.size(); ++i) {
            const auto value = static_cast<float>(expected.values[i]);
            ASSERT_TRUE(std::isnan(value)
                            ? std::isnan(found[i])
                            : found[i] == value && std::signbit(found[i]) == std::signbit(value))
                << name << " " << columns << " " << length << " " << i << ": " << numbers[i];
          }
        }
      }
    }
  }
}

TEST(TensorFormats, AreParsed) {
  EXPECT_FALSE(parse_tensor_format("e5m2")->blocks);
  EXPECT_EQ(parse_tensor_format("mxfp4_e2m1")->blocks->columns, 32);
  EXPECT_EQ(parse_tensor_format("fp8_e5m2_128x128")->blocks->rows, 128);
  for (const char* name : {"mxfp8", "fp8_e4m3_1x64", "fp8_e4m3_", "nvfp8"})
    EXPECT_FALSE(parse_tensor_format(name)) << name;
  for (const std::string& name : common_tensor_format_names())
    EXPECT_TRUE(parse_tensor_format(name)) << name;
  EXPECT_EQ(parse_block_shape("8x16"), (std::array<std::int64_t, 2>{8, 16}));
  for (const char* text : {"", "8", "8x", "x8", "0x8", "8x0", "-1x8", "8x8x8", "8 x8"})
    EXPECT_FALSE(parse_block_shape(text)) << text;
}

} // namespace
} // namespace monet
