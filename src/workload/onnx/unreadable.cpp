// Says why the bytes of a file are no ONNX model (proto.hpp): empty, truncated, or of another
// format. parse.cpp calls it when the protobuf parser fails.
#include "base/shared/file_kind.hpp"
#include "workload/onnx/proto.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::onnx_file {

namespace {

/// Next base-128 varint, which is removed; nullopt if the bytes end before it does.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  constexpr unsigned kMaxShift = 63;
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift <= kMaxShift && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0)
      return value;
  }
  return std::nullopt;
}

/// Bytes that the model's field at the end of the file lacks; 0 if the fields end with the file or
/// are not those of a protobuf.
std::uint64_t missing_bytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto tag = take_varint(bytes);
    const auto wire = tag.value_or(0) & 7U;
    const auto length = take_varint(bytes); // or the value of a field that is a number
    if (!tag || !length)
      return 1;
    if (wire != 0 && wire != 2)
      return 0;
    const std::uint64_t size = wire == 2 ? *length : 0;
    if (size > bytes.size())
      return size - bytes.size();
    bytes.remove_prefix(size);
  }
  return 0;
}

bool is_text(std::string_view bytes) {
  constexpr std::size_t kBeginning = 4096;
  return std::ranges::all_of(bytes.substr(0, kBeginning), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
}

/// Text that names the kind of a YAML file; other text is only called so.
std::string describe_text(std::string_view bytes, const std::string& origin) {
  try {
    if (const auto kind = kind_of_file(parse_yaml(bytes, origin)))
      return fmt::format("this is not an ONNX model but a text file ({})", name_of_kind(*kind));
  } catch (const InputError&) { // no YAML
  }
  return "this is not an ONNX model but a text file";
}

} // namespace

void report_unreadable(std::string_view bytes, const std::string& origin) {
  const SourceLoc file{origin, 0, 0, {}};
  if (bytes.empty())
    throw InputError(file, "the file is empty, where an ONNX model is expected");
  const auto format = binary_format(bytes);
  if (format && format->is_onnx) {
    const std::uint64_t missing = missing_bytes(bytes);
    if (missing > 0)
      throw InputError(file,
                       fmt::format("the file ends in the middle of the ONNX model, after {} bytes",
                                   bytes.size()),
                       "copy, download or export it again");
    throw InputError(file, "this ONNX model is damaged (its protobuf cannot be parsed)",
                     "copy, download or export it again");
  }
  if (format)
    throw InputError(file, fmt::format("this is {}, not an ONNX model", format->name),
                     format->hint);
  throw InputError(file, is_text(bytes)
                             ? describe_text(bytes, origin)
                             : "this is not an ONNX model (its protobuf cannot be parsed)");
}

} // namespace monet::onnx_file
