// Dataset: statistics, scaling and augmentation of images. The training loop reads batches from it.
#include "monet/fit/dataset.hpp"

#include "base/shared/rng.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace monet {

namespace {

constexpr std::int64_t kByteValues = 256;
constexpr double kWhite = 255.0;
constexpr std::uint64_t kAugmentationTag =
    0xA06; ///< separates augmentations from shuffles of one seed

std::size_t place_of(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

double number_of(std::uint8_t byte) {
  return byte / kWhite;
}
double number_of(float number) {
  return number;
}

template <class Per>
double of_channel(const std::vector<Per>& numbers, std::int64_t channel, double none) {
  if (numbers.empty())
    return none;
  return numbers.size() == 1 ? numbers.front() : numbers[place_of(channel)];
}

/// Affine mapping of the pixels of one channel.
struct Scale {
  double mean = 0;
  double deviation = 1;

  double operator()(double number) const { return (number - mean) / deviation; }
};

Scale scale_of(const Normalisation& normalisation, std::int64_t channel) {
  return {of_channel(normalisation.mean, channel, 0),
          of_channel(normalisation.deviation, channel, 1)};
}

/// Scaled pixels of one channel; a table serves pixel types with few values.
template <class Pixel, class Real>
class Scaled;

template <class Real>
class Scaled<std::uint8_t, Real> {
public:
  explicit Scaled(const Scale& scale) {
    for (std::int64_t byte = 0; byte < kByteValues; ++byte)
      table_[place_of(byte)] = static_cast<Real>(scale(number_of(static_cast<std::uint8_t>(byte))));
  }
  Real operator()(std::uint8_t byte) const { return table_[byte]; }

private:
  std::array<Real, kByteValues> table_{};
};

template <class Real>
class Scaled<float, Real> {
public:
  explicit Scaled(const Scale& scale) : scale_(scale) {}
  Real operator()(float number) const { return static_cast<Real>(scale_(number)); }

private:
  Scale scale_;
};

/// Writes one channel of one image with its augmentation.
template <class Pixel, class Real>
void take_channel(const Pixel* from, const ImageShape& shape, const ImageChange& change,
                  const Scaled<Pixel, Real>& scaled, Real* to) {
  for (std::int64_t y = 0; y < shape.height; ++y) {
    const std::int64_t row = y + change.down;
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const std::int64_t column = (change.mirrored ? shape.width - 1 - x : x) + change.right;
      const bool inside = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
      *to++ = scaled(inside ? from[row * shape.width + column] : Pixel{});
    }
  }
}

bool fits(const std::vector<double>& numbers, std::int64_t channels) {
  return numbers.size() <= 1 || numbers.size() == place_of(channels);
}

template <class Real>
void fill(const Dataset& data, std::span<const std::int64_t> images, const ImageView& view,
          std::span<Real> numbers) {
  const std::int64_t size = data.shape.size();
  const Normalisation& normalisation = view.normalisation;
  internal_check(numbers.size() == images.size() * place_of(size), "a batch of another size");
  internal_check(fits(normalisation.mean, data.shape.channels) &&
                     fits(normalisation.deviation, data.shape.channels),
                 "a normalisation of other channels");
  std::vector<ImageChange> changes;
  for (const std::int64_t image : images) {
    internal_check(image >= 0 && image < data.size(), "an image that is not there");
    changes.push_back(change_of(view.augmentation, view.seed, view.epoch, image));
  }
  const auto take = [&]<class Pixel>(const std::vector<Pixel>& pixels) {
    const std::int64_t plane = data.shape.height * data.shape.width;
    for (std::int64_t channel = 0; channel < data.shape.channels; ++channel) {
      const Scaled<Pixel, Real> scaled(scale_of(normalisation, channel));
      for (std::size_t i = 0; i < images.size(); ++i)
        take_channel(pixels.data() + images[i] * size + channel * plane, data.shape, changes[i],
                     scaled,
                     numbers.data() + static_cast<std::int64_t>(i) * size + channel * plane);
    }
  };
  std::visit(take, data.pixels);
}

/// Calls use(number) for every pixel of a channel, image by image.
template <class Use>
void for_channel(const Dataset& data, std::int64_t channel, const Use& use) {
  const std::int64_t plane = data.shape.height * data.shape.width;
  const auto walk = [&](const auto& pixels) {
    for (std::int64_t image = 0; image < data.size(); ++image) {
      const auto* from = pixels.data() + image * data.shape.size() + channel * plane;
      for (std::int64_t i = 0; i < plane; ++i)
        use(number_of(from[i]));
    }
  };
  std::visit(walk, data.pixels);
}

} // namespace

