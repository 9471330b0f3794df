#include "fit/image_files.hpp"

#include "monet/base/files.hpp"
#include "monet/fit/dataset.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

DataOptions read(const std::string& text, const std::string& path = "runs/e.yaml") {
  ProblemList problems;
  DataOptions options = read_data_options(parse_yaml(text, path), path, problems);
  problems.throw_if_any();
  return options;
}
std::string problems_of(const std::string& text) {
  return error_of([&] { read(text); });
}

TEST(DataOptions, ReadFoldersOfPublishedSets) {
  const DataOptions cifar = read("{format: cifar10, path: ../cifar, train: 1_000, test: 10}");
  EXPECT_EQ(cifar.format, DataFormat::cifar10);
  EXPECT_EQ(cifar.train_files,
            (Names{"cifar/data_batch_1.bin", "cifar/data_batch_2.bin", "cifar/data_batch_3.bin",
                   "cifar/data_batch_4.bin", "cifar/data_batch_5.bin"}));
  EXPECT_EQ(cifar.test_files, Names{"cifar/test_batch.bin"});
  EXPECT_EQ(cifar.train.value, 1000);
  EXPECT_EQ(cifar.test.value, 10);
  const DataOptions idx = read("{format: idx, path: /mnist/, classes: 12}");
  EXPECT_EQ(idx.train_files,
            (Names{"/mnist/train-images-idx3-ubyte", "/mnist/train-labels-idx1-ubyte"}));
  EXPECT_EQ(idx.test_files,
            (Names{"/mnist/t10k-images-idx3-ubyte", "/mnist/t10k-labels-idx1-ubyte"}));
  EXPECT_EQ(idx.classes, 12);
  EXPECT_EQ(idx.train.value, 0);
  const DataOptions npy = read("{format: npy, path: .}");
  EXPECT_EQ(npy.train_files, (Names{"runs/train_images.npy", "runs/train_labels.npy"}));
  EXPECT_EQ(npy.test_files, (Names{"runs/test_images.npy", "runs/test_labels.npy"}));
}

TEST(DataOptions, ReadLists) {
  const DataOptions cifar = read("{format: cifar10, path: {train: [a.bin, /b.bin], test: c.bin}}");
  EXPECT_EQ(cifar.train_files, (Names{"runs/a.bin", "/b.bin"}));
  EXPECT_EQ(cifar.test_files, Names{"runs/c.bin"});
  const DataOptions npy = read("{format: npy, path: {train: {labels: l.npy, images: i.npy}, "
                               "test: {images: ti.npy, labels: tl.npy}}}");
  EXPECT_EQ(npy.train_files, (Names{"runs/i.npy", "runs/l.npy"}));
  EXPECT_EQ(npy.test_files, (Names{"runs/ti.npy", "runs/tl.npy"}));
}

TEST(DataOptions, ReadShapes) {
  const DataOptions usual = read("{format: generated}");
  EXPECT_EQ(usual.format, DataFormat::generated);
  EXPECT_EQ(usual.train.value, 5000);
  EXPECT_EQ(usual.test.value, 1000);
  EXPECT_EQ(usual.shapes.shape, (ImageShape{3, 16, 16}));
  EXPECT_EQ(usual.shapes.noise, 0.1);
  const DataOptions other = read("{format: generated, channels: 1, height: 20, width: 30, classes: "
                                 "4, noise: 0.25, seed: 77, train: 40, test: 8}");
  EXPECT_EQ(other.shapes.shape, (ImageShape{1, 20, 30}));
  EXPECT_EQ(other.shapes.classes, 4);
  EXPECT_EQ(other.shapes.noise, 0.25);
  EXPECT_EQ(other.shapes.seed, 77U);
  EXPECT_EQ(other.train.value, 40);
}

TEST(DataOptions, ReadAugmentationAndNormalisation) {
  const DataOptions none = read("{format: generated}");
  EXPECT_EQ(none.augment.value, Augmentation{});
  EXPECT_EQ(none.normalise.value, Normalisation{});
  EXPECT_FALSE(none.measure_normalisation);
  const DataOptions both = read("format: generated\naugment: {flip: true, crop: 4}\n"
                                "normalise: {mean: [0.5, 0, -1], deviation: 2}");
  EXPECT_EQ(both.augment.value, (Augmentation{true, 4}));
  EXPECT_EQ(both.normalise.value, (Normalisation{{0.5, 0, -1}, {2}}));
  EXPECT_EQ(both.normalise.where.line, 3);
  EXPECT_TRUE(read("{format: generated, normalise: measured}").measure_normalisation);
  EXPECT_EQ(read("{format: generated, normalise: none}").normalise.value, Normalisation{});
}

