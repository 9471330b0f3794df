// Number formats: their names, codes and limits. Rounding, emulation and the readers of hardware
// files use them.
#include "monet/numerics/format.hpp"

#include "base/shared/names.hpp"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace monet {

namespace {

constexpr int kMaxBits = 64;
constexpr int kMaxExponentBits = 30;

using NamedFormat = Named<NumberFormat>;

constexpr NumberFormat floating(int exponent, int mantissa, TopCodes top = TopCodes::ieee) {
  return {true, exponent, mantissa, 0, top, true};
}

/// Named formats. name_of() returns a format's first name.
constexpr std::array kNamed{
    NamedFormat{"fp64", floating(11, 52)},
    NamedFormat{"fp32", floating(8, 23)},
    NamedFormat{"tf32", floating(8, 10)},
    NamedFormat{"fp16", floating(5, 10)},
    NamedFormat{"bf16", floating(8, 7)},
    NamedFormat{"fp8_e5m2", floating(5, 2)},
    NamedFormat{"fp8_e4m3", floating(4, 3, TopCodes::nan)},
    NamedFormat{"fp8", floating(4, 3, TopCodes::nan)},
    NamedFormat{"fp6_e3m2", floating(3, 2, TopCodes::numbers)},
    NamedFormat{"fp6_e2m3", floating(2, 3, TopCodes::numbers)},
    NamedFormat{"fp4_e2m1", floating(2, 1, TopCodes::numbers)},
};

struct Ending {
  std::string_view text;
  TopCodes top;
};
constexpr std::array kEndings{Ending{"", TopCodes::ieee}, Ending{"_fn", TopCodes::nan},
                              Ending{"_inf", TopCodes::infinity}, Ending{"_n", TopCodes::numbers}};

/// Removes a decimal number from the front of the text and returns it.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0 || value > kMaxBits)
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<NumberFormat> parse_integer(std::string_view digits, bool has_sign) {
  const auto bits = take_number(digits);
  if (!bits || !digits.empty() || *bits < 1)
    return std::nullopt;
  return NumberFormat{false, 0, 0, *bits, TopCodes::numbers, has_sign};
}

/// Parses the part after the q: "8.13".
std::optional<NumberFormat> parse_fixed(std::string_view text) {
  const auto whole = take_number(text);
  const bool point = take(text, ".");
  const auto fraction = take_number(text);
  if (!whole || !point || !fraction || !text.empty() || *whole < 1 || *whole + *fraction > kMaxBits)
    return std::nullopt;
  return fixed_format(*whole, *fraction);
}

/// Parses the part after the e: "5m2_fn".
std::optional<NumberFormat> parse_floating(std::string_view text) {
  const auto exponent = take_number(text);
  const bool middle = take(text, "m");
  const auto mantissa = take_number(text);
  if (!exponent || !middle || !mantissa || *exponent < 1 || *exponent > kMaxExponentBits ||
      *exponent + *mantissa + 1 > kMaxBits)
    return std::nullopt;
  for (const Ending& ending : kEndings) {
    if (ending.text == text)
      return floating_format(*exponent, *mantissa, ending.top);
  }
  return std::nullopt;
}

/// Parses the part after fp, "8_e3m4": the number of bits, then a format with that many bits.
std::optional<NumberFormat> parse_sized(std::string_view text) {
  const auto bits = take_number(text);
  const bool middle = take(text, "_e");
  const auto format = middle ? parse_floating(text) : std::nullopt;
  return format && bits == format->bits() ? format : std::nullopt;
}

std::uint64_t ones(int bits) {
  return bits == 0 ? 0 : ~std::uint64_t{0} >> (kMaxBits - bits);
}

/// Largest code of a finite number, without the sign.
std::uint64_t largest_code(const NumberFormat& format) {
  if (!format.floating)
    return ones(format.bits() - (format.has_sign ? 1 : 0));
  const std::uint64_t all = ones(format.exponent_bits + format.mantissa_bits);
  switch (format.top) {
  case TopCodes::ieee:
    return (ones(format.exponent_bits) << format.mantissa_bits) - 1;
  case TopCodes::nan:
  case TopCodes::infinity:
    return all - 1;
  case TopCodes::numbers:
    break;
  }
  return all;
}

double decode_fixed(const NumberFormat& format, std::uint64_t code) {
  const bool negative = format.has_sign && (code >> (format.bits() - 1)) != 0;
  const std::uint64_t magnitude = negative ? (~code & ones(format.bits())) + 1 : code;
  const double value = std::ldexp(static_cast<double>(magnitude), -format.mantissa_bits);
  return negative ? -value : value;
}

/// Decodes a code above that of the largest finite number.
double decode_special(const NumberFormat& format, std::uint64_t mantissa) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool infinite =
      format.top == TopCodes::infinity || (format.top == TopCodes::ieee && mantissa == 0);
  return infinite ? kInfinity : std::numeric_limits<double>::quiet_NaN();
}

