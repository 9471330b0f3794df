// Readers of images: what is read holds its invariants, and a batch can be filled with it.
#include "fit/shared/readers.hpp"
#include "readers/readers.hpp"

#include <algorithm>

namespace monet::fuzz {

namespace {

void fill_first(const Dataset& data) {
  verify(data);
  ImageView view;
  view.augmentation = {true, 1};
  view.normalisation = measure(data);
  const std::vector<std::int64_t> images{0, data.size() - 1};
  std::vector<float> numbers(2 * static_cast<std::size_t>(data.shape.size()));
  fill_images(data, images, view, std::span<float>(numbers));
  labels_of(data, images);
}

/// Two files in one: the first byte says how many of the last are the labels'.
struct Pair {
  SourceBytes images{"images", {}}, labels{"labels", {}};
};
Pair split(std::string_view bytes) {
  Pair pair;
  if (bytes.empty())
    return pair;
  const std::size_t wanted = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  const std::size_t images = bytes.size() - std::min(wanted, bytes.size());
  pair.images.bytes = bytes.substr(0, images);
  pair.labels.bytes = bytes.substr(images);
  return pair;
}

} // namespace

void read_cifar10(std::string_view bytes) {
  fill_first(parse_cifar10({"fuzz.bin", bytes}));
}

void read_idx(std::string_view bytes) {
  const Pair pair = split(bytes);
  fill_first(parse_idx(pair.images, pair.labels, 0));
}

void read_npy_images(std::string_view bytes) {
  const Pair pair = split(bytes);
  fill_first(parse_npy_images(pair.images, pair.labels, 0));
}

} // namespace monet::fuzz
