// Multiply-accumulate units of any format, emulated bit for bit: rounding of products and sums, and
// the order of accumulation. The published multiplier variants are those of the Archimedes project
// (Inria, "Exploring low-precision formats in MAC units for DNN training").
// Example:
//   std::vector<double> multiply_in_fp8(const GemmShape& shape, std::span<const double> a,
//                                       std::span<const double> b) {
//     Mac mac;
//     mac.product = floating_format(5, 2);
//     mac.multiplier = Multiplier::cfg5;
//     mac.sum = fixed_format(8, 13);
//     return emulate_gemm(shape, a, b, mac);
//   }
#pragma once

#include "monet/numerics/blocks.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Behaviour of a multiplier whose operands have a format eXmY. The variants cfg1 to cfg6 remove
/// support step by step; from cfg3 on, products are exact in e(X+1)m(2Y+1).
enum class Multiplier {
  rounded, ///< operands unchanged; products rounded to the format
  exact,   ///< operands unchanged; products not rounded
  cfg1,    ///< IEEE operands; products rounded to the operands' format
  cfg2,    ///< as cfg1, but subnormal products become 0
  cfg3,    ///< IEEE operands; exact products, but subnormal ones become 0
  /// Behaves as cfg3, but codes with the top exponent are numbers, or infinity for a mantissa of
  /// all ones; no NaN.
  cfg4,
  /// Behaves as cfg4, but subnormal operands are read as normal: 2^(0 - bias) (1 + m / 2^Y).
  cfg5,
  cfg6, ///< as cfg4, but subnormal operands are read as 0
};
std::string_view name_of(Multiplier multiplier);
/// Parses "cfg1" to "cfg6", "exact" or "rounded"; nullopt for other names.
std::optional<Multiplier> multiplier_named(std::string_view name);

/// A multiply-accumulate unit: its multiplier, converter, accumulator and rounding.
struct Mac {
  /// Format of products (Multiplier::rounded) or of operands (variants); unused for
  /// Multiplier::exact.
  NumberFormat product;
  Multiplier multiplier = Multiplier::rounded;
  /// Format to which a converter in front of the multiplier rounds operands, to nearest even,
  /// saturating if `rounding.saturate` is set. nullopt: operands are not converted.
  std::optional<NumberFormat> operands;
  /// Format to which the sum is rounded after every addition: floating, or fixed, which always
  /// saturates. nullopt: the sum is exact (Kulisch) and is rounded to single precision at the end.
  std::optional<NumberFormat> sum;
  /// Whether there is a single rounding: the exact product is added. Otherwise a product is rounded
  /// to a fixed `sum` format before it is added.
  bool fma = false;
  /// Rounding of products and sums: mode, saturation, flushed subnormals, symmetric fixed numbers.
  /// The random bits for the k-th product of an output are rounding_bits(seed, output, i). Here i
  /// is 3 k for the product, 3 k + 1 for the conversion and 3 k + 2 for the sum.
  Rounding rounding;
  /// Number of consecutive products that are added exactly before their sum is added.
  int lanes = 1;
  friend bool operator==(const Mac&, const Mac&) = default;
};

/// Arithmetic of a training step: the unit for each kind of product, and the rounding of results to
/// the types of their tensors.
struct StepArithmetic {
  /// Unit for products of the forward phase; nullopt: single or double precision.
  std::optional<Mac> forward;
  /// Unit for products that compute gradients of inputs; nullopt: single or double precision.
  std::optional<Mac> input_gradient;
  /// Unit for products that compute gradients of weights; nullopt: single or double precision.
  std::optional<Mac> weight_gradient;
  /// Rounding of results to the types of their tensors.
  Rounding results;
};

/// An accumulator: exact, hybrid, or of a format. "hybrid" is e8m16, truncated instead of rounded,
/// with four products at a time (after Cuyckens et al.; not verified against silicon or its
/// description).
struct AccumulatorChoice {
  /// Format of the sum; nullopt: exact.
  std::optional<NumberFormat> format;
  bool hybrid = false;
};
/// Parses "exact", "hybrid" or the name of a format; nullopt for other names.
std::optional<AccumulatorChoice> parse_accumulator(std::string_view name);
/// Sets the accumulator of a unit.
void set_accumulator(Mac& mac, const AccumulatorChoice& choice);