std::optional<std::uint64_t> encode_special(const NumberFormat& format, double value) {
  const std::uint64_t all = ones(format.exponent_bits + format.mantissa_bits);
  if (!format.floating)
    return std::nullopt;
  if (std::isnan(value)) {
    const bool has_nan =
        format.top == TopCodes::nan || (format.top == TopCodes::ieee && format.mantissa_bits > 0);
    return has_nan ? std::optional(all) : std::nullopt;
  }
  const std::uint64_t sign = std::uint64_t{std::signbit(value)}
                             << (format.exponent_bits + format.mantissa_bits);
  if (format.top == TopCodes::ieee)
    return sign | ones(format.exponent_bits) << format.mantissa_bits;
  return format.top == TopCodes::infinity ? std::optional(sign | all) : std::nullopt;
}

} // namespace

NumberFormat floating_format(int exponent_bits, int mantissa_bits, TopCodes top) {
  return floating(exponent_bits, mantissa_bits, top);
}
NumberFormat fixed_format(int whole_bits, int fraction_bits) {
  return {false, 0, fraction_bits, whole_bits, TopCodes::numbers, true};
}

std::optional<NumberFormat> parse_number_format(std::string_view name) {
  std::string_view rest = name;
  if (take(rest, "mx")) {
    if (rest == "int8")
      return fixed_format(2, 6);
    if (rest.find('_') == rest.npos) // "mxfp8" alone does not name an element
      return std::nullopt;
  }
  if (const auto known = value_named(kNamed, rest))
    return known;
  if (take(rest, "uint"))
    return parse_integer(rest, false);
  if (take(rest, "int"))
    return parse_integer(rest, true);
  if (take(rest, "q"))
    return parse_fixed(rest);
  if (rest.size() == name.size() && take(rest, "fp"))
    return parse_sized(rest);
  return rest.size() == name.size() && take(rest, "e") ? parse_floating(rest) : std::nullopt;
}

std::string name_of(const NumberFormat& format) {
  if (const auto known = name_in(kNamed, format); !known.empty())
    return std::string(known);
  if (!format.floating && format.mantissa_bits == 0)
    return fmt::format("{}int{}", format.has_sign ? "" : "u", format.whole_bits);
  if (!format.floating)
    return fmt::format("q{}.{}", format.whole_bits, format.mantissa_bits);
  std::string name = fmt::format("e{}m{}", format.exponent_bits, format.mantissa_bits);
  for (const Ending& ending : kEndings) {
    if (ending.top == format.top)
      name += ending.text;
  }
  return name;
}

std::vector<std::string> common_format_names() {
  return {"fp64",     "fp32",     "tf32",     "fp16", "bf16",  "fp8",  "fp8_e4m3", "fp8_e5m2",
          "fp6_e3m2", "fp6_e2m3", "fp4_e2m1", "e4m3", "e5m2",  "e4m2", "e6m5",     "e4m3_fn",
          "int32",    "int16",    "int8",     "int4", "q8.13", "q4.4", "mxint8"};
}

