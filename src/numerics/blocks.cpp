// Block-scaled formats (MX, NVFP4 and others): their names, and rounding of tensors to elements and
// scales. gemm.cpp, the formats command and its report use it.
#include "monet/numerics/blocks.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/names.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/base/units.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace monet {

namespace {

constexpr std::array kScaleModes{
    Named<ScaleMode>{"floor", ScaleMode::floor}, Named<ScaleMode>{"ceil", ScaleMode::ceil},
    Named<ScaleMode>{"even", ScaleMode::even}, Named<ScaleMode>{"rceil", ScaleMode::rceil}};

constexpr int kScaleBias = 127;
constexpr int kSecondLast = -2;     ///< second-last axis
constexpr int kZeroExponent = -126; ///< exponent assumed for a block of zeros
constexpr std::uint8_t kScaleNan = 255;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

BlockScaling of_blocks(std::int64_t rows, std::int64_t columns) {
  BlockScaling blocks;
  blocks.rows = rows;
  blocks.columns = columns;
  return blocks;
}

/// Parses fp8_e4m3_1x128 and similar names: blocks with single-precision scales.
std::optional<TensorFormat> parse_wide_blocks(std::string_view name) {
  constexpr std::size_t kElementName = std::string_view("fp8_e4m3").size();
  if (!name.starts_with("fp8_") || name.size() <= kElementName || name[kElementName] != '_')
    return std::nullopt;
  const auto element = parse_number_format(name.substr(0, kElementName));
  const std::string_view rest = name.substr(kElementName + 1);
  if (!element || (rest != "1x128" && rest != "128x128"))
    return std::nullopt;
  BlockScaling blocks = of_blocks(rest == "1x128" ? 1 : 128, 128);
  blocks.scale = kSinglePrecision;
  return TensorFormat{*element, blocks};
}

/// Tracks the block of each element while the elements are visited in order.
class BlockWalk {
public:
  BlockWalk(std::span<const std::int64_t> shape, const BlockScaling& blocks)
      : shape_(shape.begin(), shape.end()), divisors_(shape.size(), 1) {
    set_divisor(blocks.column_axis, blocks.columns, true);
    set_divisor(blocks.row_axis, blocks.rows, false);
    for (std::size_t d = 0; d < shape_.size(); ++d)
      scale_shape_.push_back(ceil_div(shape_[d], divisors_[d]));
    place_.assign(shape_.size(), 0);
  }

  const std::vector<std::int64_t>& scale_shape() const { return scale_shape_; }

  std::size_t block() const {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < shape_.size(); ++d)
      index = index * scale_shape_[d] + place_[d] / divisors_[d];
    return static_cast<std::size_t>(index);
  }
  void next() {
    for (std::size_t d = shape_.size(); d-- > 0;) {
      if (++place_[d] < shape_[d])
        return;
      place_[d] = 0;
    }
  }

private:
  void set_divisor(int axis, std::int64_t size, bool needed) {
    const auto rank = static_cast<int>(shape_.size());
    const int at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) {
      internal_check(rank < (needed ? 1 : 2), "an axis of blocks that the tensor does not have");
      return;
    }
    internal_check(size >= 1 && divisors_[static_cast<std::size_t>(at)] == 1,
                   "blocks have two axes and at least one element");
    divisors_[static_cast<std::size_t>(at)] = size;
  }

  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> divisors_; ///< block extent in elements along each axis
  std::vector<std::int64_t> scale_shape_;
  std::vector<std::int64_t> place_;
};

double larger_magnitude(double amax, double x) {
  const double magnitude = std::abs(x);
  return std::isnan(amax) || magnitude <= amax ? amax : magnitude;
}

std::vector<double> largest_magnitudes(BlockWalk walk, std::span<const double> numbers) {
  std::vector<double> result(static_cast<std::size_t>(checked_product(walk.scale_shape())), 0.0);
  for (const double number : numbers) {
    double& amax = result[walk.block()];
    amax = larger_magnitude(amax, number);
    walk.next();
  }
  return result;
}

