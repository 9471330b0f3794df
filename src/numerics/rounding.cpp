// Rounds a number to a format: modes, saturation, and random bits. Reference for the vector
// kernels.
#include "base/shared/names.hpp"
#include "base/shared/rng.hpp"
#include "base/shared/text.hpp"

#include "monet/numerics/format.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace monet {

namespace {

using NamedMode = Named<RoundTo>;
constexpr std::array kModes{NamedMode{"even", RoundTo::even}, NamedMode{"away", RoundTo::away},
                            NamedMode{"zero", RoundTo::zero},
                            NamedMode{"stochastic", RoundTo::stochastic},
                            NamedMode{"hysteresis", RoundTo::hysteresis}};

constexpr int kMaxRandomBits = 24;

/// Magnitude between two neighbours of a format.
struct NeighbourPair {
  double lower; ///< lower neighbour in steps
  double rest;  ///< distance to the lower neighbour in steps, below 1
  bool odd;     ///< whether the lower neighbour's code is odd
};

NeighbourPair place_between(const NumberFormat& format, double steps, int step) {
  const double lower = std::floor(steps);
  bool odd = std::fmod(lower, 2.0) != 0;
  if (format.floating && format.mantissa_bits == 0 && lower != 0) // codes are exponents
    odd = (step - smallest_exponent(format)) % 2 == 0;
  return {lower, steps - lower, odd};
}

bool goes_up(const NeighbourPair& at, double x, const Rounding& rounding, const RoundingAid& aid) {
  const double rest = at.rest;
  switch (rounding.mode) {
  case RoundTo::even:
    return rest > 0.5 || (rest == 0.5 && at.odd);
  case RoundTo::away:
    return rest >= 0.5;
  case RoundTo::zero:
    return false;
  case RoundTo::stochastic: {
    const std::uint32_t limit = std::uint32_t{1} << rounding.random_bits;
    const auto part = static_cast<std::uint32_t>(std::ldexp(rest, rounding.random_bits));
    return part + (aid.random & (limit - 1)) >= limit;
  }
  case RoundTo::hysteresis: {
    const bool to_greater = !(x > aid.before);
    return rest > 0 && to_greater != std::signbit(x);
  }
  }
  return false;
}

/// Replacement of a number beyond the largest, or of infinity.
double overflow(const NumberFormat& format, double x, const Rounding& rounding) {
  const double sign = std::copysign(1.0, x);
  const bool cut = rounding.mode == RoundTo::zero && std::isfinite(x);
  if (rounding.saturate || cut || format.top == TopCodes::numbers)
    return sign * largest_number(format);
  if (format.top == TopCodes::nan)
    return std::copysign(std::numeric_limits<double>::quiet_NaN(), x);
  return sign * std::numeric_limits<double>::infinity();
}

double clamp_fixed(const NumberFormat& format, double q, const Rounding& rounding) {
  const double most = largest_number(format);
  const double least = rounding.symmetric && format.has_sign ? -most : lowest_number(format);
  return std::fmin(std::fmax(q, least), most);
}

} // namespace

std::string_view name_of(RoundTo mode) {
  return name_in(kModes, mode);
}

std::optional<Rounding> parse_rounding(std::string_view text) {
  Rounding rounding;
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto mode = value_named(kModes, name);
  if (!mode)
    return std::nullopt;
  rounding.mode = *mode;
  if (colon == text.npos)
    return rounding;
  rounding.random_bits = number_in<int>(text.substr(colon + 1)).value_or(0);
  if (*mode != RoundTo::stochastic || rounding.random_bits < 1 ||
      rounding.random_bits > kMaxRandomBits)
    return std::nullopt;
  return rounding;
}

double round_to(const NumberFormat& format, double x, const Rounding& rounding,
                const RoundingAid& aid) {
  if (std::isnan(x))
    return x;
  const double magnitude = std::abs(x);
  if (std::isinf(x))
    return format.floating ? overflow(format, x, rounding) : clamp_fixed(format, x, rounding);
  int step = -format.mantissa_bits; // exponent of the distance between neighbours
  if (format.floating && magnitude != 0)
    step += std::max(std::ilogb(magnitude), smallest_exponent(format));
  const double steps = std::ldexp(magnitude, -step);
  if (std::isinf(steps)) // far outside the range of any fixed format
    return clamp_fixed(format, std::copysign(steps, x), rounding);
  const NeighbourPair at = place_between(format, steps, step);
  const double whole = at.lower + (goes_up(at, x, rounding, aid) ? 1 : 0);
  const double q = std::copysign(std::ldexp(whole, step), x);
  if (!format.floating)
    return clamp_fixed(format, q, rounding);
  if (std::abs(q) > largest_number(format))
    return overflow(format, x, rounding);
  if (rounding.flush_subnormals && std::abs(q) < smallest_normal(format))
    return std::copysign(0.0, x);
  return q;
}

std::uint32_t rounding_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t place) {
  // Two rounds of a 32-bit mixer with small bias (Wellons, "Prospecting for hash functions", 2018).
  const auto mix = [](std::uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352DU;
    x = (x ^ (x >> 15)) * 0x846CA68BU;
    return x ^ (x >> 16);
  };
  const std::uint64_t key = random_bits(seed, stream);
  const auto high = static_cast<std::uint32_t>(place >> 32);
  const auto first = static_cast<std::uint32_t>(place) ^ static_cast<std::uint32_t>(key);
  return mix(mix(first) + static_cast<std::uint32_t>(key >> 32) + mix(high));
}

} // namespace monet
