// ElementType: types of tensor elements. A type is a number format alone or in blocks that share a
// scale, or an integer, boolean or text type.
// Example:
//   Bits storage_in(std::string_view type, std::int64_t elements) {
//     return storage_of(element_type_named(type).value_or(ElementType::fp32), elements);
//   }
//   Bits storage_of_weights() {
//     return storage_in("mxfp8_e4m3", 768 * 3072);
//   }
#pragma once

#include "monet/base/units.hpp"
#include "monet/numerics/blocks.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace monet {

/// Element type of a tensor, as a value.
class ElementType {
public:
  /// Kind of the type, for switches. Real types without a separate enumerator are `number`.
  enum class Kind : std::uint8_t {
    fp64,
    fp32,
    tf32,
    fp16,
    bf16,
    int64,
    int32,
    int16,
    int8,
    uint64,
    uint32,
    uint16,
    uint8,
    boolean,
    bit,
    string,
    qint8,
    number,
  };

  static const ElementType fp64;
  static const ElementType fp32;
  static const ElementType tf32;
  static const ElementType fp16;
  static const ElementType bf16;
  static const ElementType int64;
  static const ElementType int32;
  static const ElementType int16;
  static const ElementType int8;
  static const ElementType uint64;
  static const ElementType uint32;
  static const ElementType uint16;
  static const ElementType uint8;
  static const ElementType boolean;
  static const ElementType bit; ///< a boolean, eight to a byte
  static const ElementType string;
  static const ElementType qint8; ///< real numbers as 8-bit integers, one scale per tensor
  static const ElementType fp8_e4m3;
  static const ElementType fp8_e5m2;
  /// Integers in blocks of 32 elements along one axis (by default the last) that share an 8-bit
  /// scale.
  static const ElementType mxint8;
  static const ElementType mxfp8_e5m2; ///< blocks as in mxint8
  static const ElementType mxfp8_e4m3; ///< blocks as in mxint8
  static const ElementType mxfp6_e3m2; ///< blocks as in mxint8
  static const ElementType mxfp6_e2m3; ///< blocks as in mxint8
  static const ElementType mxfp4_e2m1; ///< blocks as in mxint8
  /// Blocks of 128 elements along the last axis that share a 32-bit scale (DeepSeek-AI 2024,
  /// "DeepSeek-V3 technical report").
  static const ElementType fp8_e4m3_1x128;
  static const ElementType fp8_e5m2_1x128; ///< blocks as in fp8_e4m3_1x128
  /// Blocks of 128 x 128 elements that share a 32-bit scale (DeepSeek-AI 2024, "DeepSeek-V3
  /// technical report").
  static const ElementType fp8_e4m3_128x128;
  static const ElementType fp8_e5m2_128x128; ///< blocks as in fp8_e4m3_128x128

  /// Makes single precision, fp32.
  constexpr ElementType() : ElementType(Kind::fp32, {kSinglePrecision, {}}) {}
  /// Makes a type of real numbers in a format; for formats of named types, it equals the named
  /// type.
  explicit ElementType(const TensorFormat& format);

  constexpr Kind kind() const { return kind_; }
  constexpr operator Kind() const { return kind_; }
  /// Format of real numbers; for other types, a format with the same number of bits.
  constexpr const TensorFormat& format() const { return format_; }
  friend constexpr bool operator==(const ElementType&, const ElementType&) = default;
  /// Arbitrary order for use in keys.
  friend constexpr std::strong_ordering operator<=>(const ElementType&,
                                                    const ElementType&) = default;

private:
  constexpr ElementType(Kind kind, TensorFormat format) : kind_(kind), format_(format) {}
  static constexpr ElementType whole(Kind kind, int bits, bool has_sign) {
    return {kind, {{false, 0, 0, bits, TopCodes::numbers, has_sign}, {}}};
  }
  static constexpr ElementType real(Kind kind, int exponent, int mantissa) {
    return {kind, {{true, exponent, mantissa, 0, TopCodes::ieee, true}, {}}};
  }
  static constexpr ElementType blocks(NumberFormat element, BlockScaling scaling) {
    return {Kind::number, {element, scaling}};
  }

  Kind kind_;
  TensorFormat format_;
};

namespace element_formats {
inline constexpr NumberFormat kE5M2{true, 5, 2, 0, TopCodes::ieee, true};
inline constexpr NumberFormat kE4M3{true, 4, 3, 0, TopCodes::nan, true};
inline constexpr NumberFormat kE3M2{true, 3, 2, 0, TopCodes::numbers, true};
inline constexpr NumberFormat kE2M3{true, 2, 3, 0, TopCodes::numbers, true};
inline constexpr NumberFormat kE2M1{true, 2, 1, 0, TopCodes::numbers, true};
inline constexpr NumberFormat kQ2x6{false, 0, 6, 2, TopCodes::numbers, true};
inline constexpr BlockScaling kMicroscaling{};
inline constexpr BlockScaling kRows128{.rows = 1, .columns = 128, .scale = kSinglePrecision};
inline constexpr BlockScaling kSquares128{.rows = 128, .columns = 128, .scale = kSinglePrecision};
} // namespace element_formats

