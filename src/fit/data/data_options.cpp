// Reads `data:` of a training run into DataOptions. The study reader calls it.
#include "base/shared/text.hpp"

#include "monet/base/files.hpp"
#include "monet/fit/dataset.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace monet {

namespace {

constexpr std::array<std::string_view, 4> kFormats{"cifar10", "idx", "npy", "generated"};
constexpr std::int64_t kMaxImages = 1'000'000'000;
constexpr std::int64_t kMaxCrop = 4096;
constexpr std::int64_t kMaxChannelsNormalised = 65'536;

/// Names of files in a folder: the published names, or the names that our documents use.
struct FolderNames {
  std::vector<std::string> train, test;
};
FolderNames names_in_folder(DataFormat format) {
  switch (format) {
  case DataFormat::cifar10:
    return {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
             "data_batch_5.bin"},
            {"test_batch.bin"}};
  case DataFormat::idx:
    return {{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
            {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}};
  case DataFormat::npy:
    return {{"train_images.npy", "train_labels.npy"}, {"test_images.npy", "test_labels.npy"}};
  case DataFormat::generated:
    break;
  }
  return {};
}

class SectionReader {
public:
  SectionReader(const YamlNode& node, const std::string& path, ProblemList& problems)
      : map_(node, problems), path_(path), problems_(problems) {}

  DataOptions read() {
    if (!read_format())
      return options_; // the format determines the other keys
    if (options_.format == DataFormat::generated)
      read_shapes();
    else
      read_files();
    if (const YamlNode* augment = map_.find("augment"))
      read_augmentation(*augment);
    if (const YamlNode* normalise = map_.find("normalise"))
      read_normalisation(*normalise);
    map_.finish();
    return std::move(options_);
  }

private:
  bool read_format() {
    const YamlNode* node = map_.require("format");
    const auto name = node ? as_string(*node, problems_) : std::nullopt;
    if (!name)
      return false;
    const auto found = std::ranges::find(kFormats, *name);
    if (found == kFormats.end()) {
      const std::string hint =
          nearest_name_hint(*name, std::vector<std::string>(kFormats.begin(), kFormats.end()));
      problems_.add(node->where, fmt::format("unknown format '{}'", *name),
                    hint.empty() ? "cifar10, idx, npy or generated" : hint);
      return false;
    }
    options_.format = static_cast<DataFormat>(found - kFormats.begin());
    return true;
  }

  /// Reads an integer between a minimum and a maximum, with its position in the file.
  Located<std::int64_t> integer(YamlMap& map, std::string_view key, std::int64_t fallback,
                                std::int64_t least, std::int64_t most) {
    const YamlNode* node = map.find(key);
    if (node == nullptr)
      return {fallback, map.node().where};
    const auto value = as_integer(*node, problems_);
    if (value && *value >= least && *value <= most)
      return {*value, node->where};
    if (value)
      problems_.add(node->where, fmt::format("'{}' is {}, not {} to {}", key, *value, least, most));
    return {fallback, node->where};
  }

  std::string resolved(const YamlNode& node) {
    const auto file = as_string(node, problems_);
    if (file && file->empty())
      problems_.add(node.where, "expected the name of a file");
    return file && !file->empty() ? resolve_beside(path_, *file) : std::string();
  }

  void read_files() {
    options_.train = integer(map_, "train", 0, 1, kMaxImages);
    options_.test = integer(map_, "test", 0, 1, kMaxImages);
    if (options_.format != DataFormat::cifar10)
      options_.classes = integer(map_, "classes", 0, 2, kMaxClasses).value;
    const YamlNode* node = map_.require("path");
    if (node == nullptr)
      return;
    if (node->kind == YamlNode::Kind::map) {
      YamlMap both(*node, problems_);
      if (const YamlNode* train = both.require("train"))
        options_.train_files = read_set(*train);
      if (const YamlNode* test = both.require("test"))
        options_.test_files = read_set(*test);
      both.finish();
      return;
    }
    const std::string folder = resolved(*node);
    const FolderNames names = names_in_folder(options_.format);
    for (const std::string& name : names.train)
      options_.train_files.push_back(resolve_beside(folder + "/", name));
    for (const std::string& name : names.test)
      options_.test_files.push_back(resolve_beside(folder + "/", name));
  }