/// Checks for a stop request at regular intervals of a loop over elements.
void check_stop_at(std::size_t element) {
  constexpr std::size_t kBetweenChecks = 1 << 12;
  if (element % kBetweenChecks == 0)
    check_stop();
}

/// Scale of a block, relative to the tensor's scale.
double scale_of(const TensorFormat& format, double amax, double tensor_scale) {
  const BlockScaling& blocks = *format.blocks;
  if (!blocks.scale)
    return power_scale(format.element, blocks.mode, amax / tensor_scale);
  if (!std::isfinite(amax))
    return kNan;
  if (amax == 0)
    return blocks.of_tensor ? 0 : 1;
  Rounding cut;
  cut.saturate = true;
  return round_to(*blocks.scale, amax / largest_number(format.element) / tensor_scale, cut);
}

double scale_of_tensor(const TensorFormat& format, std::span<const double> amax) {
  const BlockScaling& blocks = *format.blocks;
  if (!blocks.of_tensor)
    return 1;
  double most = 0;
  for (const double one : amax)
    most = larger_magnitude(most, one);
  if (!std::isfinite(most) || most == 0)
    return 1;
  const double room =
      largest_number(format.element) * (blocks.scale ? largest_number(*blocks.scale) : 1.0);
  const double scale = round_to(kSinglePrecision, most / room);
  return scale == 0 ? 1 : scale;
}

constexpr int kPowerScaleBits = 8; ///< E8M0

} // namespace

std::string_view name_of(ScaleMode mode) {
  return name_in(kScaleModes, mode);
}
std::optional<ScaleMode> scale_mode_named(std::string_view name) {
  return value_named(kScaleModes, name);
}

std::optional<TensorFormat> parse_tensor_format(std::string_view name) {
  if (name == "nvfp4") {
    BlockScaling blocks = of_blocks(1, 16);
    blocks.scale = floating_format(4, 3, TopCodes::nan);
    blocks.of_tensor = true;
    return TensorFormat{floating_format(2, 1, TopCodes::numbers), blocks};
  }
  if (auto wide = parse_wide_blocks(name))
    return wide;
  const auto element = parse_number_format(name);
  if (!element)
    return std::nullopt;
  if (name.starts_with("mx"))
    return TensorFormat{*element, of_blocks(1, 32)};
  return TensorFormat{*element, std::nullopt};
}

std::vector<std::string> common_tensor_format_names() {
  std::vector<std::string> names = common_format_names();
  for (const char* name : {"mxfp8_e5m2", "mxfp8_e4m3", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4_e2m1",
                           "nvfp4", "fp8_e4m3_1x128", "fp8_e4m3_128x128"})
    names.emplace_back(name);
  return names;
}

std::optional<std::array<std::int64_t, 2>> parse_block_shape(std::string_view text) {
  std::array<std::int64_t, 2> sizes{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i == 1 && (at == end || *at++ != 'x'))
      return std::nullopt;
    const auto [stop, error] = std::from_chars(at, end, sizes[i]);
    if (error != std::errc{} || sizes[i] < 1)
      return std::nullopt;
    at = stop;
  }
  return at == end ? std::optional(sizes) : std::nullopt;
}

std::vector<std::int64_t> extents_of(const BlockScaling& blocks) {
  const int outermost = std::max(
      {2, blocks.rows > 1 ? -blocks.row_axis : 0, blocks.columns > 1 ? -blocks.column_axis : 0});
  std::vector<std::int64_t> extents(static_cast<std::size_t>(outermost), 1);
  const auto set = [&](int axis, std::int64_t size) {
    if (size > 1)
      extents.at(static_cast<std::size_t>(outermost + axis)) = size;
  };
  set(blocks.row_axis, blocks.rows);
  set(blocks.column_axis, blocks.columns);
  return extents;
}

bool is_vector(const BlockScaling& blocks) {
  return blocks.rows == 1 || blocks.columns == 1;
}

