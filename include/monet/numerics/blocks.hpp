// Tensors in low precision: quantisation to a number format, alone or in blocks that share a scale
// (Open Compute Project 2023, "OCP microscaling formats (MX)", version 1.0).
// Example:
//   std::vector<double> round_to_mxfp8(std::span<const double> matrix, std::int64_t columns) {
//     const std::int64_t rows = static_cast<std::int64_t>(matrix.size()) / columns;
//     const std::array<std::int64_t, 2> shape{rows, columns};
//     return quantise(shape, matrix, parse_tensor_format("mxfp8_e4m3").value()).values;
//   }
#pragma once

#include "monet/numerics/format.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Vector instructions that the emulation may use; all of them produce the same bits.
enum class Instructions { best, portable, avx2, avx512 };
/// Parses the name of an instruction set; nullopt for an unknown name.
std::optional<Instructions> instructions_named(std::string_view name);
/// Whether this machine supports the instructions.
bool is_available(Instructions instructions);
/// Name of the fastest instruction set that this machine supports.
std::string_view name_of_best_instructions();

/// Rule that chooses a block's power-of-two scale from amax, the largest magnitude in the block.
/// Below, e is the exponent of the format's largest number.
enum class ScaleMode {
  /// 2^(floor(log2 amax) - e), as in the OCP standard; larger elements saturate, up to twice the
  /// largest binade.
  floor,
  ceil,  ///< 2^(ceil(log2 amax) - e)
  even,  ///< as floor, after rounding amax to the precision of the format
  rceil, ///< smallest scale at which amax does not exceed the largest number (NVIDIA's)
};
std::string_view name_of(ScaleMode mode);
/// Parses the name of a scale mode; nullopt for an unknown name.
std::optional<ScaleMode> scale_mode_named(std::string_view name);

/// Blocks of `rows` x `columns` elements along two axes, negative axes counting from the last.
/// Blocks at an edge are smaller. A tensor with one axis has one row.
struct BlockScaling {
  std::int64_t rows = 1;
  std::int64_t columns = 32;
  int row_axis = -2;
  int column_axis = -1;
  ScaleMode mode = ScaleMode::floor;
  /// Format of the scale, to which amax / largest number is rounded. nullopt: a power of two in
  /// E8M0, whose code 255 makes the whole block NaN.
  std::optional<NumberFormat> scale;
  /// Whether scales have two levels. If so, they are relative to one single-precision scale of the
  /// tensor, chosen so that its largest magnitude has the largest scale and element.
  bool of_tensor = false;
  friend constexpr bool operator==(const BlockScaling&, const BlockScaling&) = default;
  friend constexpr auto operator<=>(const BlockScaling&,
                                    const BlockScaling&) = default; ///< for keys
};

/// Format of a tensor: the format of its elements and, optionally, the blocks that share a scale.
struct TensorFormat {
  NumberFormat element;
  /// Blocks that share a scale; nullopt: elements are not scaled.
  std::optional<BlockScaling> blocks;
  friend constexpr bool operator==(const TensorFormat&, const TensorFormat&) = default;
  friend constexpr auto operator<=>(const TensorFormat&,
                                    const TensorFormat&) = default; ///< for keys
};

/// Parses the name of a number format or a block format; nullopt for other names. Block formats
/// are:
/// - the six microscaling types: blocks of 1 x 32;
/// - nvfp4: fp4_e2m1 in blocks of 1 x 16, with scales in fp8_e4m3 and one scale of the tensor;
/// - fp8_e4m3 and fp8_e5m2 with the suffix _1x128 or _128x128: single-precision scales.
std::optional<TensorFormat> parse_tensor_format(std::string_view name);
/// Names of common tensor formats, for hints and messages.
std::vector<std::string> common_tensor_format_names();
/// Parses rows and columns such as "1x32" or "8x8", each at least 1; nullopt for other texts.
std::optional<std::array<std::int64_t, 2>> parse_block_shape(std::string_view text);

/// Extents of a block along the trailing axes of a tensor, outermost first: {1, 32} for "1x32".
/// There are at least two extents, of which at most two are above 1. If there are more than two,
/// the first is above 1.
std::vector<std::int64_t> extents_of(const BlockScaling& blocks);
/// Returns the blocks with their extents along other axes, counted from the last (-1 or less).
/// Vector blocks lie along `axis` alone. Other blocks have their rows along the outer one of `axis`
/// and `other`, which must differ.
BlockScaling along(BlockScaling blocks, int axis, int other);
/// Whether a block has one row or one column.
bool is_vector(const BlockScaling& blocks);
/// Axis along which vector blocks lie, counted from the last (-1 or less).
int axis_of_vector(const BlockScaling& blocks);

/// A tensor's numbers in a format.
struct QuantisedTensor {
  /// Numbers that codes and scales represent: exact for power-of-two scales, else rounded to
  /// double.
  std::vector<double> values;
  std::vector<double> elements;          ///< without scales; NaN in NaN blocks
  std::vector<std::int64_t> scale_shape; ///< shape of the array of blocks; empty without blocks
  std::vector<double> scales;            ///< per block; NaN in NaN blocks
  double tensor_scale = 1;               ///< scale that `scales` are relative to
};

/// How quantise() rounds.
struct QuantiseOptions {
  Rounding rounding;       ///< in blocks, elements that are too large saturate in any case
  bool full_range = false; ///< integers in blocks also use their most negative code
  std::uint64_t stream =
      0; ///< random bits of the stochastic mode depend on (seed, stream, element)
  /// Last rounded values of the elements, for hysteresis; empty: zeros.
  std::span<const double> before;
};

/// Quantises a row-major tensor. Throws InternalError if the shape does not match the number of
/// elements, or if it lacks an axis of the blocks.
QuantisedTensor quantise(std::span<const std::int64_t> shape, std::span<const double> numbers,
                         const TensorFormat& format, const QuantiseOptions& options = {});

/// How round_tensor() runs.
struct RoundTensorOptions {
  std::uint64_t stream = 0; ///< as in QuantiseOptions
  int jobs = 1;             ///< maximum number of threads
  Instructions instructions = Instructions::best;
};

/// Replaces the numbers of a single-precision tensor by the values of quantise(), without codes and
/// scales. It uses vector instructions and threads where the format, the blocks and the mode allow.
/// Throws InternalError if the format has numbers that single precision lacks.
void round_tensor(std::span<const std::int64_t> shape, std::span<float> numbers,
                  const TensorFormat& format, const Rounding& rounding = {},
                  const RoundTensorOptions& options = {});

/// Power-of-two scale, from 2^-127 to 2^127, of a block with that largest magnitude. A magnitude of
/// 0 counts as 2^-126 (as in Microsoft's microxcaling); infinity and NaN yield NaN.
double power_scale(const NumberFormat& element, ScaleMode mode, double largest_magnitude);
/// E8M0 code of a power-of-two scale: its exponent + 127, or 255 for NaN.
std::uint8_t e8m0_code(double scale);

/// Code of an element of QuantisedTensor. If the format has no code for NaN, NaN yields 0 in
/// blocks, whose scale is NaN, and nullopt without blocks.
std::optional<std::uint64_t> element_code(const TensorFormat& format, double element);
/// Code of a scale of QuantisedTensor: a byte of E8M0, or a code of the scales' format.
std::uint64_t scale_code(const BlockScaling& blocks, double scale);
/// Bits of the code of one scale.
int scale_bits(const BlockScaling& blocks);
/// Bits per element of full blocks, including their share of the block's scale but not the
/// tensor's.
double bits_per_element(const TensorFormat& format);

} // namespace monet