/// Reason why a unit cannot be emulated, in words; nullopt if it can.
std::optional<std::string> why_not_emulated(const Mac& mac);

/// Value of an operand as the multiplier sees it, after the converter if there is one. Variants
/// read the operand as a code of the format, an IEEE format except for numbers beyond IEEE's
/// largest from cfg4 on.
double decoded_operand(const Mac& mac, double x);
/// One product of two operands, as it is added to the sum. An exact product must have at most 53
/// bits; use ExactSum for larger ones. `output` and `k` select the random bits.
double mac_product(const Mac& mac, double a, double b, std::uint64_t output = 0,
                   std::uint64_t k = 0);
/// One sum c + p. An exact sum must have at most 53 bits; use ExactSum for larger ones. `output`
/// and `k` select the random bits.
double mac_sum(const Mac& mac, double c, double p, std::uint64_t output = 0, std::uint64_t k = 0);

/// Dimensions of a matrix product C = A B.
struct GemmShape {
  std::int64_t m = 0; ///< rows of A and C
  std::int64_t n = 0; ///< columns of B and C
  std::int64_t k = 0; ///< columns of A, rows of B
};
/// Options of emulate_gemm() and emulate_block_gemm().
struct GemmOptions {
  int jobs = 1;
  Instructions instructions = Instructions::best;
};

/// Computes C = A B on the emulated unit. Every output starts from 0 and accumulates in ascending
/// k. Matrices are row-major. Checks for stop requests with check_stop(). Throws InputError if the
/// unit cannot be emulated.
std::vector<double> emulate_gemm(const GemmShape& shape, std::span<const double> a,
                                 std::span<const double> b, const Mac& mac,
                                 const GemmOptions& options = {});

/// Computes C = A B for operands in blocks along k, as a microscaling unit does. Products of
/// elements are added exactly within chunks of mac.lanes, which must divide a block (1: a whole
/// block). A chunk's sum is multiplied by both scales and then added by the unit. A has blocks
/// along its columns, B along its rows.
std::vector<double> emulate_block_gemm(const GemmShape& shape, std::span<const double> a,
                                       std::span<const double> b, const TensorFormat& format,
                                       const Mac& mac, const GemmOptions& options = {});

/// Deviation of numbers after rounding. Errors count only numbers that are finite before and after.
struct Deviation {
  /// Count of all numbers.
  std::int64_t numbers = 0;
  std::int64_t inexact = 0;    ///< finite numbers that changed, also to infinity or NaN
  std::int64_t flushed = 0;    ///< numbers that became 0
  std::int64_t nan = 0;        ///< count of NaN results
  std::int64_t infinite = 0;   ///< count of infinite results
  double largest_absolute = 0; ///< maximum absolute error
  double largest_relative = 0; ///< maximum relative error, as a fraction of the number before
  double rms = 0;              ///< root mean square of the error
  /// Ratio of signal to quantisation noise in dB; nullopt without noise or signal.
  std::optional<double> sqnr_db;
};
/// Compares numbers before and after rounding; both spans must have the same size.
Deviation deviation(std::span<const double> before, std::span<const double> after);

/// Counts of numbers beyond the largest one of a format, infinities included.
struct BeyondRange {
  std::int64_t saturated = 0;  ///< replaced by the largest number
  std::int64_t overflowed = 0; ///< replaced by infinity or, in formats without infinity, by NaN
};
/// Counts the numbers of `before` that are beyond the range of the format; `after` is quantise()'s
/// result. `symmetric`: the most negative code is not used.
BeyondRange beyond_range(std::span<const double> before, const QuantisedTensor& after,
                         const TensorFormat& format, bool symmetric);

/// Product A B with sums in twice double precision, rounded to double at the end. Checks for stop
/// requests with check_stop().
std::vector<double> precise_product(const GemmShape& shape, std::span<const double> a,
                                    std::span<const double> b, int jobs = 1);

} // namespace monet
