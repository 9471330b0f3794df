// A data set without files: drawn shapes, which a small convolutional network learns and a linear
// classifier does not.
#pragma once

#include "monet/train/dataset.hpp"

#include <cstdint>
#include <string_view>

namespace monet {

inline constexpr std::int64_t kShapeClasses = 10;
inline constexpr std::int64_t kLeastDrawnSide = 8, kMostDrawnSide = 4096; ///< pixels
inline constexpr std::int64_t kMostDrawnChannels = 64;
/// Test images are numbered from here, training images from 0. A multiple of all numbers of
/// classes.
inline constexpr std::int64_t kFirstTestImage = 2'520'000'000;

struct ShapesOptions {
  ImageShape shape{3, 16, 16};          ///< within the limits above
  std::int64_t classes = kShapeClasses; ///< the first so many, at least 2
  /// Standard deviation of what is added to every pixel, as a share of the range from black to
  /// white: 0 to 1.
  double noise = 0.1;
  std::uint64_t seed = 1;
};

/// Images first .. first + count - 1 of a seed. Image i has label i modulo classes; all else of it
/// (place, size, rotation by up to 14 degrees, colours, noise) follows from the seed, i, the shape
/// of images and the noise, by integers alone: the same bytes on any machine. Colours differ by 96
/// of 255 in some channel. On up to `jobs` threads, 0: all cores. InternalError where the options
/// are out of their ranges or the pixels beyond kMostPixelBytes.
Dataset draw_shapes(const ShapesOptions& options, std::int64_t first, std::int64_t count,
                    int jobs = 0);

} // namespace monet