inline constexpr ElementType ElementType::fp64 = real(Kind::fp64, 11, 52);
inline constexpr ElementType ElementType::fp32 = real(Kind::fp32, 8, 23);
inline constexpr ElementType ElementType::tf32 = real(Kind::tf32, 8, 10);
inline constexpr ElementType ElementType::fp16 = real(Kind::fp16, 5, 10);
inline constexpr ElementType ElementType::bf16 = real(Kind::bf16, 8, 7);
inline constexpr ElementType ElementType::int64 = whole(Kind::int64, 64, true);
inline constexpr ElementType ElementType::int32 = whole(Kind::int32, 32, true);
inline constexpr ElementType ElementType::int16 = whole(Kind::int16, 16, true);
inline constexpr ElementType ElementType::int8 = whole(Kind::int8, 8, true);
inline constexpr ElementType ElementType::uint64 = whole(Kind::uint64, 64, false);
inline constexpr ElementType ElementType::uint32 = whole(Kind::uint32, 32, false);
inline constexpr ElementType ElementType::uint16 = whole(Kind::uint16, 16, false);
inline constexpr ElementType ElementType::uint8 = whole(Kind::uint8, 8, false);
inline constexpr ElementType ElementType::boolean = whole(Kind::boolean, 8, false);
inline constexpr ElementType ElementType::bit = whole(Kind::bit, 1, false);
inline constexpr ElementType ElementType::string = whole(Kind::string, 64, false);
inline constexpr ElementType ElementType::qint8 = whole(Kind::qint8, 8, true);
inline constexpr ElementType ElementType::fp8_e4m3{Kind::number, {element_formats::kE4M3, {}}};
inline constexpr ElementType ElementType::fp8_e5m2{Kind::number, {element_formats::kE5M2, {}}};
inline constexpr ElementType ElementType::mxint8 =
    blocks(element_formats::kQ2x6, element_formats::kMicroscaling);
inline constexpr ElementType ElementType::mxfp8_e5m2 =
    blocks(element_formats::kE5M2, element_formats::kMicroscaling);
inline constexpr ElementType ElementType::mxfp8_e4m3 =
    blocks(element_formats::kE4M3, element_formats::kMicroscaling);
inline constexpr ElementType ElementType::mxfp6_e3m2 =
    blocks(element_formats::kE3M2, element_formats::kMicroscaling);
inline constexpr ElementType ElementType::mxfp6_e2m3 =
    blocks(element_formats::kE2M3, element_formats::kMicroscaling);
inline constexpr ElementType ElementType::mxfp4_e2m1 =
    blocks(element_formats::kE2M1, element_formats::kMicroscaling);
inline constexpr ElementType ElementType::fp8_e4m3_1x128 =
    blocks(element_formats::kE4M3, element_formats::kRows128);
inline constexpr ElementType ElementType::fp8_e5m2_1x128 =
    blocks(element_formats::kE5M2, element_formats::kRows128);
inline constexpr ElementType ElementType::fp8_e4m3_128x128 =
    blocks(element_formats::kE4M3, element_formats::kSquares128);
inline constexpr ElementType ElementType::fp8_e5m2_128x128 =
    blocks(element_formats::kE5M2, element_formats::kSquares128);

/// Bits of one element, without a shared scale. boolean has 8 bits, as frameworks store it; tf32
/// has 32.
std::int64_t bits_of(ElementType type);
/// Elements that share a scale, and the scale's size; {1, 0} for types without scales.
struct BlockFormat {
  /// Elements of a block along its row.
  std::int64_t size = 1;
  std::int64_t scale_bits = 0;
  std::int64_t rows = 1; ///< rows of `size` elements; 1 in vectors with power-of-two scales
  /// Whether scales are stored separately from the elements, and blocks at an edge are not padded.
  bool separate_scales = false;
};
/// Block format of a type.
BlockFormat block_of(ElementType type);
/// Bits of one element inside a core, including its share of a scale that is stored with it,
/// rounded up.
std::int64_t core_bits_of(ElementType type);
/// Storage of `elements` elements of a tensor, with the scales of the blocks that contain them.
Bits storage_of(ElementType type, std::int64_t elements);
std::string name_of(ElementType type);
/// Parses the name of an element type; nullopt for other names. Names are "fp32", "int64", ..., any
/// number format ("e5m2", "q8.13"), and block formats. A block format may have a suffix with
/// another shape (extents along the last axes) and scale mode ("mxfp8_e4m3_8x8_rceil").
std::optional<ElementType> element_type_named(std::string_view name);
/// Whether the type has real numbers: formats alone and in blocks, and scaled integers.
bool is_floating(ElementType type);

} // namespace monet
