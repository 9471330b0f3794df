// Checks of sizes and labels in image files.
#pragma once

#include "fit/shared/readers.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace monet {

/// Throws InputError at a byte of a file.
[[noreturn]] void fail_at_byte(const SourceBytes& file, std::size_t byte, std::string_view what,
                               std::string_view hint = {});

/// Position of an array's elements in a file.
struct Elements {
  std::size_t begin = 0; ///< byte offset of the first element
  std::size_t bytes = 1; ///< bytes per element
};

/// Image shape of an array: N x H x W has one channel, N x C x H x W has C. InputError for other
/// dimensions, no images, no pixels, or a size that differs from the file's.
ImageShape image_shape(const SourceBytes& file, std::span<const std::int64_t> dimensions,
                       const Elements& elements);

/// Adds labels in their order, and the number of classes if it is 0. `data` must have its pixels.
/// InputError for no labels, a number of labels other than that of images, or a label that is no
/// class.
void add_labels(Dataset& data, const SourceBytes& file, std::span<const std::int64_t> labels,
                std::int64_t images, std::int64_t classes);

} // namespace monet
