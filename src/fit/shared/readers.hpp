// Readers of image files. For any input bytes they return images or throw an InputError that names
// the file and the byte or image. Sizes in a header are checked against the number of bytes before
// anything is allocated.
#pragma once

#include "monet/fit/dataset.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace monet {

/// A file's contents, with its name for messages.
struct SourceBytes {
  std::string origin;
  std::string_view bytes;
};

/// Reads CIFAR-10's binary format (Krizhevsky 2009): records of a label byte, 0 to 9, and 3 x 32 x
/// 32 bytes; at least one record.
Dataset parse_cifar10(const SourceBytes& file);

/// Reads a pair of IDX files (LeCun, Cortes, Burges: MNIST): images of N x H x W or N x C x H x W
/// bytes, and N label bytes. Labels are below `classes`; 0 classes: one more than the largest
/// label.
Dataset parse_idx(const SourceBytes& images, const SourceBytes& labels, std::int64_t classes);

/// Reads a pair of NumPy arrays: images of N x C x H x W or N x H x W unsigned bytes or floats of 4
/// or 8 bytes, and N integers. Labels are below `classes`; 0 classes: one more than the largest
/// label.
Dataset parse_npy_images(const SourceBytes& images, const SourceBytes& labels,
                         std::int64_t classes);

/// Appends the images of another file. Throws InternalError if its shape or number of classes
/// differs, and InputError at `origin` if the sum exceeds kMaxPixelBytes.
void append(Dataset& data, const Dataset& more, const std::string& origin);

} // namespace monet
