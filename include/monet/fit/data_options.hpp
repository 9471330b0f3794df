// The `data:` part of an experiment, and the images it names; docs/reference/image-data.md
// describes every key.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/fit/dataset.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace monet {

enum class DataFormat { cifar10, idx, npy, generated };

/// A value, and where the file says it.
template <class Value>
struct Located {
  Value value{};
  SourceLoc where;
};

struct DataOptions {
  DataFormat format = DataFormat::generated;
  /// As they are opened. cifar10: any number of files; idx and npy: images, labels; generated:
  /// none.
  std::vector<std::string> train_files, test_files;
  Located<std::int64_t> train, test; ///< the first so many images of the files; 0: all
  std::int64_t classes = 0;          ///< of idx and npy; 0: one more than the largest label
  ShapesOptions shapes;              ///< of generated
  Located<Augmentation> augment;     ///< of images for training
  Located<Normalisation> normalise;
  bool measure_normalisation = false; ///< mean and deviation are those of the images for training
};

/// Reads the section; paths in it are seen from the folder of `path`, the file with the section.
/// What is wrong is added to the problems, and the options are then not to be used.
DataOptions read_data_options(const YamlNode& node, const std::string& path, ProblemList& problems);

struct TrainingData {
  Dataset train, test; ///< of one shape and as many classes
  Augmentation augmentation;
  Normalisation normalisation;
};

/// Reads or draws the images, on up to `jobs` threads (0: all cores). InputError where a file
/// cannot be read or is none of its format, has fewer images than asked for, or does not fit the
/// others or the rest of the section.
TrainingData load_data(const DataOptions& options, int jobs = 0);

} // namespace monet
