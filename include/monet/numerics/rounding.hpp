// From any number to one of a format.
#pragma once

#include "monet/numerics/format.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace monet {

enum class RoundTo {
  even,       ///< the nearest, of two the one with an even code
  away,       ///< the nearest, of two the larger magnitude
  zero,       ///< the next smaller magnitude
  stochastic, ///< up in magnitude as often as the bits behind the last one say
  hysteresis, ///< down where the number has grown since it was rounded last, else up: weights that
              ///< swing stay (Lee et al., "Hysteresis quantization", ICLR 2022)
};
std::string_view name_of(RoundTo mode);

struct Rounding {
  RoundTo mode = RoundTo::even;
  int random_bits = 13; ///< stochastic: how many bits behind the last one decide, 1 to 24; what is
                        ///< behind them is cut off
  std::uint64_t seed = 0;
  bool saturate = false;         ///< the largest number where the format would have infinity
  bool flush_subnormals = false; ///< what is rounded to a subnormal number becomes 0
  bool symmetric = false;        ///< fixed: the most negative code is not used

  friend bool operator==(const Rounding&, const Rounding&) = default;
};
/// "even", "away", "zero", "hysteresis", "stochastic", "stochastic:4".
std::optional<Rounding> parse_rounding(std::string_view text);

/// What decides where the mode asks for more than the number.
struct RoundingAid {
  std::uint32_t random = 0; ///< its lowest `random_bits` are taken
  double before = 0;        ///< what this place was rounded to last
};

/// The number of the format that x is rounded to. Too large: infinity, NaN where the format has
/// only that, the largest number where it has neither, where it is fixed, or `saturate` says so.
/// NaN stays NaN whatever the format. Exact for every double.
double round_to(const NumberFormat& format, double x, const Rounding& rounding = {},
                const RoundingAid& aid = {});

/// Random bits of a place: the same on any machine and thread. `stream` tells tensors or operators
/// apart.
std::uint32_t rounding_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t place);

} // namespace monet
