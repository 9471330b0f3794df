// Readers of image files: whatever the bytes are, the answer is the images they hold or an
// InputError that names the file and the byte or image. Nothing is allocated on the word of a
// header: sizes are held against the bytes that are there.
#pragma once

#include "monet/fit/dataset.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace monet {

/// A file's bytes, and its name for messages.
struct SourceBytes {
  std::string origin;
  std::string_view bytes;
};

/// CIFAR-10's binary format (Krizhevsky 2009): records of a label byte, 0 to 9, and 3 x 32 x 32
/// bytes. At least one record.
Dataset parse_cifar10(const SourceBytes& file);

/// A pair of IDX files (LeCun, Cortes, Burges: MNIST): bytes of N x H x W or N x C x H x W, and N
/// label bytes. Labels are below `classes`; 0 classes: one more than the largest.
Dataset parse_idx(const SourceBytes& images, const SourceBytes& labels, std::int64_t classes);

/// A pair of NumPy arrays: unsigned bytes or floats of 4 or 8 bytes, N x C x H x W or N x H x W,
/// and N integers. Labels are below `classes`; 0 classes: one more than the largest.
Dataset parse_npy_images(const SourceBytes& images, const SourceBytes& labels,
                         std::int64_t classes);

/// Adds the images of another file; InternalError where its shape or classes differ. InputError at
/// `origin` where all take more than kMaxPixelBytes.
void append(Dataset& data, const Dataset& more, const std::string& origin);

} // namespace monet
