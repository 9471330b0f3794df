// Units against reference files, exhaustive tables, and the same unit in arithmetic of fractions.
#include "base/shared/rng.hpp"
#include "numerics/fixture.hpp"
#include "numerics/shared/exact_sum.hpp"
#include "numerics/shared/mac_engine.hpp"

#include "monet/numerics/mac.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace monet {
namespace {

constexpr std::array kAllInstructions{Instructions::portable, Instructions::avx2,
                                      Instructions::avx512};

void expect_equal(const std::vector<double>& found, const std::vector<double>& expected,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i]))
      ASSERT_TRUE(std::isnan(found[i])) << what << " " << i;
    else
      ASSERT_EQ(found[i], expected[i]) << what << " " << i;
  }
}

Mac rounded_mac(const char* product, const char* sum) {
  Mac mac;
  mac.product = *parse_number_format(product);
  mac.sum = parse_number_format(sum);
  return mac;
}

TEST(Mac, EqualsTheReferenceFiles) {
  struct Case {
    const char* input;
    const char* file;
    Mac mac;
  };
  Mac fma = rounded_mac("fp32", "e5m10");
  fma.fma = true;
  for (const Case& one : {Case{"e5m2", "e5m2_mulE5M2_addE6M5_sub", rounded_mac("e5m2", "e6m5")},
                          Case{"e5m2", "e5m2_mulE6M5_addE6M5_sub", rounded_mac("e6m5", "e6m5")},
                          Case{"e4m3", "e4m3_mulE4M3_addE5M10_sub", rounded_mac("e4m3", "e5m10")},
                          Case{"e4m2", "e4m2_mulE5M5_addE5M5_sub", rounded_mac("e5m5", "e5m5")},
                          Case{"e5m2", "e5m2_fmaE5M10_sub", fma},
                          Case{"e5m2", "e5m2_fxp_Q8.13", rounded_mac("q8.13", "q8.13")}}) {
    const NpyArray a = numerics_fixture(std::string("gemm_A_") + one.input);
    const NpyArray b = numerics_fixture(std::string("gemm_B_") + one.input);
    const GemmShape shape{a.shape[0], b.shape[1], a.shape[1]};
    for (const Instructions instructions : kAllInstructions) {
      if (is_available(instructions))
        expect_equal(emulate_gemm(shape, a.real, b.real, one.mac, {2, instructions}),
                     numerics_fixture(std::string("gemm_") + one.file).real, one.file);
    }
  }
}

TEST(Mac, ReferenceOperandsAreRoundedToEven) {
  Rounding saturating;
  saturating.saturate = true;
  for (const char* matrix : {"A", "B"}) {
    const NpyArray plain = numerics_fixture(std::string("gemm_") + matrix);
    for (const char* format : {"e5m2", "e4m3", "e4m2"}) {
      const NpyArray rounded = numerics_fixture(std::string("gemm_") + matrix + "_" + format);
      for (std::size_t i = 0; i < plain.real.size(); ++i)
        ASSERT_EQ(round_to(*parse_number_format(format), plain.real[i], saturating),
                  rounded.real[i]);
    }
  }
}

/// Lines of numbers behind a header.
std::vector<std::vector<std::string>> table(const std::string& name) {
  std::istringstream file(test::archived("numerics.tar", name));
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');)
      rows.back().push_back(cell);
  }
  return rows;
}

Mac variant(const char* format, Multiplier multiplier) {
  Mac mac;
  mac.product = *parse_number_format(format);
  mac.multiplier = multiplier;
  mac.sum = floating_format(8, 23);
  return mac;
}

/// A code as the number that goes to the multiplier: IEEE's, or what only top exponents make it.
double operand(const NumberFormat& format, std::uint64_t code, bool top_is_numbers) {
  const double ieee = decode(format, code);
  NumberFormat wide = format;
  wide.top = TopCodes::infinity;
  return top_is_numbers && !std::isfinite(ieee) ? decode(wide, code) : ieee;
}

