// Checks sizes and labels of image files against their headers. All dataset readers call it.
#include "fit/data/check.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace monet {

void fail_at_byte(const SourceBytes& file, std::size_t byte, std::string_view what,
                  std::string_view hint) {
  throw InputError({file.origin, 0, 0, fmt::format("byte {}", byte)}, what, hint);
}

ImageShape image_shape(const SourceBytes& file, std::span<const std::int64_t> dimensions,
                       const Elements& elements) {
  const std::string sizes = dimensions.empty() ? std::string("no dimension")
                                               : fmt::format("{}", fmt::join(dimensions, " x "));
  const auto fail = [&](std::size_t byte, std::string_view what) {
    fail_at_byte(file, byte, fmt::format("images of {} {}", sizes, what));
  };
  if (dimensions.size() != 3 && dimensions.size() != 4)
    fail(elements.begin, "are neither N x H x W nor N x C x H x W");
  const std::size_t available = file.bytes.size() - elements.begin;
  auto left = static_cast<std::int64_t>(available / elements.bytes);
  std::size_t needed = elements.bytes; // lower bound of the bytes needed, without overflow
  for (const std::int64_t size : dimensions) {
    if (size <= 0)
      fail(elements.begin, "have no pixels");
    left /= size; // largest remaining product that fits
    needed *= left > 0 ? static_cast<std::size_t>(size) : 1;
  }
  if (left == 0)
    fail(file.bytes.size(), fmt::format("are more than the {} bytes that are there", available));
  if (needed != available)
    fail(elements.begin + needed,
         fmt::format("end before the file: {} bytes follow", available - needed));
  const bool grey = dimensions.size() == 3;
  return {grey ? 1 : dimensions[1], dimensions[grey ? 1 : 2], dimensions[grey ? 2 : 3]};
}

void add_labels(Dataset& data, const SourceBytes& file, std::span<const std::int64_t> labels,
                std::int64_t images, std::int64_t classes) {
  const SourceLoc where{file.origin, 0, 0, ""};
  if (labels.empty())
    throw InputError(where, "there are no labels");
  if (labels.size() != static_cast<std::size_t>(images))
    throw InputError(where, fmt::format("{} labels for {} images", labels.size(), images));
  const std::int64_t end = classes > 0 ? classes : kMaxClasses;
  std::int64_t largest = 0;
  data.labels.reserve(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= end)
      throw InputError({file.origin, 0, 0, fmt::format("image {}", i)},
                       fmt::format("label {} is not one of 0 to {}", labels[i], end - 1));
    largest = std::max(largest, labels[i]);
    data.labels.push_back(static_cast<std::int32_t>(labels[i]));
  }
  data.classes = classes > 0 ? classes : largest + 1;
}

void append(Dataset& data, const Dataset& more, const std::string& origin) {
  internal_check(data.shape == more.shape && data.classes == more.classes &&
                     data.pixels.index() == more.pixels.index(),
                 "images of another kind");
  const auto add = [&]<class Pixel>(std::vector<Pixel>& pixels) {
    const auto& added = std::get<std::vector<Pixel>>(more.pixels);
    const std::size_t bytes = (pixels.size() + added.size()) * sizeof(Pixel);
    if (bytes > static_cast<std::size_t>(kMaxPixelBytes))
      throw InputError(
          {origin, 0, 0, ""},
          fmt::format("with this file, images need more than {} bytes", kMaxPixelBytes));
    pixels.insert(pixels.end(), added.begin(), added.end());
  };
  std::visit(add, data.pixels);
  data.labels.insert(data.labels.end(), more.labels.begin(), more.labels.end());
}

} // namespace monet
