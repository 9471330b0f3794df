// Reads images and labels from .npy files. load.cpp calls it for `format: npy`.
#include "base/shared/npy.hpp"
#include "fit/data/check.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace monet {

namespace {

/// Bytes per element; 0 for types that images cannot have.
std::size_t bytes_of(std::string_view type) {
  if (type == "u1")
    return 1;
  if (type == "f4")
    return sizeof(float);
  return type == "f8" ? sizeof(double) : 0;
}

template <class Element>
std::vector<float> float_pixels(const SourceBytes& file, const NpyLayout& layout) {
  constexpr double kMax = std::numeric_limits<float>::max();
  const std::string_view bytes = file.bytes.substr(layout.data);
  std::vector<float> pixels(bytes.size() / sizeof(Element));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    Element element;
    std::memcpy(&element, bytes.data() + i * sizeof(Element), sizeof(Element));
    if (!(std::abs(double{element}) <= kMax)) // rejects NaN, too
      fail_at_byte(file, layout.data + i * sizeof(Element),
                   fmt::format("pixel {} is not a number of single precision", element));
    pixels[i] = static_cast<float>(element);
  }
  return pixels;
}

NpyLayout parse_images(const SourceBytes& file) {
  NpyLayout layout = npy_layout(file.bytes, file.origin);
  const SourceLoc where{file.origin, 0, 0, ""};
  if (bytes_of(layout.type) == 0)
    throw InputError(where, fmt::format("images of elements '{}' are not read", layout.type),
                     "save them as uint8, float32 or float64");
  if (layout.column_major && layout.shape.size() > 1)
    throw InputError(where, "images are stored column by column",
                     "save numpy.ascontiguousarray(images)");
  return layout;
}

std::vector<std::int64_t> parse_labels(const SourceBytes& file) {
  NpyArray array = parse_npy(file.bytes, file.origin);
  const SourceLoc where{file.origin, 0, 0, ""};
  if (array.is_real)
    throw InputError(where, "labels are floats, not integers");
  if (array.shape.size() != 1)
    throw InputError(where, fmt::format("labels have {} dimensions, not 1", array.shape.size()));
  return std::move(array.whole);
}

} // namespace

Dataset parse_npy_images(const SourceBytes& images, const SourceBytes& labels,
                         std::int64_t classes) {
  const NpyLayout layout = parse_images(images);
  const std::size_t element = bytes_of(layout.type);
  Dataset data;
  data.shape = image_shape(images, layout.shape, {layout.data, element});
  add_labels(data, labels, parse_labels(labels), layout.shape.front(), classes);
  if (element == sizeof(double)) {
    data.pixels = float_pixels<double>(images, layout);
  } else if (element == sizeof(float)) {
    data.pixels = float_pixels<float>(images, layout);
  } else {
    const std::string_view bytes = images.bytes.substr(layout.data);
    data.pixels = std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  }
  return data;
}

} // namespace monet
