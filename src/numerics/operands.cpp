// What the multiplier of a unit takes whole operands for.
#include "numerics/shared/mac_engine.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace monet {

namespace {

/// Numbers of a variant's format from cfg4 on, as it reads them: it has no NaN.
void read_without_nan(std::span<float> numbers, const Mac& mac) {
  const auto least = static_cast<float>(smallest_normal(mac.product));
  const auto base = static_cast<float>(std::ldexp(1.0, -mac.product.bias()));
  const bool as_normal = mac.multiplier == Multiplier::cfg5;
  const bool as_zero = mac.multiplier == Multiplier::cfg6;
  for (float& x : numbers) {
    float magnitude = std::isnan(x) ? std::numeric_limits<float>::infinity() : std::abs(x);
    if (magnitude > 0 && magnitude < least) {
      if (as_normal)
        magnitude = base + magnitude / 2;
      else if (as_zero)
        magnitude = 0;
    }
    x = std::copysign(magnitude, x);
  }
}

} // namespace

Rounding converter_rounding(const Mac& mac) {
  Rounding rounding;
  rounding.saturate = mac.rounding.saturate;
  return rounding;
}

std::vector<float> decoded_operands(std::span<const float> numbers, const Mac& mac, int jobs,
                                    Instructions instructions) {
  std::vector<float> result(numbers.begin(), numbers.end());
  const std::array<std::int64_t, 1> shape{static_cast<std::int64_t>(result.size())};
  if (mac.operands)
    round_tensor(shape, result, {*mac.operands, std::nullopt}, converter_rounding(mac), 0, jobs,
                 instructions);
  if (mac.multiplier < Multiplier::cfg1)
    return result;
  TensorFormat format{mac.product, std::nullopt};
  const bool without_nan = mac.multiplier >= Multiplier::cfg4;
  if (without_nan)
    format.element.top = TopCodes::infinity;
  round_tensor(shape, result, format, {}, 0, jobs, instructions);
  if (without_nan)
    read_without_nan(result, mac);
  return result;
}

} // namespace monet
