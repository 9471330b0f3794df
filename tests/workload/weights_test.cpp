#include "workload/models.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/warnings.hpp"
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
  const std::string path = (folder / "m.onnx").string();
  const auto weights = read_onnx_weights_bytes(model.proto().SerializeAsString(), path);
  EXPECT_EQ(weights.size(), 1U);
  EXPECT_EQ(std::get<std::vector<double>>(weights.at("there")), std::vector<double>{3.0});
  std::filesystem::remove_all(folder);
}

TEST(OnnxWeights, RefusesDataElsewhereAndOfAnotherSize) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "monet_onnx_weights_elsewhere_test";
  fs::create_directories(folder / "model/part");
  for (const char* name : {"secret", "model/data.bin", "model/part/data.bin"})
    std::ofstream(folder / name, std::ios::binary) << std::string("\0\0\x40\x40", 4);
  fs::remove(folder / "model/link.bin");
  fs::create_symlink("../secret", folder / "model/link.bin");
  fs::remove(folder / "model/up");
  fs::create_symlink("..", folder / "model/up");
  fs::remove(folder / "model/inner");
  fs::create_symlink("part", folder / "model/inner");
  const auto problem_of = [&](const std::string& location) -> std::string {
    ModelMaker model;
    external(add(model, "w", 1), "location", location);
    try {
      read_onnx_weights_bytes(model.proto().SerializeAsString(),
                              (folder / "model/m.onnx").string());
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* location : {"data.bin", "part/data.bin", "inner/data.bin"})
    EXPECT_EQ(problem_of(location), "") << location;
  for (const char* location :
       {"", "../secret", "/etc/hostname", "part/../../secret", "link.bin", "up/secret"})
    EXPECT_NE(problem_of(location).find("outside the model's folder"), std::string::npos)
        << location << ": " << problem_of(location);
  EXPECT_NE(problem_of(std::string(5000, 'x')).find("cannot be read"), std::string::npos);
  for (const char* location : {".", "part", "inner"})
    EXPECT_NE(problem_of(location).find("not a regular file"), std::string::npos) << location;
  EXPECT_NE(problem_of(std::string("data.bin\0.txt", 13)).find("NUL"), std::string::npos);
  EXPECT_NE(problem_of("missing.bin").find("[tensor 'w']: external data 'missing.bin' are missing"),
            std::string::npos)
      << problem_of("missing.bin");
  fs::remove_all(folder);
  ModelMaker model;
  add(model, "w", 3).add_float_data(1.0F);
  EXPECT_THROW(read_onnx_weights_bytes(model.proto().SerializeAsString(), "m.onnx"), InputError);
}

/// Weights that a file leaves out on purpose are a warning, in external data or without a place.
TEST(OnnxWeights, MayBeLeftOutOnPurpose) {
  ModelMaker model;
  external(add(model, "w", 3), "location", "w.weights");
  external(add(model, "v", 3), "location", "w.weights");
  add(model, "u", 3);
  auto& mark = *model.proto().add_metadata_props();
  mark.set_key("monet.weights");
  mark.set_value("stripped");
  const WarningScope scope;
  EXPECT_TRUE(read_onnx_weights_bytes(model.bytes(), "m.onnx").empty());
  ASSERT_EQ(scope.warnings().size(), 1U);
  EXPECT_EQ(scope.warnings().front().to_string(),
            "m.onnx: its weights were omitted on purpose: 3 tensors have no numbers");
  mark.set_value("trained");
  try {
    read_onnx_weights_bytes(model.bytes(), "m.onnx");
    FAIL() << "external data are missing";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 2U); // of 'w' and of 'v'
  }
}

TEST(OnnxWeights, AreReadOfTensorsThatNeedThem) {
  ModelMaker model;
  external(add(model, "given", 3), "location", "gone.bin");
  add(model, "there", 1).add_float_data(2.0F);
  const auto weights = read_onnx_weights_bytes(
      model.bytes(), "m.onnx", [](const std::string& name) { return name == "there"; });
  EXPECT_EQ(weights.size(), 1U);
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