TEST(Multipliers, ReadOperandsAsTheTableSays) {
  const auto rows = table("cfg_values_E5M2.csv");
  ASSERT_EQ(rows.size(), 256U);
  for (int cfg = 1; cfg <= 6; ++cfg) {
    const Mac mac = variant("e5m2", *multiplier_named("cfg" + std::to_string(cfg)));
    for (std::uint64_t code = 0; code < 256; ++code) {
      const double expected = std::stod(rows[code][static_cast<std::size_t>(cfg)]);
      const double found = decoded_operand(mac, operand(mac.product, code, cfg >= 4));
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(found)) << cfg << " " << code;
      else
        EXPECT_EQ(found, expected) << cfg << " " << code;
    }
  }
}

TEST(Multipliers, CountAsTheTableSays) {
  for (const auto& row : table("cfg_stats.csv")) {
    const std::string format = row[0] == "E5M2" ? "e5m2" : "e4m2";
    const Mac mac = variant(format.c_str(), *multiplier_named("cfg" + row[1]));
    const bool wide = row[1] >= "4";
    std::array<int, 4> counts{}; // inexact, finite, infinite, flushed
    const std::uint64_t codes = std::uint64_t{1} << mac.product.bits();
    for (std::uint64_t a = 0; a < codes; ++a) {
      for (std::uint64_t b = 0; b < codes; ++b) {
        const double x = operand(mac.product, a, wide);
        const double y = operand(mac.product, b, wide);
        const double exact = decoded_operand(mac, x) * decoded_operand(mac, y);
        if (!std::isfinite(decoded_operand(mac, x)) || !std::isfinite(decoded_operand(mac, y)))
          continue;
        const double p = mac_product(mac, x, y);
        counts[0] += p != exact ? 1 : 0;
        counts[1] += 1;
        counts[2] += std::isinf(p) ? 1 : 0;
        counts[3] += p == 0 && exact != 0 ? 1 : 0;
      }
    }
    for (std::size_t i = 0; i < counts.size(); ++i)
      EXPECT_EQ(counts[i], std::stoi(row[i + 2])) << format << " cfg" << row[1] << " " << i;
  }
}

/// Numbers of a format with all exponents, zeros and, rarely, infinity.
std::vector<double> random_numbers(const NumberFormat& format, std::size_t count,
                                   std::uint64_t seed, int spread) {
  std::vector<double> numbers;
  RandomStream stream(seed);
  while (numbers.size() < count) {
    const double sign = stream.chance(0.5) ? -1 : 1;
    const int exponent =
        static_cast<int>(stream.below(static_cast<std::uint64_t>(spread))) - spread / 2;
    const double x = sign * std::ldexp(1 + stream.unit(), exponent);
    numbers.push_back(stream.chance(0.05) ? 0 : round_to(format, x));
  }
  return numbers;
}

/// Every operation on exact numbers, rounded once: nothing of the loops.
std::vector<double> by_hand(const GemmShape& shape, const std::vector<double>& a,
                            const std::vector<double>& b, const Mac& mac) {
  std::vector<double> c;
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < shape.k; ++k) {
        const auto output = static_cast<std::uint64_t>(i * shape.n + j);
        const auto step = static_cast<std::uint64_t>(k);
        const double p = mac_product(mac, a[static_cast<std::size_t>(i * shape.k + k)],
                                     b[static_cast<std::size_t>(k * shape.n + j)], output, step);
        ExactSum exact;
        exact.add(sum);
        exact.add(p);
        if (mac.sum == floating_format(11, 52)) {
          sum = exact.rounded();
          continue;
        }
        sum = round_to(*mac.sum, exact.odd(), mac.rounding,
                       {rounding_bits(mac.rounding.seed, output, 3 * step + 2), 0});
      }
      c.push_back(sum);
    }
  }
  return c;
}

struct RandomMac {
  Mac mac;
  NumberFormat operands;
  std::string name;
};

