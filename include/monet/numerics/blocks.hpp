// Tensors in low precision: numbers of a format, alone or in blocks that share a scale
// (Open Compute Project 2023, "OCP microscaling formats (MX)", version 1.0).
#pragma once

#include "monet/numerics/rounding.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Vector instructions that the emulation may use; the same bits come out of all.
enum class Instructions { best, portable, avx2, avx512 };
std::optional<Instructions> instructions_named(std::string_view name);
/// Whether this machine has them.
bool is_available(Instructions instructions);
std::string_view name_of_best_instructions();

/// How a power of two is chosen as a block's scale from the largest magnitude in it, with `e` the
/// exponent of the format's largest number:
enum class ScaleMode {
  floor, ///< 2^(floor(log2 amax) - e), the OCP's: numbers up to twice the largest binade are cut
  ceil,  ///< 2^(ceil(log2 amax) - e)
  even,  ///< floor, of amax rounded to as many bits as the format has
  rceil, ///< the smallest under which amax is at most the largest number (NVIDIA's)
};
std::string_view name_of(ScaleMode mode);
std::optional<ScaleMode> scale_mode_named(std::string_view name);

/// Blocks of `rows` x `columns` elements along two axes, counted from the last where negative;
/// those at an edge are smaller. A tensor of one axis has one row.
struct BlockScaling {
  std::int64_t rows = 1;
  std::int64_t columns = 32;
  int row_axis = -2;
  int column_axis = -1;
  ScaleMode mode = ScaleMode::floor;
  /// Of the scale. None: a power of two, E8M0, whose code 255 makes all of the block NaN. Else
  /// amax / largest number, rounded to the format.
  std::optional<NumberFormat> scale;
  /// Two levels: scales are relative to one single-precision scale of the tensor, by which its
  /// largest magnitude has the largest scale and element.
  bool of_tensor = false;
  friend constexpr bool operator==(const BlockScaling&, const BlockScaling&) = default;
  friend constexpr auto operator<=>(const BlockScaling&,
                                    const BlockScaling&) = default; ///< for keys
};

struct TensorFormat {
  NumberFormat element;
  std::optional<BlockScaling> blocks;
  friend constexpr bool operator==(const TensorFormat&, const TensorFormat&) = default;
  friend constexpr auto operator<=>(const TensorFormat&,
                                    const TensorFormat&) = default; ///< for keys
};

/// A number format, or one in blocks: the six microscaling types (blocks of 1 x 32), nvfp4
/// (fp4_e2m1 in blocks of 1 x 16, scales in fp8_e4m3 and one of the tensor), fp8_e4m3 and fp8_e5m2
/// with _1x128 or _128x128 (single-precision scales). Nothing for other names.
std::optional<TensorFormat> parse_tensor_format(std::string_view name);
std::vector<std::string> common_tensor_format_names();
/// "1x32", "8x8": rows and columns, each at least 1; nothing for other texts.
std::optional<std::array<std::int64_t, 2>> parse_block_shape(std::string_view text);

/// Elements of a block along each of the last axes, the last one's last: "1x32" as {1, 32}; two of
/// them at most are above 1. At least two numbers, the first of more than two above 1.
std::vector<std::int64_t> extents_of(const BlockScaling& blocks);
/// The same with the extents that are not 1 along other axes (counted from the last: -1 or less).
/// Blocks that are a row or a column lie along `axis` alone; others with their rows along the outer
/// one of the two axes. `other` must differ from `axis`.
BlockScaling along(BlockScaling blocks, int axis, int other);
/// Blocks of one row or one column.
bool is_vector(const BlockScaling& blocks);
/// Of a vector: the axis that it lies along, counted from the last.
int axis_of_vector(const BlockScaling& blocks);

/// A tensor's numbers in a format. `values` are what codes and scales stand for, exactly where they
/// are powers of two, else rounded to double.
struct QuantisedTensor {
  std::vector<double> values;
  std::vector<double> elements;          ///< without scales; NaN in blocks that are NaN
  std::vector<std::int64_t> scale_shape; ///< of the blocks; empty without blocks
  std::vector<double> scales;            ///< NaN where the block is
  double tensor_scale = 1;               ///< what `scales` are relative to
};

/// Rounds a row-major tensor. In blocks what is too large is cut to the largest number whatever
/// `rounding` says, and integers do not use their most negative code unless `full_range`. Random
/// bits of the stochastic mode are those of (seed, `stream`, element). `before`: what the elements
/// were rounded to last, for hysteresis (empty: zeros). InternalError where numbers are not as many
/// as elements, or where the axes are none of the shape's.
QuantisedTensor quantise(std::span<const std::int64_t> shape, std::span<const double> numbers,
                         const TensorFormat& format, const Rounding& rounding = {},
                         bool full_range = false, std::uint64_t stream = 0,
                         std::span<const double> before = {});

/// The values of quantise() in place, without codes and scales, of a tensor in single precision: by
/// vectors and on `jobs` threads where the format, the blocks and the mode allow. The format's
/// numbers are all single-precision numbers, or InternalError.
void round_tensor(std::span<const std::int64_t> shape, std::span<float> numbers,
                  const TensorFormat& format, const Rounding& rounding = {},
                  std::uint64_t stream = 0, int jobs = 1,
                  Instructions instructions = Instructions::best);

/// The power of two by which a block with that largest magnitude is scaled, from 2^-127 to 2^127;
/// 0 counts as 2^-126 (as in Microsoft's microxcaling), infinity and NaN give NaN.
double power_scale(const NumberFormat& element, ScaleMode mode, double largest_magnitude);
/// The byte of such a scale: its exponent + 127, 255 for NaN.
std::uint8_t e8m0_code(double scale);

/// The code of an element of QuantisedTensor. Of NaN in blocks, whose scale says so, 0 where the
/// format has no code of its own; without blocks nothing.
std::optional<std::uint64_t> element_code(const TensorFormat& format, double element);
/// The code of a scale of QuantisedTensor: E8M0's byte, or that of the scales' format.
std::uint64_t scale_code(const BlockScaling& blocks, double scale);
int scale_bits(const BlockScaling& blocks);
/// Of whole blocks, with their share of the scale; without that of the tensor.
double bits_per_element(const TensorFormat& format);

} // namespace monet
