// Element types of tensors: names, widths and number formats. Graph, readers and cost models use
// them.
#include "monet/workload/element_type.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/names.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

namespace monet {

namespace {

using NamedType = Named<ElementType>;

constexpr std::array kNamedTypes{
    NamedType{"fp64", ElementType::fp64},
    NamedType{"fp32", ElementType::fp32},
    NamedType{"tf32", ElementType::tf32},
    NamedType{"fp16", ElementType::fp16},
    NamedType{"bf16", ElementType::bf16},
    NamedType{"int64", ElementType::int64},
    NamedType{"int32", ElementType::int32},
    NamedType{"int16", ElementType::int16},
    NamedType{"int8", ElementType::int8},
    NamedType{"uint64", ElementType::uint64},
    NamedType{"uint32", ElementType::uint32},
    NamedType{"uint16", ElementType::uint16},
    NamedType{"uint8", ElementType::uint8},
    NamedType{"bool", ElementType::boolean},
    NamedType{"bit", ElementType::bit},
    NamedType{"string", ElementType::string},
    NamedType{"qint8", ElementType::qint8},
    NamedType{"fp8_e4m3", ElementType::fp8_e4m3},
    NamedType{"fp8_e5m2", ElementType::fp8_e5m2},
    NamedType{"mxint8", ElementType::mxint8},
    NamedType{"mxfp8_e5m2", ElementType::mxfp8_e5m2},
    NamedType{"mxfp8_e4m3", ElementType::mxfp8_e4m3},
    NamedType{"mxfp6_e3m2", ElementType::mxfp6_e3m2},
    NamedType{"mxfp6_e2m3", ElementType::mxfp6_e2m3},
    NamedType{"mxfp4_e2m1", ElementType::mxfp4_e2m1},
    NamedType{"fp8_e4m3_1x128", ElementType::fp8_e4m3_1x128},
    NamedType{"fp8_e5m2_1x128", ElementType::fp8_e5m2_1x128},
    NamedType{"fp8_e4m3_128x128", ElementType::fp8_e4m3_128x128},
    NamedType{"fp8_e5m2_128x128", ElementType::fp8_e5m2_128x128},
};

constexpr std::int64_t kPowerScaleBits = 8; ///< E8M0
constexpr std::size_t kMaxBlockAxes = 8;    ///< of blocks

/// Splits a text at its last underscore into two parts.
std::pair<std::string_view, std::string_view> split_last(std::string_view text) {
  const std::size_t at = text.rfind('_');
  if (at == text.npos)
    return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

/// Parses "8x8" or "8x1x8x1": block extents along the last axes, at most two of them above 1.
std::optional<BlockScaling> parse_extents(std::string_view text, BlockScaling like) {
  std::vector<std::int64_t> extents;
  while (true) {
    const std::size_t end = text.find('x');
    const auto pair = parse_block_shape(std::string(text.substr(0, end)) + "x1");
    if (!pair || extents.size() == kMaxBlockAxes)
      return std::nullopt;
    extents.push_back((*pair)[0]);
    if (end == text.npos)
      break;
    text.remove_prefix(end + 1);
  }
  if (extents.size() < 2 || (extents.size() > 2 && extents.front() == 1))
    return std::nullopt;
  if (extents.size() == 2) {
    like.rows = extents[0];
    like.columns = extents[1];
    return like;
  }
  std::vector<int> axes;
  like.rows = like.columns = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1)
      continue;
    (axes.empty() ? like.rows : like.columns) = extents[i];
    axes.push_back(static_cast<int>(i) - static_cast<int>(extents.size()));
  }
  if (axes.size() > 2)
    return std::nullopt;
  return along(like, axes.front(), axes.back());
}

/// Parses a format followed by the shape of its blocks: "mxfp8_e4m3_8x8".
std::optional<TensorFormat> parse_shaped(std::string_view name) {
  const auto [front, back] = split_last(name);
  auto format = parse_tensor_format(front);
  if (!format)
    return std::nullopt;
  const auto blocks = parse_extents(back, format->blocks.value_or(BlockScaling{}));
  if (!blocks)
    return std::nullopt;
  format->blocks = blocks;
  return format;
}

/// Parses a block format with an optional scale mode at the end: "mxfp8_e4m3_8x8_rceil".
std::optional<TensorFormat> parse_blocks(std::string_view name) {
  const auto [front, back] = split_last(name);
  const auto mode = scale_mode_named(back);
  if (!mode)
    return parse_shaped(name);
  auto format = parse_tensor_format(front);
  if (!format)
    format = parse_shaped(front);
  if (!format || !format->blocks || format->blocks->scale)
    return std::nullopt;
  format->blocks->mode = *mode;
  return format;
}

/// Name composed from the format, block shape and scale mode, for blocks without a fixed name.
std::string name_of_blocks(TensorFormat format) {
  if (format.blocks->mode != ScaleMode::floor) {
    const auto mode = name_of(format.blocks->mode);
    format.blocks->mode = ScaleMode::floor;
    return fmt::format("{}_{}", name_of(ElementType(format)), mode);
  }
  const auto shape = [&] { return fmt::format("_{}", fmt::join(extents_of(*format.blocks), "x")); };
  for (const std::string& name : common_tensor_format_names()) {
    auto known = parse_tensor_format(name);
    if (known == format)
      return name;
    if (!known || !known->blocks)
      continue;
    known->blocks->rows = format.blocks->rows;
    known->blocks->columns = format.blocks->columns;
    known->blocks->row_axis = format.blocks->row_axis;
    known->blocks->column_axis = format.blocks->column_axis;
    if (known == format)
      return name + shape();
  }
  return name_of(format.element) + shape();
}

} // namespace