RandomMac random_mac(std::uint64_t seed) {
  RandomStream stream(seed, 7);
  const auto pick = [&](auto list) { return list[stream.below(list.size())]; };
  RandomMac result;
  const char* operands = pick(std::array{"e5m2", "e4m3", "e4m2", "e3m2_n", "e2m1_n", "e5m10",
                                         "bf16", "fp32", "e4m3_fn", "q4.4", "e3m7"});
  const char* product = pick(std::array{"e5m2", "e6m5", "e4m3", "e5m10", "bf16", "fp32", "q8.13",
                                        "q4.4", "e8m13", "e4m3_fn", "e6m5_inf"});
  const char* sum =
      pick(std::array{"e5m2", "e6m5", "e5m10", "bf16", "fp32", "q8.13", "q4.4", "q11.13", "q16.16",
                      "e8m13", "e4m3_fn", "e7m7", "fp64", "e10m3"});
  result.operands = *parse_number_format(operands);
  result.mac = rounded_mac(product, sum);
  const std::uint64_t kind = stream.below(4);
  if (kind == 0)
    result.mac.multiplier = Multiplier::exact;
  if (kind == 1) {
    result.mac.multiplier = static_cast<Multiplier>(2 + stream.below(6));
    result.mac.product =
        pick(std::array{floating_format(5, 2), floating_format(4, 2), floating_format(4, 3)});
    result.operands = result.mac.product;
  }
  result.mac.fma = stream.chance(0.2);
  Rounding& rounding = result.mac.rounding;
  rounding.saturate = stream.chance(0.3);
  rounding.flush_subnormals = stream.chance(0.3);
  rounding.symmetric = stream.chance(0.3);
  rounding.seed = seed;
  if (stream.chance(0.4)) {
    rounding.mode = pick(std::array{RoundTo::away, RoundTo::zero, RoundTo::stochastic});
    rounding.random_bits = static_cast<int>(1 + stream.below(13));
  }
  if (result.mac.sum == floating_format(11, 52))
    rounding = Rounding{};
  result.name = std::string(operands) + " " + product + " " + sum + " " +
                std::string(name_of(result.mac.multiplier)) + " " +
                std::string(name_of(rounding.mode)) + (result.mac.fma ? " fma" : "") + " seed " +
                std::to_string(seed);
  return result;
}

TEST(Mac, EqualsArithmeticWithoutLoopsInAllFormatsAndModes) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const RandomMac unit = random_mac(seed);
    const GemmShape shape{static_cast<std::int64_t>(1 + seed % 6),
                          static_cast<std::int64_t>(1 + seed % 41),
                          static_cast<std::int64_t>(seed % 23)};
    const int spread = seed % 3 == 0 ? 60 : seed % 7 == 1 ? 250 : 12;
    const auto a = random_numbers(unit.operands, static_cast<std::size_t>(shape.m * shape.k),
                                  2 * seed, spread);
    const auto b = random_numbers(unit.operands, static_cast<std::size_t>(shape.k * shape.n),
                                  2 * seed + 1, spread);
    const std::vector<double> expected = by_hand(shape, a, b, unit.mac);
    for (const Instructions instructions : kAllInstructions) {
      if (is_available(instructions))
        expect_equal(emulate_gemm(shape, a, b, unit.mac, {1, instructions}), expected, unit.name);
    }
  }
}

TEST(Mac, ChunksAreAddedExactly) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RandomStream stream(seed, 3);
    Mac mac;
    mac.multiplier = Multiplier::exact;
    mac.sum = parse_number_format(seed % 2 == 0 ? "e6m5" : "q8.13");
    mac.lanes = static_cast<int>(1 + stream.below(9));
    const NumberFormat operands = *parse_number_format(seed % 3 == 0 ? "e5m2" : "e2m3_n");
    const GemmShape shape{3, 19, 22};
    const auto a = random_numbers(operands, 66, 2 * seed, 20);
    const auto b = random_numbers(operands, 22 * 19, 2 * seed + 1, 20);
    std::vector<double> expected;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 19; ++j) {
        double c = 0;
        for (std::size_t k0 = 0; k0 < 22; k0 += static_cast<std::size_t>(mac.lanes)) {
          ExactSum sum;
          for (std::size_t k = k0;
               k < std::min<std::size_t>(22, k0 + static_cast<std::size_t>(mac.lanes)); ++k)
            sum.add_product(a[i * 22 + k], b[k * 19 + j]);
          if (!mac.sum->floating) { // converted before it is added
            c = round_to(*mac.sum, c + round_to(*mac.sum, sum.odd()));
          } else {
            sum.add(c);
            c = round_to(*mac.sum, sum.odd());
          }
        }
        expected.push_back(c);
      }
    }
    for (const Instructions instructions : kAllInstructions) {
      if (is_available(instructions))
        expect_equal(emulate_gemm(shape, a, b, mac, {1, instructions}), expected,
                     std::to_string(seed));
    }
  }
}

