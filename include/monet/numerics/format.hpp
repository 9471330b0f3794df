// NumberFormat: floating-point, fixed-point and integer formats, their names, and coding of
// numbers.
// Example:
//   double round_to_fp8(double number) {
//     const NumberFormat format = parse_number_format("fp8_e4m3").value();
//     Rounding rounding;
//     rounding.saturate = true; // 448 instead of NaN
//     return round_to(format, number, rounding);
//   }
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Meaning of the codes with the largest exponent of a floating-point format.
enum class TopCodes {
  ieee,     ///< infinity for mantissa 0, else NaN
  nan,      ///< ordinary numbers, but NaN for a mantissa of all ones (OCP's E4M3, "fn")
  infinity, ///< ordinary numbers, but infinity for a mantissa of all ones
  numbers,  ///< ordinary numbers: the format has neither infinity nor NaN
};

/// A binary number format. Floating: a sign, `exponent_bits` with bias 2^(exponent_bits-1) - 1, and
/// `mantissa_bits`, with subnormals. Fixed: two's complement of `whole_bits`, including the sign,
/// and `mantissa_bits` after the point; integers have no bits after it.
struct NumberFormat {
  /// Whether the format is floating-point; false: fixed-point or integer.
  bool floating = true;
  int exponent_bits = 8;  ///< floating only
  int mantissa_bits = 23; ///< floating: without the hidden bit; fixed: bits after the point
  int whole_bits = 0;     ///< fixed only: bits before the point, including the sign
  TopCodes top = TopCodes::ieee;
  bool has_sign = true; ///< false: unsigned integers

  /// Number of bits of a code.
  constexpr int bits() const {
    return floating ? 1 + exponent_bits + mantissa_bits : whole_bits + mantissa_bits;
  }
  /// Bits that a multiplier processes: the significand with its hidden bit, or all bits of an
  /// integer.
  constexpr int significand_bits() const { return floating ? mantissa_bits + 1 : bits(); }
  /// Bias of the exponent, in floating formats.
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  friend constexpr bool operator==(const NumberFormat&, const NumberFormat&) = default;
  /// Arbitrary order for use in keys.
  friend constexpr auto operator<=>(const NumberFormat&, const NumberFormat&) = default;
};

/// IEEE single precision.
inline constexpr NumberFormat kSinglePrecision{true, 8, 23, 0, TopCodes::ieee, true};
/// IEEE double precision.
inline constexpr NumberFormat kDoublePrecision{true, 11, 52, 0, TopCodes::ieee, true};

/// Makes a floating-point format with a sign and the given bits.
NumberFormat floating_format(int exponent_bits, int mantissa_bits, TopCodes top = TopCodes::ieee);
/// Makes a signed fixed-point format; `whole_bits` includes the sign.
NumberFormat fixed_format(int whole_bits, int fraction_bits);

/// Parses the name of a number format; nullopt for other names and for more than 64 bits. Names
/// are:
/// - fp64, fp32, tf32, fp16, bf16;
/// - eXmY with X from 1 to 30, as in IEEE, or with a suffix for other top codes: _fn (nan), _inf
///   (infinity), _n (numbers);
/// - intN, uintN, and qM.F, where M includes the sign;
/// - elements of the OCP: fp8_e5m2, fp8_e4m3 (or fp8, the same as e4m3_fn), fp6_e3m2, fp6_e2m3,
///   fp4_e2m1, each also with the prefix "mx", and mxint8, which is q2.6;
/// - other fpN_eXmY, which are eXmY.
std::optional<NumberFormat> parse_number_format(std::string_view name);
/// Shortest name that parse_number_format() reads as this format.
std::string name_of(const NumberFormat& format);
/// Names of common number formats, for hints and messages.
std::vector<std::string> common_format_names();

/// Whether the library can compute with numbers of the format: at most 32 bits, or fp64.
bool is_emulated(const NumberFormat& format);
/// Whether every number of the format is exact in single precision.
bool fits_single(const NumberFormat& format);

/// Exponent of the largest finite number of a floating format.
int largest_exponent(const NumberFormat& format);
/// Exponent of the smallest normal binade (with a hidden one) of a floating format.
int smallest_exponent(const NumberFormat& format);
/// Largest finite number of the format.
double largest_number(const NumberFormat& format);
/// Smallest number above 0, subnormal in formats with subnormals.
double smallest_number(const NumberFormat& format);
/// Smallest normal number; in a fixed format the smallest number above 0.
double smallest_normal(const NumberFormat& format);
/// Most negative finite number: -largest_number() except in fixed formats.
double lowest_number(const NumberFormat& format);

/// Number that a code of bits() bits represents.
double decode(const NumberFormat& format, std::uint64_t code);
/// Code of a number of the format. NaN yields the code with the largest mantissa in IEEE formats,
/// or all ones where that code is NaN. Returns nullopt for infinities and NaN without a code, and
/// for numbers that the format lacks.
std::optional<std::uint64_t> encode(const NumberFormat& format, double value);

/// Rounding mode.
enum class RoundTo {
  even, ///< nearest; ties to the even code
  away, ///< nearest; ties to the larger magnitude
  zero, ///< towards zero
  /// Up in magnitude with a probability equal to the fraction behind the last bit.
  stochastic,
  /// Down if the number has grown since its last rounding, else up, so that oscillating weights
  /// stay put (Lee et al., "Hysteresis quantization", ICLR 2022).
  hysteresis,
};
std::string_view name_of(RoundTo mode);

/// Options of round_to().
struct Rounding {
  RoundTo mode = RoundTo::even;
  /// Stochastic mode: number of bits behind the last one that decide, 1 to 24; lower bits are cut
  /// off.
  int random_bits = 13;
  std::uint64_t seed = 0;
  /// Whether numbers beyond the range become the largest number instead of infinity.
  bool saturate = false;
  bool flush_subnormals = false; ///< results that are subnormal become 0
  bool symmetric = false;        ///< fixed: the most negative code is not used

  friend bool operator==(const Rounding&, const Rounding&) = default;
};
/// Parses "even", "away", "zero", "hysteresis", "stochastic" or "stochastic:4" (random bits);
/// nullopt for other texts.
std::optional<Rounding> parse_rounding(std::string_view text);

/// Additional inputs of the stochastic and hysteresis modes.
struct RoundingAid {
  std::uint32_t random = 0; ///< of which the lowest `random_bits` are used
  double before = 0;        ///< last rounded value of this element
};

/// Rounds x to a number of the format; exact for every double. Numbers that are too large become
/// infinity, or NaN in formats without infinity. They become the largest number in fixed formats,
/// with `saturate`, in mode zero if x is finite, and in formats with neither infinity nor NaN. NaN
/// stays NaN in every format.
double round_to(const NumberFormat& format, double x, const Rounding& rounding = {},
                const RoundingAid& aid = {});

/// Random bits of an element, the same on any machine and thread. `stream` distinguishes tensors or
/// operators.
std::uint32_t rounding_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t place);

} // namespace monet
