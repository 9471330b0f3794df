// Rounding against the sorted list of a format's numbers, which knows nothing of bits.
#include "base/shared/rng.hpp"

#include "monet/numerics/format.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace monet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The finite numbers from 0 up, in the order of their codes.
std::vector<double> magnitudes(const NumberFormat& format) {
  std::vector<double> numbers;
  for (std::uint64_t code = 0; code < std::uint64_t{1} << (format.bits() - 1); ++code) {
    const double value = decode(format, code);
    if (std::isfinite(value))
      numbers.push_back(value);
  }
  return numbers;
}

/// Where the next number would be were there one more code.
double beyond(const std::vector<double>& numbers, const NumberFormat& format) {
  const double step =
      format.floating
          ? std::ldexp(1.0, std::max(std::ilogb(numbers.back()), smallest_exponent(format)) -
                                format.mantissa_bits)
          : std::ldexp(1.0, -format.mantissa_bits);
  return numbers.back() + step;
}

/// Nearest by comparing distances; even codes have even places in the list.
double nearest(const std::vector<double>& numbers, double next, double x, bool away) {
  std::vector<double> all = numbers;
  all.push_back(next);
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double was = std::abs(x - all[best]);
    const double is = std::abs(x - all[i]);
    if (is < was || (is == was && (away || i % 2 == 0)))
      best = i;
  }
  return all[best];
}

/// Every number, every midpoint, and their neighbours among doubles; beyond the largest, too.
std::vector<double> samples(const std::vector<double>& numbers, double next) {
  std::vector<double> result;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double upper = i + 1 < numbers.size() ? numbers[i + 1] : next;
    for (const double x :
         {numbers[i], (numbers[i] + upper) / 2, numbers[i] + (upper - numbers[i]) / 3}) {
      result.push_back(x);
      result.push_back(std::nextafter(x, kInfinity));
      result.push_back(std::nextafter(x, 0));
    }
  }
  result.push_back(next);
  result.push_back(next * 3);
  return result;
}

std::vector<NumberFormat> formats_to(int bits) {
  std::vector<NumberFormat> formats;
  for (int width = 2; width <= bits; ++width) {
    for (int exponent = 1; exponent < width; ++exponent) {
      for (const TopCodes top :
           {TopCodes::ieee, TopCodes::nan, TopCodes::infinity, TopCodes::numbers}) {
        const NumberFormat format = floating_format(exponent, width - 1 - exponent, top);
        if (magnitudes(format).size() > 1)
          formats.push_back(format);
      }
    }
    for (int whole = 1; whole <= width; ++whole)
      formats.push_back(fixed_format(whole, width - whole));
  }
  return formats;
}

double expected_beyond(const NumberFormat& format, double sign, bool saturate) {
  const double most = decode(format, *encode(format, largest_number(format)));
  if (!format.floating)
    return sign > 0 ? most : lowest_number(format);
  if (saturate || format.top == TopCodes::numbers)
    return sign * most;
  return format.top == TopCodes::nan ? std::numeric_limits<double>::quiet_NaN() : sign * kInfinity;
}

TEST(RoundTo, IsTheNearestOfEveryFormatOfEightBits) {
  std::size_t compared = 0;
  for (const NumberFormat& format : formats_to(8)) {
    const std::vector<double> numbers = magnitudes(format);
    const double next = beyond(numbers, format);
    for (const double x : samples(numbers, next)) {
      for (const bool away : {false, true}) {
        for (const double sign : {1.0, -1.0}) {
          Rounding rounding;
          rounding.mode = away ? RoundTo::away : RoundTo::even;
          rounding.saturate = compared % 3 == 0;
          const double q = nearest(numbers, next, x, away);
          const bool over = q > numbers.back() && !(sign < 0 && !format.floating && x <= next);
          const double expected =
              over || x > next ? expected_beyond(format, sign, rounding.saturate) : sign * q;
          const double found = round_to(format, sign * x, rounding);
          ++compared;
          if (std::isnan(expected))
            ASSERT_TRUE(std::isnan(found)) << name_of(format) << " " << sign * x;
          else
            ASSERT_EQ(found, expected)
                << name_of(format) << " " << sign * x << (away ? " away" : "");
        }
      }
    }
  }
  EXPECT_GT(compared, 100000U);
}

TEST(RoundTo, ZeroTakesTheLowerNeighbourAndNeverInventsInfinity) {
  for (const NumberFormat& format : formats_to(6)) {
    const std::vector<double> numbers = magnitudes(format);
    Rounding rounding;
    rounding.mode = RoundTo::zero;
    for (const double x : samples(numbers, beyond(numbers, format))) {
      const double lower = *std::prev(std::upper_bound(numbers.begin(), numbers.end(), x));
      ASSERT_EQ(round_to(format, x, rounding), lower) << name_of(format) << " " << x;
    }
  }
  Rounding zero;
  zero.mode = RoundTo::zero;
  EXPECT_EQ(round_to(floating_format(5, 2), kInfinity, zero), kInfinity);
}