TEST(Mac, ExactAccumulatorsForgetNothing) {
  Mac mac;
  mac.multiplier = Multiplier::exact;
  const std::vector<double> a{0x1p100, 1, -0x1p100, 0x1p-100};
  const std::vector<double> b{1, 3, 1, 0x1p-20};
  EXPECT_EQ(emulate_gemm({1, 1, 4}, a, b, mac)[0], 3);
  const auto x = random_numbers(floating_format(5, 2), 200, 1, 30);
  const auto y = random_numbers(floating_format(5, 2), 200, 2, 30);
  ExactSum sum;
  for (std::size_t i = 0; i < 200; ++i)
    sum.add_product(x[i], y[i]);
  EXPECT_EQ(emulate_gemm({1, 1, 200}, x, y, mac)[0],
            static_cast<double>(static_cast<float>(sum.rounded())));
}

TEST(Mac, BlockProductsScaleExactSumsOfBlocks) {
  for (const char* name :
       {"mxint8", "mxfp6_e2m3", "mxfp4_e2m1", "mxfp8_e4m3", "mxfp8_e5m2", "nvfp4"}) {
    for (const std::int64_t rows : {1, 8}) {
      TensorFormat format = *parse_tensor_format(name);
      format.blocks->rows = rows;
      format.blocks->columns = 8;
      Mac mac;
      mac.sum = floating_format(8, 23);
      const GemmShape shape{9, 17, 21};
      std::vector<double> a, b;
      for (std::size_t i = 0; i < 9 * 21; ++i)
        a.push_back(std::sin(static_cast<double>(i)) * std::exp2(static_cast<double>(i % 9)));
      for (std::size_t i = 0; i < 21 * 17; ++i)
        b.push_back(std::cos(static_cast<double>(i)));
      TensorFormat other = format;
      std::swap(other.blocks->row_axis, other.blocks->column_axis);
      const QuantisedTensor qa = quantise(std::vector<std::int64_t>{9, 21}, a, format);
      const QuantisedTensor qb = quantise(std::vector<std::int64_t>{21, 17}, b, other);
      std::vector<double> expected;
      for (std::size_t i = 0; i < 9; ++i) {
        for (std::size_t j = 0; j < 17; ++j) {
          double c = 0;
          for (std::size_t k0 = 0; k0 < 21; k0 += 8) {
            ExactSum sum;
            for (std::size_t k = k0; k < std::min<std::size_t>(21, k0 + 8); ++k)
              sum.add_product(qa.values[i * 21 + k], qb.values[k * 17 + j]);
            sum.add(c);
            c = static_cast<double>(static_cast<float>(sum.rounded()));
          }
          expected.push_back(c);
        }
      }
      for (const Instructions instructions : kAllInstructions) {
        if (!is_available(instructions))
          continue;
        const auto found = emulate_block_gemm(shape, a, b, format, mac, {1, instructions});
        for (std::size_t i = 0; i < expected.size(); ++i) {
          if (std::string(name) == "nvfp4") // scales that are no powers of two round the sum
            EXPECT_NEAR(found[i], expected[i], 1e-5 * std::abs(expected[i]) + 1e-6);
          else
            ASSERT_EQ(found[i], expected[i]) << name << " " << rows << " " << i;
        }
      }
    }
  }
}

TEST(Mac, LargeProductsOverflowNarrowSums) {
  for (int exponent = 20; exponent < 128; ++exponent) {
    const std::vector<double> a{std::ldexp(1.0, exponent), 1};
    const std::vector<double> b{-1, 1};
    EXPECT_EQ(emulate_gemm({1, 1, 2}, a, b, rounded_mac("fp32", "e5m10"))[0],
              -std::numeric_limits<double>::infinity())
        << exponent;
    EXPECT_EQ(emulate_gemm({1, 1, 2}, a, b, rounded_mac("fp32", "q8.13"))[0], -127) << exponent;
  }
}

TEST(Mac, IsTheSameOnAnyNumberOfThreads) {
  Mac mac = rounded_mac("e5m2", "e6m5");
  mac.rounding.mode = RoundTo::stochastic;
  mac.rounding.random_bits = 13;
  const GemmShape shape{70, 45, 33};
  const auto a = random_numbers(floating_format(5, 2), 70 * 33, 1, 10);
  const auto b = random_numbers(floating_format(5, 2), 33 * 45, 2, 10);
  expect_equal(emulate_gemm(shape, a, b, mac, {1}), emulate_gemm(shape, a, b, mac, {3}), "threads");
}

