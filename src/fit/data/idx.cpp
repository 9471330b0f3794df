// Reads images and labels in the IDX format of MNIST. load.cpp calls it for `format: idx`.
#include "base/shared/names.hpp"
#include "fit/data/check.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kSizeBytes = 4;
constexpr unsigned kUnsignedByte = 0x08;

unsigned byte_at(std::string_view bytes, std::size_t place) {
  return static_cast<unsigned char>(bytes[place]);
}

/// Unsupported element types, by their code.
constexpr std::array kOtherTypes{
    Named<unsigned>{"signed bytes", 0x09}, Named<unsigned>{"integers of 2 bytes", 0x0B},
    Named<unsigned>{"integers of 4 bytes", 0x0C}, Named<unsigned>{"floats of 4 bytes", 0x0D},
    Named<unsigned>{"floats of 8 bytes", 0x0E}};

/// Header of an IDX file of unsigned bytes.
struct IdxArray {
  std::vector<std::int64_t> dimensions;
  std::size_t data = 0; ///< byte offset of the elements
};

/// Parses the magic number: two zeros, the element type, the number of dimensions. Returns the
/// last.
std::size_t parse_magic(const SourceBytes& file) {
  const std::string_view bytes = file.bytes;
  if (bytes.size() < kMagicBytes)
    fail_at_byte(file, bytes.size(), "the file ends before its magic number");
  if (byte_at(bytes, 0) == 0x1F && byte_at(bytes, 1) == 0x8B)
    fail_at_byte(file, 0, "the file is compressed", "unpack it with gunzip");
  if (byte_at(bytes, 0) != 0 || byte_at(bytes, 1) != 0)
    fail_at_byte(file, 0, "not an IDX file: it does not begin with two zeros");
  const unsigned type = byte_at(bytes, 2);
  const std::string_view other = name_in(kOtherTypes, type);
  if (type != kUnsignedByte)
    fail_at_byte(file, 2,
                 other.empty() ? fmt::format("0x{:02X} is not a type of elements", type)
                               : fmt::format("elements are {}, not unsigned bytes", other));
  return byte_at(bytes, 3);
}

IdxArray parse_header(const SourceBytes& file) {
  const std::string_view bytes = file.bytes;
  IdxArray array;
  const std::size_t dimensions = parse_magic(file);
  array.data = kMagicBytes + dimensions * kSizeBytes;
  if (bytes.size() < array.data)
    fail_at_byte(file, bytes.size(),
                 fmt::format("the file ends before the sizes of its {} dimensions", dimensions));
  for (std::size_t begin = kMagicBytes; begin < array.data; begin += kSizeBytes) {
    std::int64_t size = 0;
    for (std::size_t i = 0; i < kSizeBytes; ++i)
      size = size << 8 | byte_at(bytes, begin + i); // big-endian
    array.dimensions.push_back(size);
  }
  return array;
}

} // namespace

Dataset parse_idx(const SourceBytes& images, const SourceBytes& labels, std::int64_t classes) {
  const IdxArray pixels = parse_header(images);
  Dataset set;
  set.shape = image_shape(images, pixels.dimensions, {pixels.data, 1});
  const IdxArray named = parse_header(labels);
  if (named.dimensions.size() != 1)
    fail_at_byte(labels, 3,
                 fmt::format("labels have {} dimensions, not 1", named.dimensions.size()));
  const std::string_view bytes = labels.bytes.substr(named.data);
  if (bytes.size() != static_cast<std::uint64_t>(named.dimensions.front()))
    fail_at_byte(labels, named.data,
                 fmt::format("{} labels are expected, {} are there", named.dimensions.front(),
                             bytes.size()));
  std::vector<std::int64_t> numbers;
  numbers.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    numbers.push_back(byte_at(bytes, i));
  add_labels(set, labels, numbers, pixels.dimensions.front(), classes);
  const std::string_view data = images.bytes.substr(pixels.data);
  set.pixels = std::vector<std::uint8_t>(data.begin(), data.end());
  return set;
}

} // namespace monet
