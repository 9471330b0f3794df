// What readers of image files hold their sizes and labels against.
#pragma once

#include "monet/fit/readers.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace monet {

/// InputError at a byte of a file.
[[noreturn]] void fail_at_byte(const SourceBytes& file, std::size_t byte, std::string_view what,
                               std::string_view hint = {});

/// Where the elements of an array are.
struct Elements {
  std::size_t begin = 0; ///< byte of the first
  std::size_t bytes = 1; ///< of one
};

/// N x H x W has one channel, N x C x H x W its own. InputError where the array has other
/// dimensions, no images, no pixels, or is not as long as the file.
ImageShape image_shape(const SourceBytes& file, std::span<const std::int64_t> dimensions,
                       const Elements& elements);

/// Labels in their order, and the number of classes where it was 0. `data` has its pixels already.
/// InputError where there are none or not as many as images, or one is no class.
void add_labels(Dataset& data, const SourceBytes& file, std::span<const std::int64_t> labels,
                std::int64_t images, std::int64_t classes);

} // namespace monet