constexpr std::array kOperandFormats{"e5m2", "e4m3", "e4m3_fn", "e2m1_n",
                                     "q4.4", "bf16", "fp16",    "e5m2_inf"};

/// Numbers of single precision of all sizes, some of them special.
std::vector<double> random_singles(std::size_t count, std::uint64_t seed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::array special{0.0, -0.0, kInfinity, -kInfinity, 0x1p-149, 0x1p127, -0x1.fffffep127};
  RandomStream stream(seed, 9);
  std::vector<double> numbers = random_numbers(kSinglePrecision, count, seed, 40);
  for (double& x : numbers) {
    if (stream.chance(0.02))
      x = special[stream.below(special.size())];
  }
  return numbers;
}

/// A row times a column: 1.3 and 2.6 become 1.5 and 3 with one bit of mantissa, 0.8 stays near
/// 0.75.
TEST(Operands, OfOneProductByHand) {
  Mac mac = variant("e5m2", Multiplier::exact);
  mac.operands = floating_format(4, 1);
  EXPECT_EQ(
      emulate_gemm({1, 1, 2}, std::vector<double>{1.3, 0.8}, std::vector<double>{2.6, 1}, mac),
      std::vector<double>{1.5 * 3 + 0.75});
  mac.operands = floating_format(2, 1); // to 3
  EXPECT_EQ(emulate_gemm({1, 1, 1}, std::vector<double>{9}, std::vector<double>{1}, mac)[0],
            std::numeric_limits<double>::infinity());
  mac.rounding.saturate = true;
  EXPECT_EQ(emulate_gemm({1, 1, 1}, std::vector<double>{9}, std::vector<double>{1}, mac)[0], 3);
}

TEST(Operands, AreConvertedBeforeTheUnitSeesThem) {
  for (std::uint64_t seed = 0; seed < 160; ++seed) {
    const RandomMac unit = random_mac(seed);
    const GemmShape shape{5, 19, 13};
    const auto a = random_singles(5 * 13, 2 * seed);
    const auto b = random_singles(13 * 19, 2 * seed + 1);
    Mac mac = unit.mac;
    mac.operands = parse_number_format(kOperandFormats[seed % kOperandFormats.size()]);
    Rounding nearest;
    nearest.saturate = mac.rounding.saturate;
    const auto converted = [&](std::vector<double> numbers) {
      for (double& x : numbers)
        x = round_to(*mac.operands, x, nearest);
      return numbers;
    };
    const auto expected = emulate_gemm(shape, converted(a), converted(b), unit.mac);
    expect_equal(by_hand(shape, a, b, mac), by_hand(shape, converted(a), converted(b), unit.mac),
                 unit.name);
    for (const Instructions instructions : kAllInstructions) {
      if (is_available(instructions))
        expect_equal(emulate_gemm(shape, a, b, mac, {1, instructions}), expected, unit.name);
    }
  }
}

/// All that is said of the numbers is true of each.
void expect_facts(const OperandFacts& facts, const std::vector<float>& numbers) {
  bool finite = true;
  double largest = 0;
  double smallest = std::numeric_limits<double>::infinity();
  for (const float number : numbers) {
    const double x = std::abs(static_cast<double>(number));
    finite = finite && std::isfinite(x);
    if (!std::isfinite(x) || x == 0)
      continue;
    largest = std::max(largest, x);
    smallest = std::min(smallest, x);
    const double lowest = std::ldexp(x, -facts.lowest_bit);
    ASSERT_EQ(lowest, std::floor(lowest));
    const double bits = std::ldexp(x, facts.significand_bits - 1 - std::ilogb(x));
    ASSERT_EQ(bits, std::floor(bits));
  }
  ASSERT_EQ(facts.finite, finite);
  ASSERT_EQ(facts.largest, largest);
  ASSERT_EQ(facts.smallest, smallest);
}

