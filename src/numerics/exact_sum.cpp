// Exact sum of doubles in a fixed-point accumulator; emulated units without rounding of sums use
// it.
#include "numerics/shared/exact_sum.hpp"

#include <bit>
#include <cmath>

namespace monet {

namespace {

constexpr int kLimbBits = 32;
constexpr int kLowest = -1074; ///< exponent of the lowest bit of a double
constexpr std::uint64_t kLimbMask = 0xFFFFFFFFULL;

} // namespace

void ExactSum::add(double x) {
  if (!std::isfinite(x)) {
    special_ += x;
    return;
  }
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent); // 53 fractional bits
  const auto whole = static_cast<std::int64_t>(std::ldexp(fraction, 53));
  // For subnormal numbers the lowest bits of `whole` are 0.
  const int place = exponent - 53 - kLowest;
  std::uint64_t magnitude = static_cast<std::uint64_t>(whole < 0 ? -whole : whole);
  int shift = place;
  if (place < 0) {
    magnitude >>= -place;
    shift = 0;
  }
  auto limb = static_cast<std::size_t>(shift / kLimbBits);
  const int inside = shift % kLimbBits;
  const std::uint64_t low = magnitude << inside;
  const std::uint64_t high = inside == 0 ? 0 : magnitude >> (64 - inside);
  const std::int64_t sign = whole < 0 ? -1 : 1;
  limbs_[limb] += sign * static_cast<std::int64_t>(low & kLimbMask);
  limbs_[limb + 1] += sign * static_cast<std::int64_t>(low >> kLimbBits);
  limbs_[limb + 2] += sign * static_cast<std::int64_t>(high);
}

void ExactSum::add_product(double a, double b) {
  const double product = a * b;
  add(product);
  if (std::isfinite(product))
    add(std::fma(a, b, -product));
}

double ExactSum::value(bool odd) const {
  if (special_ != 0) // includes NaN
    return special_;
  // Propagates carries, so that every limb but the last is in [0, 2^32).
  std::array<std::int64_t, kLimbs> limbs = limbs_;
  std::int64_t carry = 0;
  for (std::int64_t& limb : limbs) {
    const std::int64_t sum = limb + carry;
    carry = sum >> kLimbBits;
    limb = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) & kLimbMask);
  }
  const bool negative = carry < 0;
  if (negative) { // two's complement
    std::int64_t borrow = 1;
    for (std::int64_t& limb : limbs) {
      const std::uint64_t flipped =
          (~static_cast<std::uint64_t>(limb) & kLimbMask) + static_cast<std::uint64_t>(borrow);
      limb = static_cast<std::int64_t>(flipped & kLimbMask);
      borrow = static_cast<std::int64_t>(flipped >> kLimbBits);
    }
  }
  std::size_t top = limbs.size();
  while (top > 0 && limbs[top - 1] == 0)
    --top;
  if (top == 0)
    return 0;
  // Takes the 64 highest bits; the last of them is also set if any lower bit is.
  const auto at = [&](std::size_t i) { return static_cast<std::uint64_t>(limbs[i]); };
  const int lead = std::countl_zero(static_cast<std::uint32_t>(limbs[top - 1]));
  std::uint64_t bits = at(top - 1) << 32 | (top > 1 ? at(top - 2) : 0);
  std::uint64_t below = top > 2 ? at(top - 3) : 0;
  bits = bits << lead | (lead == 0 ? 0 : below >> (kLimbBits - lead));
  bool sticky = (below << lead & kLimbMask) != 0;
  for (std::size_t i = 0; i + 3 < top; ++i)
    sticky = sticky || limbs[i] != 0;
  const int exponent = kLowest + static_cast<int>(top) * kLimbBits - lead - 64;
  // Keeps 53 bits, or fewer if the number is subnormal: bits below 2^-1074 are always 0.
  constexpr int kExtra = 11;
  std::uint64_t kept = bits >> kExtra;
  const std::uint64_t rest = bits & ((1U << kExtra) - 1);
  constexpr std::uint64_t kHalf = 1U << (kExtra - 1);
  if (odd)
    kept |= rest != 0 || sticky ? 1 : 0;
  else if (rest > kHalf || (rest == kHalf && (sticky || (kept & 1) != 0)))
    ++kept;
  const double value = std::ldexp(static_cast<double>(kept), exponent + kExtra);
  return negative ? -value : value;
}

} // namespace monet