  /// Reads the image files of the training set or of the test set.
  std::vector<std::string> read_set(const YamlNode& node) {
    std::vector<std::string> files;
    if (options_.format == DataFormat::cifar10) {
      const std::vector<YamlNode> one{node};
      const bool many = node.kind == YamlNode::Kind::sequence;
      for (const YamlNode& item : many ? node.items : one)
        files.push_back(resolved(item));
      if (files.empty())
        problems_.add(node.where, "expected at least one file");
      return files;
    }
    YamlMap pair(node, problems_);
    for (const char* key : {"images", "labels"}) {
      const YamlNode* file = pair.require(key);
      files.push_back(file ? resolved(*file) : std::string());
    }
    pair.finish();
    return files;
  }

  void read_shapes() {
    constexpr std::int64_t kTrain = 5000, kTest = 1000;
    ShapesOptions& shapes = options_.shapes;
    ImageShape& size = shapes.shape;
    size.channels = integer(map_, "channels", size.channels, 1, kMaxDrawnChannels).value;
    size.height = integer(map_, "height", size.height, kMinDrawnSide, kMaxDrawnSide).value;
    size.width = integer(map_, "width", size.width, kMinDrawnSide, kMaxDrawnSide).value;
    shapes.classes = integer(map_, "classes", shapes.classes, 2, kShapeClasses).value;
    shapes.seed = static_cast<std::uint64_t>(
        integer(map_, "seed", 1, 0, std::numeric_limits<std::int64_t>::max()).value);
    shapes.noise = map_.number_or("noise", shapes.noise);
    if (!(shapes.noise >= 0 && shapes.noise <= 1))
      problems_.add(map_.find("noise")->where,
                    fmt::format("'noise' is {}, not 0 to 1", shapes.noise));
    const std::int64_t most = std::min(kMaxImages, kMaxPixelBytes / size.size());
    options_.train = integer(map_, "train", kTrain, 1, most);
    options_.test = integer(map_, "test", kTest, 1, most);
    if (std::max(kTrain, kTest) > most) {
      for (const char* key : {"train", "test"}) {
        if (!map_.has(key))
          problems_.add(map_.node().where, fmt::format("at most {} images of this size fit", most),
                        fmt::format("use a smaller '{}'", key));
      }
    }
  }

  void read_augmentation(const YamlNode& node) {
    YamlMap map(node, problems_);
    options_.augment.value.flip = map.boolean_or("flip", false);
    const Located<std::int64_t> crop = integer(map, "crop", 0, 0, kMaxCrop);
    options_.augment.value.crop = crop.value;
    options_.augment.where = crop.where;
    map.finish();
  }

  /// Reads one number, or one number per channel.
  std::vector<double> read_numbers(const YamlNode& node, std::string_view key) {
    std::vector<double> numbers;
    const std::vector<YamlNode> one{node};
    const bool many = node.kind == YamlNode::Kind::sequence;
    for (const YamlNode& item : many ? node.items : one) {
      const auto number = as_number(item, problems_);
      if (number && key == "deviation" && !(*number > 0))
        problems_.add(item.where, fmt::format("'{}' is {}, not above 0", key, *number));
      numbers.push_back(number.value_or(1));
    }
    if (numbers.empty() || numbers.size() > kMaxChannelsNormalised)
      problems_.add(node.where, fmt::format("'{}' has no number for each channel", key));
    return numbers;
  }

  void read_normalisation(const YamlNode& node) {
    options_.normalise.where = node.where;
    if (node.kind == YamlNode::Kind::scalar) {
      options_.measure_normalisation = node.scalar == "measured";
      if (!options_.measure_normalisation && node.scalar != "none")
        problems_.add(node.where, fmt::format("unknown normalisation '{}'", node.scalar),
                      "measured, none, or a map with 'mean' and 'deviation'");
      return;
    }
    YamlMap map(node, problems_);
    if (const YamlNode* mean = map.require("mean"))
      options_.normalise.value.mean = read_numbers(*mean, "mean");
    if (const YamlNode* deviation = map.require("deviation"))
      options_.normalise.value.deviation = read_numbers(*deviation, "deviation");
    map.finish();
  }

  YamlMap map_;
  const std::string& path_;
  ProblemList& problems_;
  DataOptions options_;
};

} // namespace

DataOptions read_data_options(const YamlNode& node, const std::string& path,
                              ProblemList& problems) {
  return SectionReader(node, path, problems).read();
}

} // namespace monet