TEST(Operands, OfWholeTensorsAreThoseOfSingleNumbers) {
  const auto numbers = random_singles(40001, 5);
  std::vector<float> singles(numbers.begin(), numbers.end());
  singles.push_back(std::numeric_limits<float>::quiet_NaN());
  for (int kind = 0; kind < 8; ++kind) {
    for (const char* operands : kOperandFormats) {
      for (const bool saturate : {false, true}) {
        Mac mac = variant(kind % 2 == 0 ? "e5m2" : "e4m3", static_cast<Multiplier>(kind));
        if (std::string(operands) != "e2m1_n") // else none
          mac.operands = parse_number_format(operands);
        mac.rounding.saturate = saturate;
        mac.rounding.mode = RoundTo::stochastic; // not of the converter
        for (const Instructions instructions : kAllInstructions) {
          if (!is_available(instructions))
            continue;
          std::vector<float> found = singles;
          const OperandFacts facts = read_operands(found, mac, 2, instructions);
          expect_facts(facts, found);
          for (std::size_t i = 0; i < singles.size(); ++i) {
            const double expected = decoded_operand(mac, static_cast<double>(singles[i]));
            const auto same = static_cast<double>(found[i]);
            ASSERT_TRUE(std::isnan(expected)
                            ? std::isnan(same)
                            : same == expected && std::signbit(same) == std::signbit(expected))
                << operands << " " << kind << ": " << same << " for " << expected << " of "
                << singles[i];
          }
        }
      }
    }
  }
}

/// Numbers of a variant's format among which every eighth is infinite and many are 0.
std::vector<double> with_infinities(const NumberFormat& format, std::size_t count,
                                    std::uint64_t seed) {
  std::vector<double> numbers = random_numbers(format, count, seed, 8);
  RandomStream stream(seed, 4);
  for (double& x : numbers) {
    const std::uint64_t kind = stream.below(16);
    if (kind < 2)
      x = (kind == 0 ? 1 : -1) * std::numeric_limits<double>::infinity();
    else if (kind < 5)
      x = 0;
  }
  return numbers;
}

Mac mac_of_seed(std::uint64_t seed, const char* sum) {
  Mac mac = variant("e4m2", static_cast<Multiplier>(seed % 8));
  mac.sum = parse_number_format(sum);
  if (mac.sum == kDoublePrecision)
    return mac;
  constexpr std::array kModes{RoundTo::even,       RoundTo::even, RoundTo::even,
                              RoundTo::stochastic, RoundTo::away, RoundTo::zero};
  mac.rounding.mode = kModes[seed % kModes.size()];
  mac.rounding.saturate = seed % 5 == 1;
  mac.rounding.seed = seed;
  mac.fma = seed % 11 == 3;
  return mac;
}

TEST(InfiniteOperands, AreMultipliedAsNumberByNumber) {
  constexpr std::array kSums{"e6m5",    "q4.4", "q8.13", "fp32", "e5m2",  "e8m13",
                             "e4m3_fn", "fp64", "e5m10", "bf16", "e2m1_n"};
  std::array<int, 2> finite{}; // of the variants without NaN
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Mac mac = mac_of_seed(seed, kSums[seed % kSums.size()]);
    const GemmShape shape{5, 37, static_cast<std::int64_t>(1 + seed % 3)};
    const auto k = static_cast<std::size_t>(shape.k);
    const auto a = with_infinities(mac.product, 5 * k, 2 * seed);
    const auto b = with_infinities(mac.product, k * 37, 2 * seed + 1);
    const std::vector<double> expected = by_hand(shape, a, b, mac);
    for (const double x : expected)
      finite[std::isnan(x) ? 1 : 0] += mac.multiplier >= Multiplier::cfg4 ? 1 : 0;
    for (const Instructions instructions : kAllInstructions) {
      if (is_available(instructions))
        expect_equal(emulate_gemm(shape, a, b, mac, {1, instructions}), expected,
                     std::to_string(seed));
    }
  }
  EXPECT_GT(finite[0], 20 * finite[1]); // NaN only where infinities of both signs meet
  EXPECT_GT(finite[1], 0);
}

