// Loads the images of a run from its DataOptions; the training loop calls it once.
#include "fit/shared/readers.hpp"

#include "monet/base/files.hpp"
#include "monet/fit/dataset.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

std::string text_of(const ImageShape& shape) {
  return fmt::format("{} x {} x {}", shape.channels, shape.height, shape.width);
}

/// Loads files in order until `enough` images are read; 0 loads all files.
Dataset load_cifar10(const std::vector<std::string>& files, std::int64_t enough) {
  Dataset data;
  for (const std::string& file : files) {
    const std::string bytes = read_file(file);
    Dataset more = parse_cifar10({file, bytes});
    if (data.size() == 0)
      data = std::move(more);
    else
      append(data, more, file);
    if (enough > 0 && data.size() >= enough)
      break;
  }
  return data;
}

Dataset load_pair(const DataOptions& options, const std::vector<std::string>& files,
                  std::int64_t classes) {
  internal_check(files.size() == 2, "a data set of other than two files");
  const std::string images = read_file(files[0]);
  const std::string labels = read_file(files[1]);
  const SourceBytes of_images{files[0], images}, of_labels{files[1], labels};
  return options.format == DataFormat::idx ? parse_idx(of_images, of_labels, classes)
                                           : parse_npy_images(of_images, of_labels, classes);
}

/// Loads the training or the test images; `most` limits their number, as in the file's section.
Dataset load_set(const DataOptions& options, const std::vector<std::string>& files,
                 const Located<std::int64_t>& most, std::string_view key, std::int64_t classes) {
  Dataset data = options.format == DataFormat::cifar10 ? load_cifar10(files, most.value)
                                                       : load_pair(options, files, classes);
  if (most.value > data.size())
    throw InputError(most.where, fmt::format("'{}' requires {} images, the files have {}", key,
                                             most.value, data.size()));
  if (most.value > 0)
    keep_first(data, most.value);
  return data;
}

void check_crop(const DataOptions& options, const ImageShape& shape) {
  const std::int64_t crop = options.augment.value.crop;
  if (crop >= std::min(shape.height, shape.width))
    throw InputError(
        options.augment.where,
        fmt::format("'crop' of {} would leave nothing of images of {}", crop, text_of(shape)));
}

void check_channels(const DataOptions& options, const ImageShape& shape) {
  const Normalisation& normalise = options.normalise.value;
  for (const std::vector<double>* numbers : {&normalise.mean, &normalise.deviation}) {
    const auto count = static_cast<std::int64_t>(numbers->size());
    if (count > 1 && count != shape.channels)
      throw InputError(options.normalise.where,
                       fmt::format("{} numbers for images of {} channels", count, shape.channels),
                       "one for all, or one for each channel");
  }
}

} // namespace

TrainingData load_data(const DataOptions& options, int jobs) {
  TrainingData data;
  if (options.format == DataFormat::generated) {
    data.train = draw_shapes(options.shapes, 0, options.train.value, jobs);
    data.test = draw_shapes(options.shapes, kFirstTestImage, options.test.value, jobs);
  } else {
    data.train = load_set(options, options.train_files, options.train, "train", options.classes);
    data.test = load_set(options, options.test_files, options.test, "test", data.train.classes);
  }
  if (data.test.shape != data.train.shape)
    throw InputError({options.test_files.front(), 0, 0, ""},
                     fmt::format("images of {}, those for training are {}",
                                 text_of(data.test.shape), text_of(data.train.shape)));
  verify(data.train);
  verify(data.test);
  check_crop(options, data.train.shape);
  check_channels(options, data.train.shape);
  data.augmentation = options.augment.value;
  data.normalisation =
      options.measure_normalisation ? measure(data.train) : options.normalise.value;
  return data;
}

} // namespace monet