TEST(DataOptions, ReadTheDocumentsExample) {
  const std::string document = read_file(MONET_SOURCE_DIR "/docs/reference/image-data.md");
  const std::string fence = "```yaml\n";
  const std::size_t begin = document.find(fence) + fence.size();
  const std::string text = document.substr(begin, document.find("```\n", begin) - begin);
  ProblemList problems;
  const YamlNode root = parse_yaml(text, "docs/x.yaml");
  YamlMap map(root, problems);
  const DataOptions options = read_data_options(*map.require("data"), "docs/x.yaml", problems);
  map.finish();
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(options.test_files, Names{"data/cifar-10-batches-bin/test_batch.bin"});
  EXPECT_EQ(options.augment.value, (Augmentation{true, 4}));
  EXPECT_EQ(options.normalise.value.deviation, (std::vector<double>{0.2470, 0.2435, 0.2616}));
  // Where the table of errors says that they are.
  EXPECT_EQ(options.train.where.to_string(), "docs/x.yaml:4:10");
  EXPECT_EQ(options.augment.where.to_string(), "docs/x.yaml:6:31");
  EXPECT_EQ(options.normalise.where.to_string(), "docs/x.yaml:7:14");
}

struct Case {
  const char* text;
  const char* problem;
};

TEST(DataOptions, SayWhatIsWrong) {
  const Case cases[]{
      {"{}", "runs/e.yaml:1:1: key 'format' is missing"},
      {"[]", "runs/e.yaml:1:1: expected a map, found a list"},
      {"{format: cifar_10, path: x, trein: 3}",
       "runs/e.yaml:1:10: unknown format 'cifar_10' (did you mean 'cifar10'?)"},
      {"{format: png}", "runs/e.yaml:1:10: unknown format 'png' (cifar10, idx, npy or generated)"},
      {"{format: cifar10}", "runs/e.yaml:1:1: key 'path' is missing"},
      {"{format: cifar10, path: ''}", "runs/e.yaml:1:25: expected the name of a file"},
      {"{format: cifar10, path: x, trains: 3}",
       "runs/e.yaml:1:28: unknown key 'trains' (did you mean 'train'?)"},
      {"{format: cifar10, path: x, classes: 3}", "runs/e.yaml:1:28: unknown key 'classes'"},
      {"{format: cifar10, path: {train: []}}",
       "runs/e.yaml:1:33: expected at least one file\nruns/e.yaml:1:25: key 'test' is missing"},
      {"{format: cifar10, path: x, train: 0}",
       "runs/e.yaml:1:35: 'train' is 0, not 1 to 1000000000"},
      {"{format: cifar10, path: x, test: many}",
       "runs/e.yaml:1:34: expected an integer, found 'many'"},
      {"{format: idx, path: x, classes: 65537}",
       "runs/e.yaml:1:33: 'classes' is 65537, not 2 to 65536"},
      {"{format: npy, path: {train: {images: a}, test: {images: b, labels: c, label: d}}}",
       "runs/e.yaml:1:29: key 'labels' is missing\n"
       "runs/e.yaml:1:71: unknown key 'label' (did you mean 'labels'?)"},
      {"{format: generated, path: x}", "runs/e.yaml:1:21: unknown key 'path'"},
      {"{format: generated, height: 7}", "runs/e.yaml:1:29: 'height' is 7, not 8 to 4096"},
      {"{format: generated, noise: 1.5}", "runs/e.yaml:1:28: 'noise' is 1.5, not 0 to 1"},
      {"{format: generated, seed: -1}",
       "runs/e.yaml:1:27: 'seed' is -1, not 0 to 9223372036854775807"},
      {"{format: generated, channels: 64, height: 4096, width: 4096, train: 2}",
       "runs/e.yaml:1:1: at most 2 images of this size fit (use a smaller 'test')"},
      {"{format: generated, augment: {crop: -1}}", "runs/e.yaml:1:37: 'crop' is -1, not 0 to 4096"},
      {"{format: generated, augment: {flop: true}}",
       "runs/e.yaml:1:31: unknown key 'flop' (did you mean 'flip'?)"},
      {"{format: generated, normalise: yes}",
       "runs/e.yaml:1:32: unknown normalisation 'yes' (measured, none, or a map with 'mean' and "
       "'deviation')"},
      {"{format: generated, normalise: {mean: 0}}", "runs/e.yaml:1:32: key 'deviation' is missing"},
      {"{format: generated, normalise: {mean: .inf, deviation: [1, 0]}}",
       "runs/e.yaml:1:39: expected a number, found '.inf'\n"
       "runs/e.yaml:1:60: 'deviation' is 0, not above 0"},
      {"{format: generated, normalise: {mean: [], deviation: 1}}",
       "runs/e.yaml:1:39: 'mean' has no number for each channel"},
  };
  for (const Case& wrong : cases)
    EXPECT_EQ(problems_of(wrong.text), wrong.problem) << wrong.text;
}