TEST(InfiniteOperands, OfChunksAndExactSums) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Mac mac = variant("e4m2", static_cast<Multiplier>(seed % 8));
    mac.lanes = seed % 3 == 0 ? 1 : 4;
    if (seed % 2 == 0)
      mac.sum.reset();
    const GemmShape shape{3, 19, 6};
    const auto a = with_infinities(mac.product, 18, 2 * seed);
    const auto b = with_infinities(mac.product, 114, 2 * seed + 1);
    std::vector<double> expected;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 19; ++j) {
        double c = 0;
        ExactSum all;
        for (std::size_t k0 = 0; k0 < 6; k0 += static_cast<std::size_t>(mac.lanes)) {
          ExactSum chunk;
          for (std::size_t k = k0;
               k < std::min<std::size_t>(6, k0 + static_cast<std::size_t>(mac.lanes)); ++k) {
            const double p = mac_product(mac, a[i * 6 + k], b[k * 19 + j]);
            chunk.add(p);
            all.add(p);
          }
          chunk.add(c);
          c = static_cast<double>(static_cast<float>(chunk.odd()));
        }
        expected.push_back(mac.sum ? c : round_to(kSinglePrecision, all.odd()));
      }
    }
    for (const Instructions instructions : kAllInstructions) {
      if (is_available(instructions))
        expect_equal(emulate_gemm(shape, a, b, mac, {1, instructions}), expected,
                     std::to_string(seed));
    }
  }
}

/// Sums around the largest number, of products that are each far below it: some of the units take
/// loops without a look at what overflows.
TEST(Mac, SumsOverflowWhereTheyDoByHand) {
  std::array<int, 2> finite{};
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    constexpr std::array kSums{"e4m3", "e4m2", "q6.2", "e4m3_n", "q6.6", "e4m3_fn", "uint8"};
    Mac mac = variant("e4m3", static_cast<Multiplier>(seed % 3));
    mac.sum = parse_number_format(kSums[seed % kSums.size()]);
    mac.rounding.saturate = seed % 4 == 1;
    const double most = largest_number(*mac.sum);
    const GemmShape shape{3, 35, static_cast<std::int64_t>(2 + seed % 31)};
    RandomStream stream(seed, 12);
    // So that the sum of all products lies between a quarter and four times the largest number.
    const double size = std::sqrt(most / static_cast<double>(shape.k) * (0.25 + 4 * stream.unit()));
    const auto some = [&](std::int64_t count, bool negative) {
      std::vector<double> numbers;
      for (std::int64_t i = 0; i < count; ++i)
        numbers.push_back(round_to(mac.product, size * (0.7 + 0.3 * stream.unit()) *
                                                    (negative && stream.chance(0.2) ? -1 : 1)));
      return numbers;
    };
    const auto a = some(3 * shape.k, true);
    const auto b = some(shape.k * 35, false);
    const std::vector<double> expected = by_hand(shape, a, b, mac);
    for (const double x : expected)
      ++finite[std::abs(x) < most ? 1 : 0];
    for (const Instructions instructions : kAllInstructions) {
      if (is_available(instructions))
        expect_equal(emulate_gemm(shape, a, b, mac, {1, instructions}), expected,
                     std::to_string(seed));
    }
  }
  EXPECT_GT(finite[0], 2000);
  EXPECT_GT(finite[1], 2000);
}

/// The inner loops take them: nothing falls to arithmetic number by number.
TEST(InfiniteOperands, AreTakenByTheInnerLoops) {
  ProductRange range;
  range.left.largest = range.right.largest = 14;
  range.left.smallest = range.right.smallest = 0.25;
  range.left.lowest_bit = range.right.lowest_bit = -6;
  range.left.significand_bits = range.right.significand_bits = 3;
  range.left.finite = false;
  for (int kind = 2; kind < 8; ++kind) {
    for (const char* sum : {"e6m5", "q4.4", "fp32", "bf16", "e5m10"}) {
      for (const RoundTo mode : {RoundTo::even, RoundTo::stochastic}) {
        Mac mac = variant("e4m2", static_cast<Multiplier>(kind));
        mac.sum = parse_number_format(sum);
        mac.rounding.mode = mode;
        if (mac.sum == kSinglePrecision && mode != RoundTo::even)
          continue;
        const MacEngine engine(mac, range);
        EXPECT_TRUE(engine.is_single() || engine.is_double()) << kind << " " << sum;
        if (mac.sum->mantissa_bits < 6) {
          EXPECT_TRUE(engine.is_single()) << kind << " " << sum;
        }
      }
    }
  }
}

