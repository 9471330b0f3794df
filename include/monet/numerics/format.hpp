// Number formats as values: what a code of so many bits stands for.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// What the codes with the largest exponent of a floating-point format stand for.
enum class TopCodes {
  ieee,     ///< infinity where the mantissa is 0, else not a number
  nan,      ///< numbers like others, but not a number where the mantissa is all ones (E4M3 of the
            ///< OCP: "fn")
  infinity, ///< numbers like others, but infinity where the mantissa is all ones
  numbers,  ///< numbers like others: the format has neither infinity nor "not a number"
};

/// A binary number format. Floating: a sign, `exponent_bits` with bias 2^(exponent_bits-1) - 1 and
/// `mantissa_bits`, with subnormals. Fixed: two's complement of `whole_bits`, the sign among them,
/// and `mantissa_bits` behind the point; integers have none.
struct NumberFormat {
  bool floating = true;
  int exponent_bits = 8;  ///< floating
  int mantissa_bits = 23; ///< floating: without the hidden one; fixed: behind the point
  int whole_bits = 0;     ///< fixed
  TopCodes top = TopCodes::ieee;
  bool has_sign = true; ///< false: unsigned integers

  /// Bits of a code.
  constexpr int bits() const {
    return floating ? 1 + exponent_bits + mantissa_bits : whole_bits + mantissa_bits;
  }
  /// Bits that multiply: the significand with its hidden one, all bits of an integer.
  constexpr int significand_bits() const { return floating ? mantissa_bits + 1 : bits(); }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  friend constexpr bool operator==(const NumberFormat&, const NumberFormat&) = default;
  /// An order for keys.
  friend constexpr auto operator<=>(const NumberFormat&, const NumberFormat&) = default;
};

/// IEEE's single and double precision, which numbers are computed with.
inline constexpr NumberFormat kSinglePrecision{true, 8, 23, 0, TopCodes::ieee, true};
inline constexpr NumberFormat kDoublePrecision{true, 11, 52, 0, TopCodes::ieee, true};

NumberFormat floating_format(int exponent_bits, int mantissa_bits, TopCodes top = TopCodes::ieee);
NumberFormat fixed_format(int whole_bits, int fraction_bits);

/// fp64, fp32, tf32, fp16, bf16; eXmY with X from 1 to 30, as IEEE has them, or with an ending for
/// other top codes: _fn (nan), _inf (infinity), _n (numbers); intN, uintN, qM.F (M counts the
/// sign). Elements of the OCP: fp8_e5m2, fp8_e4m3 (fp8 for short, which is e4m3_fn), fp6_e3m2,
/// fp6_e2m3, fp4_e2m1, also with "mx" before them, and mxint8, which is q2.6; other fpN_eXmY are
/// eXmY. Nothing for other names, or more than 64 bits.
std::optional<NumberFormat> parse_number_format(std::string_view name);
/// The shortest name that parse_number_format() reads as this format.
std::string name_of(const NumberFormat& format);
/// Names for hints and messages.
std::vector<std::string> common_format_names();

/// Whether numbers of the format can be computed with here: at most 32 bits, or fp64.
bool is_emulated(const NumberFormat& format);
/// Every number of the format is a single-precision number, too.
bool fits_single(const NumberFormat& format);

/// Of a floating format: exponents of the largest finite number and of the smallest binade with a
/// hidden one.
int largest_exponent(const NumberFormat& format);
int smallest_exponent(const NumberFormat& format);
/// The largest finite number; the smallest one above 0, subnormal where there are subnormals.
double largest_number(const NumberFormat& format);
double smallest_number(const NumberFormat& format);
/// The smallest number that is not subnormal; of a fixed format its smallest one.
double smallest_normal(const NumberFormat& format);
/// The most negative finite number: -largest but of fixed formats.
double lowest_number(const NumberFormat& format);

/// What a code of bits() bits stands for.
double decode(const NumberFormat& format, std::uint64_t code);
/// The code of a number of the format. Of what is not a number: the one with the largest mantissa
/// in IEEE formats, all ones where there is one; nothing for infinities and NaN without a code, and
/// for numbers in between.
std::optional<std::uint64_t> encode(const NumberFormat& format, double value);

} // namespace monet
