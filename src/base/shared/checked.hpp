// Integer arithmetic that throws on overflow, used wherever sizes from a user's file are
// multiplied, and a defined conversion of floating-point numbers to integers.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace monet {

/// Throws InputError("a `what` of sizes overflows 64 bits"). Defined out of line to keep error
/// handling out of the inline functions, which run in inner loops.
[[noreturn]] void throw_overflow(std::string_view what);

/// Product of two int64 values; throws InputError("... overflows 64 bits") if it does not fit.
inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    throw_overflow("product");
  return result;
}
/// Sum of two int64 values; throws InputError("... overflows 64 bits") if it does not fit.
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result))
    throw_overflow("sum");
  return result;
}
/// Product of all factors, 1 without any; throws InputError if it does not fit into int64.
std::int64_t checked_product(std::span<const std::int64_t> factors);

/// A floating-point number rounded towards zero, clamped to the range of int64; 0 for NaN. C++
/// leaves the conversion of NaN and of numbers outside the range undefined, and processors differ.
constexpr std::int64_t saturated_integer(double number) {
  constexpr double kBeyond = 9223372036854775808.0; // 2^63, the smallest number that is too large
  if (number != number)
    return 0;
  if (number >= kBeyond)
    return std::numeric_limits<std::int64_t>::max();
  if (number < -kBeyond)
    return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(number);
}

} // namespace monet