double Dataset::pixel(std::int64_t image, std::int64_t place) const {
  return std::visit(
      [&](const auto& all) { return number_of(all[place_of(image * shape.size() + place)]); },
      pixels);
}

void verify(const Dataset& data) {
  const auto count = std::visit([](const auto& all) { return all.size(); }, data.pixels);
  internal_check(data.size() > 0 && data.shape.channels > 0 && data.shape.height > 0 &&
                     data.shape.width > 0,
                 "a data set without images");
  internal_check(count == data.labels.size() * place_of(data.shape.size()),
                 "pixels of another number of images than labels");
  for (const std::int32_t label : data.labels)
    internal_check(label >= 0 && label < data.classes, "a label of no class");
}

void keep_first(Dataset& data, std::int64_t count) {
  internal_check(count > 0 && count <= data.size(), "more images than there are");
  data.labels.resize(place_of(count));
  std::visit([&](auto& all) { all.resize(place_of(count * data.shape.size())); }, data.pixels);
}

Normalisation measure(const Dataset& data) {
  Normalisation result;
  const auto count = static_cast<double>(data.size() * data.shape.height * data.shape.width);
  for (std::int64_t channel = 0; channel < data.shape.channels; ++channel) {
    double sum = 0, squares = 0;
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for_channel(data, channel, [&](double number) {
      sum += number;
      least = std::min(least, number);
      most = std::max(most, number);
    });
    const double mean = sum / count;
    for_channel(data, channel,
                [&](double number) { squares += (number - mean) * (number - mean); });
    result.mean.push_back(mean);
    result.deviation.push_back(least < most ? std::sqrt(squares / count) : 1);
  }
  return result;
}

ImageChange change_of(const Augmentation& augmentation, std::uint64_t seed, std::int64_t epoch,
                      std::int64_t image) {
  const std::uint64_t of_epoch =
      random_bits(random_bits(seed, kAugmentationTag), static_cast<std::uint64_t>(epoch));
  RandomStream random(of_epoch, static_cast<std::uint64_t>(image));
  ImageChange change;
  change.mirrored = (random.bits() & 1) != 0 && augmentation.flip;
  const std::int64_t crop = augmentation.crop;
  const auto places = static_cast<std::uint64_t>(2 * crop + 1);
  change.down = static_cast<std::int64_t>(random.below(places)) - crop;
  change.right = static_cast<std::int64_t>(random.below(places)) - crop;
  return change;
}

void fill_images(const Dataset& data, std::span<const std::int64_t> images, const ImageView& view,
                 std::span<double> numbers) {
  fill(data, images, view, numbers);
}
void fill_images(const Dataset& data, std::span<const std::int64_t> images, const ImageView& view,
                 std::span<float> numbers) {
  fill(data, images, view, numbers);
}

std::vector<std::int64_t> labels_of(const Dataset& data, std::span<const std::int64_t> images) {
  std::vector<std::int64_t> labels;
  for (const std::int64_t image : images) {
    internal_check(image >= 0 && image < data.size(), "an image that is not there");
    labels.push_back(data.labels[place_of(image)]);
  }
  return labels;
}

} // namespace monet