int axis_of_vector(const BlockScaling& blocks) {
  return blocks.rows > 1 ? blocks.row_axis : blocks.column_axis;
}

BlockScaling along(BlockScaling blocks, int axis, int other) {
  const std::int64_t length = blocks.rows * blocks.columns;
  if (!is_vector(blocks)) {
    blocks.row_axis = std::min(axis, other);
    blocks.column_axis = std::max(axis, other);
    return blocks;
  }
  const bool is_column = axis == kSecondLast; // as in "32x1"
  blocks.rows = is_column ? length : 1;
  blocks.columns = is_column ? 1 : length;
  blocks.row_axis = kSecondLast;
  blocks.column_axis = is_column ? -1 : axis;
  return blocks;
}

double power_scale(const NumberFormat& element, ScaleMode mode, double largest_magnitude) {
  if (!std::isfinite(largest_magnitude))
    return kNan;
  const double most = largest_number(element);
  if (largest_magnitude == 0)
    return std::ldexp(1.0, std::max(kZeroExponent - std::ilogb(most), -kScaleBias));
  const int exponent = std::ilogb(largest_magnitude);
  int scale = exponent - std::ilogb(most);
  const double significand = std::ldexp(largest_magnitude, -exponent); // in [1, 2)
  switch (mode) {
  case ScaleMode::floor:
    break;
  case ScaleMode::ceil:
    scale += significand > 1 ? 1 : 0;
    break;
  case ScaleMode::even: { // bits after the leading one
    const int bits =
        element.floating ? element.mantissa_bits : element.bits() - (element.has_sign ? 2 : 1);
    scale += significand >= 2 - std::ldexp(1.0, -bits - 1) ? 1 : 0;
    break;
  }
  case ScaleMode::rceil:
    scale += std::ldexp(significand, std::ilogb(most)) > most ? 1 : 0;
    break;
  }
  return std::ldexp(1.0, std::min(std::max(scale, -kScaleBias), kScaleBias));
}

std::uint8_t e8m0_code(double scale) {
  return std::isnan(scale) ? kScaleNan : static_cast<std::uint8_t>(std::ilogb(scale) + kScaleBias);
}
QuantisedTensor quantise(std::span<const std::int64_t> shape, std::span<const double> numbers,
                         const TensorFormat& format, const QuantiseOptions& options) {
  const auto& [rounding, full_range, stream, before] = options;
  internal_check(checked_product(shape) == static_cast<std::int64_t>(numbers.size()) &&
                     (before.empty() || before.size() == numbers.size()),
                 "a tensor has one number for each element");
  const auto aid = [&](std::size_t i, double scale) {
    RoundingAid result;
    if (rounding.mode == RoundTo::stochastic)
      result.random = rounding_bits(rounding.seed, stream, i);
    if (rounding.mode == RoundTo::hysteresis && !before.empty())
      result.before = before[i] / scale;
    return result;
  };
  QuantisedTensor result;
  result.values.resize(numbers.size());
  if (!format.blocks) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      check_stop_at(i);
      result.values[i] = round_to(format.element, numbers[i], rounding, aid(i, 1));
    }
    result.elements = result.values;
    return result;
  }
  Rounding inside = rounding;
  inside.saturate = true;
  inside.symmetric = !full_range;
  BlockWalk walk(shape, *format.blocks);
  const std::vector<double> amax = largest_magnitudes(walk, numbers);
  result.scale_shape = walk.scale_shape();
  result.tensor_scale = scale_of_tensor(format, amax);
  for (const double one : amax)
    result.scales.push_back(scale_of(format, one, result.tensor_scale));
  result.elements.resize(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    check_stop_at(i);
    const double scale = result.scales[walk.block()];
    const double whole = scale * result.tensor_scale;
    walk.next();
    result.elements[i] = std::isnan(scale) ? kNan
                         : scale == 0
                             ? 0
                             : round_to(format.element, numbers[i] / whole, inside, aid(i, whole));
    result.values[i] = result.elements[i] * whole;
  }
  return result;
}

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
