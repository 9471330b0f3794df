// Rounding of doubles to a number format: modes, options, and the random bits of stochastic
// rounding.
#pragma once

#include "monet/numerics/format.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace monet {

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
