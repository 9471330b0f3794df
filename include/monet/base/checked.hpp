// Integer arithmetic that throws instead of wrapping, used wherever sizes from a user's file are
// multiplied, and the one way from a floating number of a file to an integer.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace monet {

/// Throws InputError("a `what` of sizes overflows 64 bits"). Apart, so that nothing of it is in the
/// functions below, which are in inner loops.
[[noreturn]] void throw_overflow(std::string_view what);

/// Product or sum as int64; throws InputError("... overflows 64 bits") when it does not fit.
inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    throw_overflow("product");
  return result;
}
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result))
    throw_overflow("sum");
  return result;
}
/// Product of all factors, 1 for none.
std::int64_t checked_product(std::span<const std::int64_t> factors);

/// Rounded towards zero: the largest or least integer where the number lies beyond it, 0 for NaN.
/// C++ leaves both undefined, and processors differ.
constexpr std::int64_t saturated_integer(double number) {
  constexpr double kBeyond = 9223372036854775808.0; // 2^63, the first that is too large
  if (number != number)
    return 0;
  if (number >= kBeyond)
    return std::numeric_limits<std::int64_t>::max();
  if (number < -kBeyond)
    return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(number);
}

} // namespace monet
