// Multiply-accumulate units of any format, emulated bit for bit: what a product is rounded to, what
// sums are, in which order. The published multiplier variants are those of the Archimedes project
// (Inria, "Exploring low-precision formats in MAC units for DNN training").
#pragma once

#include "monet/numerics/blocks.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// What a multiplier of operands in a format eXmY makes of them. Variants 1 to 6 take away support,
/// one after the other; from cfg3 on, products are exact in e(X+1)m(2Y+1).
enum class Multiplier {
  rounded, ///< numbers as they are; the product is rounded to the format
  exact,   ///< numbers as they are; the product is not rounded
  cfg1,    ///< IEEE operands; products rounded to the operands' format
  cfg2,    ///< the same; subnormal products become 0
  cfg3,    ///< IEEE operands; exact products, subnormal ones become 0
  cfg4,    ///< top exponents are numbers, but infinity where the mantissa is all ones; no NaN
  cfg5,    ///< and subnormal operands are read as normal: 2^(0 - bias) (1 + m / 2^Y)
  cfg6,    ///< subnormal operands are read as 0
};
std::string_view name_of(Multiplier multiplier);
/// "cfg1" to "cfg6", "exact", "rounded".
std::optional<Multiplier> multiplier_named(std::string_view name);

struct Mac {
  /// Of products (rounded), or of operands (variants); nothing for exact ones.
  NumberFormat product;
  Multiplier multiplier = Multiplier::rounded;
  /// What a converter in front of the multiplier rounds operands to: to even, cut to the largest
  /// number where `rounding.saturate` says so. Nothing: operands are taken as they are.
  std::optional<NumberFormat> operands;
  /// What sums are rounded to after every addition: floating, or fixed and then always saturating.
  /// Nothing: they are exact until the end (Kulisch) and then rounded to single precision.
  std::optional<NumberFormat> sum;
  /// One rounding: the exact product is added. Otherwise a product is rounded to a fixed format
  /// before it is added in it.
  bool fma = false;
  /// Of products and sums alike: mode, saturation, flushed subnormals, symmetric fixed numbers. Of
  /// the product and conversion of the k-th product of an output and of its sum, random bits are
  /// rounding_bits(seed, output, 3 k), 3 k + 1 and 3 k + 2.
  Rounding rounding;
  /// So many products, neighbours in order, are added up exactly before their sum is added.
  int lanes = 1;
  friend bool operator==(const Mac&, const Mac&) = default;
};

/// The arithmetic of a training step: units of products by what they compute, and how results are
/// rounded to the types of their tensors.
struct StepArithmetic {
  /// None: single precision, or double.
  std::optional<Mac> forward;
  std::optional<Mac> input_gradient;
  std::optional<Mac> weight_gradient;
  Rounding results;
};

/// "exact", "hybrid" (e8m16, cut off and not rounded, four products at a time: after Cuyckens et
/// al., not verified against silicon or its description), or a format.
struct AccumulatorChoice {
  std::optional<NumberFormat> format;
  bool hybrid = false;
};
std::optional<AccumulatorChoice> parse_accumulator(std::string_view name);
void set_accumulator(Mac& mac, const AccumulatorChoice& choice);

/// What cannot be emulated of a unit, in words; nothing if all can.
std::optional<std::string> why_not_emulated(const Mac& mac);

/// What the multiplier takes an operand for: converted where there is a converter, and by a variant
/// read as its code in the format, IEEE's but for numbers beyond IEEE's largest from cfg4 on.
double decoded_operand(const Mac& mac, double x);
/// One product as it is added, and one sum, of numbers of the formats. Exact products and sums must
/// have at most 53 bits; see ExactSum for others. `output` and `k` decide random bits.
double mac_product(const Mac& mac, double a, double b, std::uint64_t output = 0,
                   std::uint64_t k = 0);
double mac_sum(const Mac& mac, double c, double p, std::uint64_t output = 0, std::uint64_t k = 0);

struct GemmShape {
  std::int64_t m = 0; ///< rows of A and C
  std::int64_t n = 0; ///< columns of B and C
  std::int64_t k = 0; ///< columns of A, rows of B
};
struct GemmOptions {
  int jobs = 1;
  Instructions instructions = Instructions::best;
};

/// C = A B by the unit, every output from 0 on with k ascending. Row-major. Heeds check_stop().
/// InputError where the unit cannot be emulated.
std::vector<double> emulate_gemm(const GemmShape& shape, std::span<const double> a,
                                 std::span<const double> b, const Mac& mac,
                                 const GemmOptions& options = {});

/// The same of operands in blocks along k, as a microscaling unit has it: products of elements are
/// added up exactly inside chunks of mac.lanes (at most a block, which they divide; 1: a block),
/// times both scales, and then added by the unit. A has blocks along its columns, B along its rows.
std::vector<double> emulate_block_gemm(const GemmShape& shape, std::span<const double> a,
                                       std::span<const double> b, const TensorFormat& format,
                                       const Mac& mac, const GemmOptions& options = {});

} // namespace monet
