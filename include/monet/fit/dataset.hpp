// Image data sets with labels, in memory, read from files or generated, and the conversion of a
// batch to the numbers that a network reads.
// Example:
//   std::vector<double> first_batch() {
//     const Dataset data = draw_shapes({}, 0, 256);
//     const ImageBatch batch = training_batches(epoch_order(256, 1, 0), 32).front();
//     std::vector<double> numbers(32 * static_cast<std::size_t>(data.shape.size()));
//     fill_images(data, batch.images, {measure(data), {}}, numbers);
//     return numbers;
//   }
#pragma once

#include "monet/base/yaml.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace monet {

/// Maximum size of the pixels of a data set: 2 GiB.
inline constexpr std::int64_t kMaxPixelBytes = std::int64_t{1} << 31;
/// Maximum number of classes.
inline constexpr std::int64_t kMaxClasses = 65'536;

/// Shape of an image.
struct ImageShape {
  std::int64_t channels = 0;
  std::int64_t height = 0; ///< number of rows of pixels
  std::int64_t width = 0;  ///< number of pixels per row

  /// Number of values of an image: pixels times channels.
  std::int64_t size() const { return channels * height * width; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

/// Labelled images of one shape.
struct Dataset {
  ImageShape shape;
  std::int64_t classes = 0; ///< labels are 0 .. classes - 1
  /// Values, row-major [image][channel][row][column]. A byte b stands for b / 255; floats are
  /// finite and stand for themselves.
  std::variant<std::vector<std::uint8_t>, std::vector<float>> pixels;
  std::vector<std::int32_t> labels; ///< one per image

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  /// Value of an image at index `place`, 0 .. shape.size() - 1.
  double pixel(std::int64_t image, std::int64_t place) const;
};

/// Throws InternalError unless the data set has images, the number of pixels matches the shape, and
/// all labels are below the number of classes.
void verify(const Dataset& data);

/// Keeps the first `count` images; throws InternalError if there are fewer.
void keep_first(Dataset& data, std::int64_t count);

/// Normalisation (number - mean) / deviation. `mean` and `deviation` have one number per channel or
/// one for all channels; empty: no normalisation.
struct Normalisation {
  std::vector<double> mean;
  std::vector<double> deviation; ///< positive

  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

/// Mean and (population) standard deviation of each channel over all images. A constant channel has
/// deviation 1.
Normalisation measure(const Dataset& data);

/// Random augmentation of images: He et al. 2016, section 4.2.
struct Augmentation {
  bool flip = false; ///< mirror half of the images left to right
  /// Random crop: margin in pixels. A window of the image's size is cut from the image padded by
  /// this number of zeros (before normalisation) on every side.
  std::int64_t crop = 0;

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// Augmentation of one image: pixel (y, x) of the result is (y + down, x' + right) of the image,
/// with x' = x, or width - 1 - x if it is mirrored. Pixels outside of the image are 0.
struct ImageChange {
  bool mirrored = false;
  std::int64_t down = 0;  ///< offset in -crop .. crop
  std::int64_t right = 0; ///< offset in -crop .. crop

  friend bool operator==(const ImageChange&, const ImageChange&) = default;
};

/// Augmentation of image `image` in an epoch. Depends only on the arguments, not on the batch or
/// the machine.
ImageChange change_of(const Augmentation& augmentation, std::uint64_t seed, std::int64_t epoch,
                      std::int64_t image);

/// Preprocessing of the images of a batch.
struct ImageView {
  Normalisation normalisation;
  Augmentation augmentation; ///< none for tests
  std::uint64_t seed = 0;    ///< seed of the augmentation
  std::int64_t epoch = 0;    ///< numbered by the caller
};

/// Writes the preprocessed values of images, row-major [image][channel][row][column], in the given
/// order; an image may occur twice. Throws InternalError if `numbers` has a wrong size, an image
/// does not exist, or the normalisation has a wrong number of channels.
void fill_images(const Dataset& data, std::span<const std::int64_t> images, const ImageView& view,
                 std::span<double> numbers);
/// Writes the preprocessed values in single precision; errors as above.
void fill_images(const Dataset& data, std::span<const std::int64_t> images, const ImageView& view,
                 std::span<float> numbers);
/// Labels of images, in the given order.
std::vector<std::int64_t> labels_of(const Dataset& data, std::span<const std::int64_t> images);

inline constexpr std::int64_t kShapeClasses = 10;
inline constexpr std::int64_t kMinDrawnSide = 8, kMaxDrawnSide = 4096; ///< pixels
inline constexpr std::int64_t kMaxDrawnChannels = 64;
/// Number of the first generated test image; training images start from 0. It is a multiple of
/// every possible number of classes.
inline constexpr std::int64_t kFirstTestImage = 2'520'000'000;

/// Options of generated images.
struct ShapesOptions {
  ImageShape shape{3, 16, 16};          ///< within the limits above
  std::int64_t classes = kShapeClasses; ///< number of shapes used, at least 2
  /// Standard deviation of the noise added to every pixel, relative to the range from black to
  /// white: 0 to 1.
  double noise = 0.1;
  std::uint64_t seed = 1;
};

/// Generates images first .. first + count - 1 of a seed, on up to `jobs` threads (0: all cores).
/// Image i has label i modulo classes. Its position, size, rotation (up to 14 degrees), colours and
/// noise depend only on the seed, i, the image shape and the noise. All arithmetic is on integers,
/// so the bytes are identical on every machine. Colours differ by 96 of 255 in at least one
/// channel. Throws InternalError if options are out of range or the pixels exceed kMaxPixelBytes.
Dataset draw_shapes(const ShapesOptions& options, std::int64_t first, std::int64_t count,
                    int jobs = 0);

/// Random permutation of 0 .. count - 1 (Fisher, Yates 1938); depends only on the seed and the
/// epoch, on any machine.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

/// A batch of images; every batch has the same size.
struct ImageBatch {
  std::vector<std::int64_t> images;
  std::int64_t counted = 0; ///< number of images that count; the rest only fills the batch
};

/// Consecutive batches of an epoch's order. An incomplete batch at the end is dropped; another
/// epoch has other images there. Throws InfeasibleError if no complete batch exists.
std::vector<ImageBatch> training_batches(std::span<const std::int64_t> order,
                                         std::int64_t batch_size);

/// Batches of images 0 .. count - 1, in this order. The last batch is filled up with images from 0
/// on, repeatedly if necessary, which are not counted: the sum of `counted` is `count`.
std::vector<ImageBatch> test_batches(std::int64_t count, std::int64_t batch_size);

/// Format of the data set.
enum class DataFormat { cifar10, idx, npy, generated };

/// A value with its position in the file.
template <class Value>
struct Located {
  Value value{};
  SourceLoc where;
};

/// The `data:` part of an experiment.
struct DataOptions {
  DataFormat format = DataFormat::generated;
  /// Paths as they are opened. cifar10: any number of files; idx and npy: images, labels;
  /// generated: none.
  std::vector<std::string> train_files, test_files;
  Located<std::int64_t> train, test; ///< number of images, from the beginning; 0: all
  std::int64_t classes = 0; ///< number of classes (idx, npy); 0: one more than the largest label
  ShapesOptions shapes;     ///< options of generated images
  Located<Augmentation> augment; ///< augmentation of training images
  Located<Normalisation> normalise;
  bool measure_normalisation = false; ///< use mean and deviation of the training images
};

/// Reads the section. Paths in it are relative to the folder of `path`, the file with the section.
/// Errors are added to `problems`; the options are then invalid.
DataOptions read_data_options(const YamlNode& node, const std::string& path, ProblemList& problems);

/// Training and test images with their preprocessing.
struct TrainingData {
  Dataset train, test; ///< data sets of the same shape and number of classes
  Augmentation augmentation;
  Normalisation normalisation;
};

/// Reads or generates the images, on up to `jobs` threads (0: all cores). Throws InputError if a
/// file cannot be read, has the wrong format or too few images, or does not match the other files
/// or the rest of the section.
TrainingData load_data(const DataOptions& options, int jobs = 0);

} // namespace monet
