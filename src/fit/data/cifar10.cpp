// Reads the binary version of CIFAR-10. load.cpp calls it for `format: cifar10`.
#include "fit/data/check.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

constexpr ImageShape kCifarShape{3, 32, 32};
constexpr std::int64_t kCifarClasses = 10;
constexpr std::size_t kCifarPixels = 3 * 32 * 32;
constexpr std::size_t kRecord = 1 + kCifarPixels;

} // namespace

Dataset parse_cifar10(const SourceBytes& file) {
  const std::string_view bytes = file.bytes;
  if (bytes.empty())
    fail_at_byte(file, 0, "there are no records");
  const std::size_t records = bytes.size() / kRecord;
  if (bytes.size() % kRecord != 0)
    fail_at_byte(
        file, records * kRecord,
        fmt::format("record {} has {} bytes of {}", records, bytes.size() % kRecord, kRecord),
        "CIFAR-10's binary version has records of 1 + 3072 bytes");
  std::vector<std::uint8_t> pixels;
  pixels.reserve(records * kCifarPixels);
  Dataset data{kCifarShape, kCifarClasses, {}, {}};
  for (std::size_t record = 0; record < records; ++record) {
    const std::size_t begin = record * kRecord;
    const auto label = static_cast<unsigned char>(bytes[begin]);
    if (label >= kCifarClasses)
      fail_at_byte(file, begin,
                   fmt::format("label {} of record {} is not one of 0 to 9", label, record));
    data.labels.push_back(label);
    const std::string_view image = bytes.substr(begin + 1, kCifarPixels);
    pixels.insert(pixels.end(), image.begin(), image.end());
  }
  data.pixels = std::move(pixels);
  return data;
}

} // namespace monet