/// Powers of two have one bit; what their product is cut to has four. It lies in the middle of two
/// sums, and something far smaller decides which of them is nearer.
TEST(Mac, CutProductsHaveMoreBitsThanTheirOperands) {
  for (const char* product : {"e6m3", "e6m3_n"}) {
    Mac mac = rounded_mac(product, "e8m2");
    mac.rounding.saturate = true;
    const std::vector<double> a{-0x1p-16, 0x1p30};
    const std::vector<double> b{0x1p-16, 0x1p30};
    const double most = largest_number(mac.product);
    const double below = most - std::ldexp(1.0, std::ilogb(most) - 3);
    EXPECT_EQ(emulate_gemm({1, 1, 2}, a, b, mac)[0], below) << product;
    expect_equal(emulate_gemm({1, 1, 2}, a, b, mac), by_hand({1, 1, 2}, a, b, mac), product);
  }
}

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

TEST(ExactSums, AreThoseOfInteger) {
  RandomStream stream(11);
  for (int round = 0; round < 2000; ++round) {
    ExactSum sum;
    Wide whole = 0; // in units of 2^-40
    for (int i = 0; i < 30; ++i) {
      const auto number = static_cast<std::int64_t>(stream.bits() >> (11 + stream.below(40))) *
                          (stream.chance(0.5) ? 1 : -1);
      const int shift = static_cast<int>(stream.below(40));
      whole += static_cast<Wide>(number) << shift;
      sum.add(std::ldexp(static_cast<double>(number), shift - 40));
    }
    // Rounded to even by hand.
    const bool negative = whole < 0;
    UnsignedWide magnitude = static_cast<UnsignedWide>(negative ? -whole : whole);
    int shift = 0;
    while ((magnitude >> shift) >= (static_cast<UnsignedWide>(1) << 53))
      ++shift;
    auto kept = static_cast<std::uint64_t>(magnitude >> shift);
    const UnsignedWide rest = magnitude - (static_cast<UnsignedWide>(kept) << shift);
    const bool sticky = rest != 0;
    const UnsignedWide half = shift == 0 ? 0 : static_cast<UnsignedWide>(1) << (shift - 1);
    const double odd = std::ldexp(static_cast<double>(kept | (sticky ? 1 : 0)), shift - 40);
    if (shift > 0 && (rest > half || (rest == half && kept % 2 == 1)))
      ++kept;
    const double value = std::ldexp(static_cast<double>(kept), shift - 40);
    ASSERT_EQ(sum.rounded(), negative ? -value : value) << round;
    ASSERT_EQ(sum.odd(), negative ? -odd : odd) << round;
  }
  ExactSum subnormal;
  subnormal.add(0x1p-1074);
  subnormal.add(0x1p1000);
  subnormal.add(-0x1p1000);
  EXPECT_EQ(subnormal.rounded(), 0x1p-1074);
}

TEST(Mac, SaysWhatItCannotDo) {
  EXPECT_FALSE(why_not_emulated(rounded_mac("e5m2", "e6m5")));
  EXPECT_TRUE(why_not_emulated(rounded_mac("e11m25", "e6m5")));
  EXPECT_TRUE(why_not_emulated(rounded_mac("e5m2", "int64")));
  EXPECT_TRUE(why_not_emulated(variant("q4.4", Multiplier::cfg3)));
  Mac converting = rounded_mac("e5m2", "e6m5");
  converting.operands = floating_format(5, 2);
  EXPECT_FALSE(why_not_emulated(converting));
  EXPECT_NE(converting, rounded_mac("e5m2", "e6m5"));
  for (const char* wide : {"fp64", "int32", "int64", "e9m3"}) {
    converting.operands = parse_number_format(wide);
    EXPECT_TRUE(why_not_emulated(converting)) << wide;
  }
  Mac mac = rounded_mac("e5m2", "e6m5");
  mac.rounding.mode = RoundTo::hysteresis;
  EXPECT_TRUE(why_not_emulated(mac));
  EXPECT_FALSE(parse_accumulator("e5"));
  EXPECT_FALSE(parse_accumulator("exact")->format);
  EXPECT_TRUE(parse_accumulator("hybrid")->hybrid);
}

} // namespace
} // namespace monet