/// A folder that goes with the test.
class Load : public testing::Test {
protected:
  Load() : folder_(fs::path(testing::TempDir()) / ("monet_data_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Load() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& bytes) {
    write_file_atomically((folder_ / name).string(), bytes);
  }
  TrainingData load(const std::string& text) {
    return load_data(read(text, (folder_ / "e.yaml").string()));
  }
  /// Without the folder's name.
  std::string failure(const std::string& text) {
    std::string message = error_of([&] { load(text); });
    const std::string name = folder_.string() + "/";
    for (std::size_t at = message.find(name); at != message.npos; at = message.find(name))
      message.erase(at, name.size());
    return message;
  }

  fs::path folder_;
};

TEST_F(Load, ReadsNoMoreCifarFilesThanNeeded) {
  write("data_batch_1.bin", cifar_record(1, 0) + cifar_record(2, 0));
  write("data_batch_2.bin", cifar_record(3, 0) + cifar_record(4, 9));
  write("test_batch.bin", cifar_record(5, 0));
  const TrainingData data =
      load("{format: cifar10, path: ., train: 3, normalise: measured, augment: {flip: true}}");
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(data.test.labels, std::vector<std::int32_t>{5});
  EXPECT_EQ(data.normalisation, measure(data.train));
  EXPECT_EQ(data.augmentation, (Augmentation{true, 0}));
  EXPECT_EQ(failure("{format: cifar10, path: .}"),
            "data_batch_3.bin: cannot be opened: No such file or directory");
  EXPECT_EQ(load("{format: cifar10, path: {train: [data_batch_2.bin, data_batch_1.bin], test: "
                 "test_batch.bin}}")
                .train.labels,
            (std::vector<std::int32_t>{3, 4, 1, 2}));
  EXPECT_EQ(failure("{format: cifar10, path: ., train: 3, test: 2}"),
            "e.yaml:1:44: 'test' requires 2 images, the files have 1");
  write("data_batch_2.bin", "?");
  EXPECT_EQ(failure("{format: cifar10, path: ., train: 3}").substr(0, 25),
            "data_batch_2.bin [byte 0]");
}

TEST_F(Load, ReadsPairs) {
  write("train-images-idx3-ubyte", idx_file(8, {3, 1, 2}, "abcdef"));
  write("train-labels-idx1-ubyte", idx_file(8, {3}, bytes_of({0, 3, 1})));
  write("t10k-images-idx3-ubyte", idx_file(8, {1, 1, 2}, "xy"));
  write("t10k-labels-idx1-ubyte", idx_file(8, {1}, bytes_of({2})));
  const TrainingData data = load("{format: idx, path: ., train: 2}");
  EXPECT_EQ(data.train.size(), 2);
  EXPECT_EQ(data.train.classes, 4);
  EXPECT_EQ(data.test.classes, 4);
  write("t10k-labels-idx1-ubyte", idx_file(8, {1}, bytes_of({4})));
  EXPECT_EQ(failure("{format: idx, path: .}"),
            "t10k-labels-idx1-ubyte [image 0]: label 4 is not one of 0 to 3");
  EXPECT_EQ(load("{format: idx, path: ., classes: 5}").test.classes, 5);
  write("t10k-images-idx3-ubyte", idx_file(8, {1, 2, 1}, "xy"));
  EXPECT_EQ(failure("{format: idx, path: ., classes: 5}"),
            "t10k-images-idx3-ubyte: images of 1 x 2 x 1, those for training are 1 x 1 x 2");
}

TEST_F(Load, ReadsArrays) {
  write("train_images.npy", npy_file("|u1", "(2, 1, 2)", "abcd"));
  write("train_labels.npy", npy_file("|u1", "(2,)", bytes_of({0, 1})));
  write("test_images.npy", npy_file("<f4", "(1, 1, 2)", std::string(8, '\0')));
  write("test_labels.npy", npy_file("|u1", "(1,)", bytes_of({1})));
  const TrainingData data = load("{format: npy, path: .}");
  EXPECT_EQ(data.train.pixel(1, 0), 'c' / 255.0);
  EXPECT_EQ(data.test.pixel(0, 0), 0);
}

TEST_F(Load, HoldsTheSectionAgainstTheImages) {
  const std::string small = "{format: generated, channels: 2, height: 9, width: 8, train: 6, test: "
                            "4, ";
  const TrainingData data =
      load(small + "augment: {crop: 7}, normalise: {mean: [1, 2], deviation: 3}}");
  EXPECT_EQ(data.train.size(), 6);
  EXPECT_EQ(data.test.labels, (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(data.normalisation, (Normalisation{{1, 2}, {3}}));
  EXPECT_EQ(failure(small + "augment: {crop: 8}}"),
            "e.yaml:1:90: 'crop' of 8 would leave nothing of images of 2 x 9 x 8");
  EXPECT_EQ(failure(small + "normalise: {mean: [1, 2, 3], deviation: 3}}"),
            "e.yaml:1:85: 3 numbers for images of 2 channels (one for all, or one for each "
            "channel)");
}

} // namespace
} // namespace monet::test
