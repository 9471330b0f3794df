// A perceptron on a handful of drawn images, as files: what the tests of the loop train.
#pragma once

#include "workload/models.hpp"

#include "monet/base/files.hpp"
#include "monet/fit/run.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>

namespace monet::test {

/// images [batch, 1, 8, 8] -> 5 hidden ReLUs -> 3 scores.
inline std::string perceptron() {
  ModelMaker model;
  model.input("images", {-1, 1, 8, 8}).output("scores");
  model.weight("w", {5, 64}).weight("b", {5}).weight("v", {3, 5}).weight("c", {3});
  model.node("Flatten", {"images"}, {"flat"});
  ModelMaker::set(model.node("Gemm", {"flat", "w", "b"}, {"hidden"}), "transB", 1);
  model.node("Relu", {"hidden"}, {"active"});
  ModelMaker::set(model.node("Gemm", {"active", "v", "c"}, {"scores"}), "transB", 1);
  return model.bytes();
}

/// images [batch, 1, 8, 8] -> convolution, batch normalisation, ReLU, mean -> 3 scores.
inline std::string convolutional() {
  ModelMaker model;
  model.input("images", {-1, 1, 8, 8}).output("scores");
  model.weight("w", {4, 1, 3, 3}).weight("scale", {4}).weight("bias", {4});
  model.weight("mean", {4}).weight("variance", {4}).weight("v", {3, 4}).weight("c", {3});
  auto& conv = model.node("Conv", {"images", "w"}, {"maps"});
  ModelMaker::set(conv, "kernel_shape", Shape{3, 3});
  ModelMaker::set(conv, "pads", Shape{1, 1, 1, 1});
  auto& norm = model.node("BatchNormalization", {"maps", "scale", "bias", "mean", "variance"},
                          {"normal", "mean.new", "variance.new"});
  ModelMaker::set(norm, "training_mode", 1);
  model.node("Relu", {"normal"}, {"active"});
  model.node("GlobalAveragePool", {"active"}, {"pooled"});
  model.node("Flatten", {"pooled"}, {"flat"});
  ModelMaker::set(model.node("Gemm", {"flat", "v", "c"}, {"scores"}), "transB", 1);
  return model.bytes();
}

/// Files in a folder of the test's own, and what is read from them.
class SmallStudy {
public:
  explicit SmallStudy(const std::string& keys, const std::string& network = perceptron(),
                      const std::string& normalise = "measured") {
    const std::string data = "data: {format: generated, classes: 3, channels: 1, height: 8, width: "
                             "8, train: 14, test: 10, normalise: " +
                             normalise + "}\n";
    std::filesystem::create_directories(folder_);
    write_file_atomically(path("net.onnx"), network);
    write_file_atomically(path("e.yaml"),
                          "network: net.onnx\nbatch: 4\narithmetic: fp64\n" + data + keys);
    study_ = read_train_study(path("e.yaml"));
    data_ = load_data(study_.data.front(), 1);
  }
  ~SmallStudy() { std::filesystem::remove_all(folder_); }
  SmallStudy(const SmallStudy&) = delete;
  SmallStudy& operator=(const SmallStudy&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  const TrainingData& data() const { return data_; }
  const TrainStudy& study() const { return study_; }
  TrainSetup setup(std::size_t variant = 0) const {
    return prepare_training(study_.variants.at(variant), data_);
  }

private:
  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("train_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
  TrainStudy study_;
  TrainingData data_;
};

inline void run_to_its_end(TrainRun& run) {
  while (!run.is_over() || run.test_is_due()) {
    if (run.test_is_due())
      run.test();
    else
      run.step();
  }
}

inline const SavedTensor& tensor_of(const RunState& state, const std::string& name) {
  for (const SavedTensor& tensor : state.tensors) {
    if (tensor.name == name)
      return tensor;
  }
  throw std::runtime_error("no tensor " + name);
}

/// States and losses of two runs, bit for bit.
inline bool same_bits(const RunState& a, const RunState& b) {
  const auto same = [](const std::vector<double>& x, const std::vector<double>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
  };
  if (a.tensors.size() != b.tensors.size() || a.history.steps.size() != b.history.steps.size() ||
      a.history.tests.size() != b.history.tests.size())
    return false;
  for (std::size_t i = 0; i < a.history.steps.size(); ++i) {
    if (!same({a.history.steps[i].loss}, {b.history.steps[i].loss}))
      return false;
  }
  for (const SavedTensor& tensor : a.tensors) { // in any order
    if (!same(tensor.numbers, tensor_of(b, tensor.name).numbers))
      return false;
  }
  return a.updates == b.updates && a.advances == b.advances;
}

} // namespace monet::test