bool is_emulated(const NumberFormat& format) {
  constexpr int kMaxEmulated = 32;
  constexpr int kDoubleExponentBits = 11;
  if (format == kDoublePrecision)
    return true;
  const int exponent_bits = format.exponent_bits + (format.top == TopCodes::ieee ? 0 : 1);
  return format.bits() <= kMaxEmulated &&
         (!format.floating || exponent_bits <= kDoubleExponentBits);
}

bool fits_single(const NumberFormat& format) {
  if (format.floating)
    return format.exponent_bits <= 8 && format.mantissa_bits <= 23 &&
           (format.exponent_bits < 8 || format.top == TopCodes::ieee);
  return format.bits() - (format.has_sign ? 1 : 0) <= 24;
}

int largest_exponent(const NumberFormat& format) {
  return std::ilogb(largest_number(format));
}
int smallest_exponent(const NumberFormat& format) {
  return 1 - format.bias();
}
double largest_number(const NumberFormat& format) {
  return decode(format, largest_code(format));
}
double smallest_number(const NumberFormat& format) {
  return decode(format, 1);
}
double smallest_normal(const NumberFormat& format) {
  return format.floating ? std::ldexp(1.0, smallest_exponent(format)) : smallest_number(format);
}
double lowest_number(const NumberFormat& format) {
  if (format.floating)
    return -largest_number(format);
  return format.has_sign ? -std::ldexp(1.0, format.whole_bits - 1) : 0;
}

double decode(const NumberFormat& format, std::uint64_t code) {
  code &= ones(format.bits());
  if (!format.floating)
    return decode_fixed(format, code);
  const int width = format.exponent_bits + format.mantissa_bits;
  const double sign = (code >> width) != 0 ? -1.0 : 1.0;
  const std::uint64_t mantissa = code & ones(format.mantissa_bits);
  if ((code & ones(width)) > largest_code(format))
    return sign * decode_special(format, mantissa);
  const auto field = static_cast<int>((code & ones(width)) >> format.mantissa_bits);
  const std::uint64_t hidden = field == 0 ? 0 : std::uint64_t{1} << format.mantissa_bits;
  const int exponent = std::max(field, 1) - format.bias() - format.mantissa_bits;
  return sign * std::ldexp(static_cast<double>(mantissa | hidden), exponent);
}

std::optional<std::uint64_t> encode(const NumberFormat& format, double value) {
  if (!std::isfinite(value))
    return encode_special(format, value);
  const double magnitude = std::abs(value);
  const bool negative = std::signbit(value);
  std::uint64_t code = 0;
  if (!format.floating) {
    const double steps = std::ldexp(magnitude, format.mantissa_bits);
    if (value > largest_number(format) || value < lowest_number(format) ||
        steps != std::floor(steps))
      return std::nullopt;
    code = static_cast<std::uint64_t>(steps);
    code = negative ? (~code + 1) & ones(format.bits()) : code;
    return code;
  }
  if (magnitude > largest_number(format))
    return std::nullopt;
  const int exponent = std::max(magnitude == 0 ? smallest_exponent(format) : std::ilogb(magnitude),
                                smallest_exponent(format));
  const double steps = std::ldexp(magnitude, format.mantissa_bits - exponent);
  if (steps != std::floor(steps))
    return std::nullopt;
  // A number without a hidden bit is in the smallest binade, whose exponent field starts at 0.
  code = static_cast<std::uint64_t>(steps) +
         (static_cast<std::uint64_t>(exponent - smallest_exponent(format)) << format.mantissa_bits);
  return code | std::uint64_t{negative} << (format.exponent_bits + format.mantissa_bits);
}

} // namespace monet
