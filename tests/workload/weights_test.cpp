#include "workload/models.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace monet::test {
namespace {

onnx::TensorProto& add(ModelMaker& model, const std::string& name, std::int64_t size) {
  auto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(size);
  return tensor;
}

void external(onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *tensor.add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

TEST(OnnxWeights, ReadsNumbersInTheFile) {
  ModelMaker model;
  auto& typed = add(model, "typed", 2);
  typed.add_float_data(1.5F);
  typed.add_float_data(-2.0F);
  add(model, "raw", 1).set_raw_data(std::string("\x00\x00\x80\x3E", 4));
  add(model, "stripped", 3);
  model.integers("whole", {7});
  const auto weights = read_onnx_weights_bytes(model.proto().SerializeAsString(), "m.onnx");
  EXPECT_EQ(weights.size(), 3U);
  EXPECT_EQ(std::get<std::vector<double>>(weights.at("typed")), (std::vector<double>{1.5, -2.0}));
  EXPECT_EQ(std::get<std::vector<double>>(weights.at("raw")), std::vector<double>{0.25});
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(weights.at("whole")), std::vector<std::int64_t>{7});
}

TEST(OnnxWeights, ReadsExternalDataBesideTheFile) {
  const auto folder = std::filesystem::temp_directory_path() / "monet_onnx_weights_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "data.bin", std::ios::binary) << std::string("\0\0\0\0\0\0\x40\x40", 8);
  ModelMaker model;
  auto& there = add(model, "there", 1);
  external(there, "location", "data.bin");
  external(there, "offset", "4");
  external(there, "length", "4");
  external(add(model, "nowhere", 1), "location", "missing.bin");
  const std::string path = (folder / "m.onnx").string();
  const auto weights = read_onnx_weights_bytes(model.proto().SerializeAsString(), path);
  EXPECT_EQ(weights.size(), 1U);
  EXPECT_EQ(std::get<std::vector<double>>(weights.at("there")), std::vector<double>{3.0});
  std::filesystem::remove_all(folder);
}

TEST(OnnxWeights, RefusesDataElsewhereAndOfAnotherSize) {
  for (const char* location : {"../secret", "/etc/hostname", "a/../../b"}) {
    ModelMaker model;
    external(add(model, "w", 1), "location", location);
    EXPECT_THROW(read_onnx_weights_bytes(model.proto().SerializeAsString(), "m.onnx"), InputError)
        << location;
  }
  ModelMaker model;
  add(model, "w", 3).add_float_data(1.0F);
  EXPECT_THROW(read_onnx_weights_bytes(model.proto().SerializeAsString(), "m.onnx"), InputError);
}

/// A decimal of few digits is what the exporting program meant; the rounded number is not.
TEST(OnnxSettings, AreTheDecimalsThatWereWritten) {
  for (const double meant : {0.1, 1e-5, 0.9, 0.2, 1.702, 1.0, -0.3, 6.0, 0.0}) {
    ModelMaker model;
    model.input("x", {2}).output("y");
    ModelMaker::set_float(model.node("LeakyRelu", {"x"}, {"y"}), "alpha", meant);
    const Graph graph = read_onnx_bytes(model.proto().SerializeAsString(), "m.onnx");
    EXPECT_EQ(graph.operators().front().attributes.number("alpha", 7.0), meant);
  }
  ModelMaker model;
  model.input("x", {2}).output("y");
  ModelMaker::set_float(model.node("LeakyRelu", {"x"}, {"y"}), "alpha", 1.0 / 6.0);
  const Graph graph = read_onnx_bytes(model.proto().SerializeAsString(), "m.onnx");
  EXPECT_EQ(graph.operators().front().attributes.number("alpha", 7.0),
            static_cast<double>(static_cast<float>(1.0 / 6.0)));
}

} // namespace
} // namespace monet::test
