// The `data:` part of an experiment, and the loading of its images; docs/reference/image-data.md
// describes every key.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/fit/dataset.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace monet {

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