ElementType::ElementType(const TensorFormat& format) : ElementType(Kind::number, format) {
  for (const NamedType& known : kNamedTypes) {
    if (is_floating(known.value) && known.value.kind() != Kind::qint8 &&
        known.value.format() == format) {
      *this = known.value;
      return;
    }
  }
}

std::int64_t bits_of(ElementType type) {
  return type == ElementType::tf32 ? 32 : type.format().element.bits();
}
BlockFormat block_of(ElementType type) {
  const auto& blocks = type.format().blocks;
  if (!blocks)
    return {};
  if (is_vector(*blocks) && !blocks->scale)
    return {blocks->rows * blocks->columns, kPowerScaleBits, 1, false};
  if (!blocks->scale)
    return {blocks->columns, kPowerScaleBits, blocks->rows, true};
  return {blocks->columns, blocks->scale->bits(), blocks->rows, true};
}
std::int64_t core_bits_of(ElementType type) {
  const BlockFormat block = block_of(type);
  return bits_of(type) + (block.separate_scales ? 0 : ceil_div(block.scale_bits, block.size));
}
Bits storage_of(ElementType type, std::int64_t elements) {
  const BlockFormat block = block_of(type);
  const std::int64_t numbers = checked_multiply(elements, bits_of(type));
  const std::int64_t scales =
      block.scale_bits == 0 ? 0 : ceil_div(elements, block.size * block.rows) * block.scale_bits;
  return {checked_add(numbers, scales)};
}

std::string name_of(ElementType type) {
  if (const auto known = name_in(kNamedTypes, type); !known.empty())
    return std::string(known);
  return type.format().blocks ? name_of_blocks(type.format()) : name_of(type.format().element);
}

std::optional<ElementType> element_type_named(std::string_view name) {
  if (const auto known = value_named(kNamedTypes, name))
    return *known == ElementType::string ? std::nullopt : known;
  if (name.starts_with("int") || name.starts_with("uint")) // no other integer widths
    return std::nullopt;
  auto format = parse_tensor_format(name);
  if (!format)
    format = parse_blocks(name);
  constexpr std::int64_t kLargestBlock = 1 << 20;
  if (!format || !is_emulated(format->element) ||
      (format->blocks &&
       (format->blocks->rows > kLargestBlock || format->blocks->columns > kLargestBlock)))
    return std::nullopt;
  return ElementType(*format);
}

bool is_floating(ElementType type) {
  switch (type.kind()) {
  case ElementType::Kind::fp64:
  case ElementType::Kind::fp32:
  case ElementType::Kind::tf32:
  case ElementType::Kind::fp16:
  case ElementType::Kind::bf16:
  case ElementType::Kind::qint8:
  case ElementType::Kind::number:
    return true;
  default:
    return false;
  }
}

} // namespace monet
