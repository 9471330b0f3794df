// Images with labels, in memory: what readers make of files, what `generated` draws, and how a
// batch of them becomes the numbers that a network is fed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace monet {

/// Most bytes that the pixels of one data set may take: 2 GiB.
inline constexpr std::int64_t kMaxPixelBytes = std::int64_t{1} << 31;
/// Most classes that labels may name.
inline constexpr std::int64_t kMaxClasses = 65'536;

struct ImageShape {
  std::int64_t channels = 0;
  std::int64_t height = 0; ///< rows of pixels
  std::int64_t width = 0;  ///< pixels of a row

  /// Pixels of an image, each channel counted.
  std::int64_t size() const { return channels * height * width; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

struct Dataset {
  ImageShape shape;
  std::int64_t classes = 0; ///< labels are 0 .. classes - 1
  /// Row-major [image][channel][row][column]. A byte b stands for b / 255; floats are finite and
  /// stand for themselves.
  std::variant<std::vector<std::uint8_t>, std::vector<float>> pixels;
  std::vector<std::int32_t> labels; ///< one an image

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  /// The number that a pixel stands for, of 0 .. shape.size() - 1.
  double pixel(std::int64_t image, std::int64_t place) const;
};

/// InternalError unless there are images, as many pixels as the shape says, and labels below the
/// number of classes.
void verify(const Dataset& data);

/// Keeps the first `count` images; InternalError when there are fewer.
void keep_first(Dataset& data, std::int64_t count);

/// (number - mean) / deviation. One number of each for every channel, or one for all; none: as it
/// is.
struct Normalisation {
  std::vector<double> mean;
  std::vector<double> deviation; ///< above 0

  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

/// Mean and standard deviation (of the population) of each channel over all images. A channel
/// without variation has deviation 1.
Normalisation measure(const Dataset& data);

/// How images are changed at random when they are taken: He et al. 2016, section 4.2.
struct Augmentation {
  bool flip = false;     ///< mirrored left to right, one of two
  std::int64_t crop = 0; ///< a window of the image's size anywhere in the image with so many pixels
                         ///< of 0 (before normalisation) on every side

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// What an augmentation does to one image: pixel (y, x) is the image's (y + down, x' + right),
/// with x' = x, or width - 1 - x where it is mirrored, and 0 outside of the image.
struct ImageChange {
  bool mirrored = false;
  std::int64_t down = 0;  ///< of -crop .. crop
  std::int64_t right = 0; ///< of -crop .. crop

  friend bool operator==(const ImageChange&, const ImageChange&) = default;
};

/// Depends on these alone: neither on the batch that an image is in nor on the machine.
ImageChange change_of(const Augmentation& augmentation, std::uint64_t seed, std::int64_t epoch,
                      std::int64_t image);

/// How the images of a batch are taken.
struct ImageView {
  Normalisation normalisation;
  Augmentation augmentation; ///< none for tests
  std::uint64_t seed = 0;    ///< of the augmentation
  std::int64_t epoch = 0;    ///< counted as the caller likes
};

/// The numbers of these images, row-major [image][channel][row][column], in their order; an image
/// may be there twice. InternalError where `numbers` has another size, an image is not there, or
/// the normalisation has other channels.
void fill_images(const Dataset& data, std::span<const std::int64_t> images, const ImageView& view,
                 std::span<double> numbers);
void fill_images(const Dataset& data, std::span<const std::int64_t> images, const ImageView& view,
                 std::span<float> numbers);
/// Their labels.
std::vector<std::int64_t> labels_of(const Dataset& data, std::span<const std::int64_t> images);

inline constexpr std::int64_t kShapeClasses = 10;
inline constexpr std::int64_t kMinDrawnSide = 8, kMaxDrawnSide = 4096; ///< pixels
inline constexpr std::int64_t kMaxDrawnChannels = 64;
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
/// are out of their ranges or the pixels beyond kMaxPixelBytes.
Dataset draw_shapes(const ShapesOptions& options, std::int64_t first, std::int64_t count,
                    int jobs = 0);

/// 0 .. count - 1 in random order (Fisher, Yates 1938), by the seed and the epoch alone: the same
/// on any machine.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

/// Images of a batch, always as many as a batch has.
struct ImageBatch {
  std::vector<std::int64_t> images;
  std::int64_t counted = 0; ///< the first so many are results; what follows only fills the batch
};

/// Consecutive batches of an epoch's order. What is left over at the end, less than a batch, is
/// dropped: another epoch has it elsewhere. InfeasibleError where there is no batch at all.
std::vector<ImageBatch> training_batches(std::span<const std::int64_t> order,
                                         std::int64_t batch_size);

/// Images 0 .. count - 1 in this order. The last batch is filled with the first images again, from
/// 0 and over again where there are not enough of them, which are not counted: the sum of `counted`
/// is `count`.
std::vector<ImageBatch> test_batches(std::int64_t count, std::int64_t batch_size);

} // namespace monet
