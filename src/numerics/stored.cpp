#include "monet/numerics/stored.hpp"

#include "monet/base/errors.hpp"

#include <cmath>

namespace monet {

namespace {

constexpr int kPowerScaleBits = 8; ///< E8M0

} // namespace

std::optional<std::uint64_t> element_code(const TensorFormat& format, double element) {
  const auto code = encode(format.element, element);
  if (!code && format.blocks && std::isnan(element))
    return 0;
  return code;
}

std::uint64_t scale_code(const BlockScaling& blocks, double scale) {
  if (!blocks.scale)
    return e8m0_code(scale);
  const auto code = encode(*blocks.scale, scale);
  internal_check(code.has_value(), "a scale is a number of its format");
  return *code;
}

int scale_bits(const BlockScaling& blocks) {
  return blocks.scale ? blocks.scale->bits() : kPowerScaleBits;
}

double bits_per_element(const TensorFormat& format) {
  const double bits = format.element.bits();
  if (!format.blocks)
    return bits;
  const BlockScaling& blocks = *format.blocks;
  return bits + scale_bits(blocks) / static_cast<double>(blocks.rows) /
                    static_cast<double>(blocks.columns);
}

} // namespace monet