TEST(RoundTo, StochasticGoesUpAsOftenAsTheBitsSay) {
  const NumberFormat format = floating_format(5, 2);
  for (const int bits : {1, 4, 7}) {
    Rounding rounding;
    rounding.mode = RoundTo::stochastic;
    rounding.random_bits = bits;
    for (const double fraction : {0.0, 0.1, 0.25, 0.5, 0.77, 0.999}) {
      int ups = 0;
      const std::uint32_t count = 1U << bits;
      for (std::uint32_t random = 0; random < count; ++random) {
        const double q = round_to(format, -(1.25 + 0.25 * fraction), rounding, {random, 0});
        ASSERT_TRUE(q == -1.25 || q == -1.5);
        ups += q == -1.5 ? 1 : 0;
      }
      EXPECT_EQ(ups, static_cast<int>(std::floor(fraction * count))) << bits << " " << fraction;
    }
  }
}

TEST(RoundTo, HysteresisLeavesSwingingWeightsWhereTheyAre) {
  const NumberFormat format = fixed_format(4, 0);
  Rounding rounding;
  rounding.mode = RoundTo::hysteresis;
  const auto next = [&](double w, double before) {
    return round_to(format, w, rounding, {0, before});
  };
  EXPECT_EQ(next(2.9, 2), 2); // has grown, not by a whole step
  EXPECT_EQ(next(2.1, 3), 3); // has shrunk, not by a whole step
  EXPECT_EQ(next(3.0, 2), 3);
  EXPECT_EQ(next(-2.1, -3), -3);
  EXPECT_EQ(next(-2.9, -2), -2);
  EXPECT_EQ(next(1.9, 3), 2);
}

TEST(RoundTo, FlushesWhatIsSubnormalAfterRounding) {
  const NumberFormat format = floating_format(5, 2);
  Rounding rounding;
  rounding.flush_subnormals = true;
  const double normal = smallest_normal(format);
  EXPECT_EQ(round_to(format, 0.75 * normal, rounding), 0);
  EXPECT_EQ(round_to(format, 0.76 * normal, rounding), 0);
  EXPECT_EQ(round_to(format, 0.9 * normal, rounding), normal); // rounds up to the smallest normal
  EXPECT_EQ(round_to(format, -normal, rounding), -normal);
  double last = 0;
  for (int i = 0; i <= 1000; ++i) { // never down where x goes up
    const double q = round_to(format, normal * i / 500, rounding);
    EXPECT_GE(q, last);
    last = q;
  }
}

TEST(RoundTo, KeepsInfinityAndNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const RoundTo mode : {RoundTo::even, RoundTo::stochastic, RoundTo::away}) {
    Rounding rounding;
    rounding.mode = mode;
    EXPECT_EQ(round_to(floating_format(5, 2), -kInfinity, rounding, {7, 0}), -kInfinity);
    EXPECT_TRUE(std::isnan(round_to(floating_format(5, 2), nan, rounding, {7, 0})));
    EXPECT_TRUE(std::isnan(round_to(fixed_format(4, 4), nan, rounding, {7, 0})));
    EXPECT_EQ(round_to(fixed_format(4, 4), -kInfinity, rounding, {7, 0}), -8);
    rounding.saturate = true;
    EXPECT_EQ(round_to(floating_format(5, 2), -kInfinity, rounding, {7, 0}), -57344);
    rounding.symmetric = true;
    EXPECT_EQ(round_to(fixed_format(4, 4), -1e300, rounding), -8 + 1.0 / 16);
  }
}

TEST(RoundTo, AgreesWithTheMachineInSingles) {
  const NumberFormat single = floating_format(8, 23);
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const auto x = std::bit_cast<double>(random_bits(1, i));
    if (std::isnan(x))
      continue;
    ASSERT_EQ(round_to(single, x), static_cast<double>(static_cast<float>(x))) << x;
    // Exponents that a single has.
    const double y =
        std::ldexp(1 + random_unit(2, i), static_cast<int>(random_bits(3, i) % 290) - 155);
    ASSERT_EQ(round_to(single, y), static_cast<double>(static_cast<float>(y))) << y;
  }
}

TEST(Rounding, IsParsed) {
  EXPECT_EQ(parse_rounding("even")->mode, RoundTo::even);
  EXPECT_EQ(parse_rounding("stochastic:4")->random_bits, 4);
  for (const char* text :
       {"", "evn", "even:3", "stochastic:", "stochastic:0", "stochastic:25", "stochastic:4x"})
    EXPECT_FALSE(parse_rounding(text)) << text;
}

TEST(RoundingBits, AreFairAndDependOnEverything) {
  std::array<int, 32> ones{};
  constexpr int kCount = 20000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const std::uint32_t bits = rounding_bits(5, 3, i);
    for (std::size_t b = 0; b < ones.size(); ++b)
      ones[b] += static_cast<int>(bits >> b & 1);
  }
  for (const int count : ones)
    EXPECT_NEAR(count, kCount / 2, 5 * std::sqrt(kCount / 4.0));
  EXPECT_NE(rounding_bits(5, 3, 1), rounding_bits(5, 4, 1));
  EXPECT_NE(rounding_bits(5, 3, 1), rounding_bits(6, 3, 1));
  EXPECT_NE(rounding_bits(5, 3, 1), rounding_bits(5, 3, 1 + (std::uint64_t{1} << 32)));
}

} // namespace
} // namespace monet
