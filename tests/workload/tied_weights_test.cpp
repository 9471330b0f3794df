// Initialisers with equal numbers: which are one parameter, and what is said of them.
#include "workload/models.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace monet {
namespace MONET_TEST_FILE {

using test::ModelMaker;
using Numbers = std::vector<float>;

/// Stored as bytes.
void add_raw(ModelMaker& model, const std::string& name, const test::Shape& shape,
             const Numbers& numbers) {
  auto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const auto size : shape)
    tensor.add_dims(size);
  tensor.set_raw_data(
      std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)));
}

Numbers table(int rows, int columns) {
  Numbers numbers;
  for (int i = 0; i < rows * columns; ++i)
    numbers.push_back(static_cast<float>(std::sin(37.0 * i * i + 11.0 * i + 1.0)));
  return numbers;
}

Numbers transposed(const Numbers& numbers, int rows, int columns) {
  Numbers turned;
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < rows; ++i)
      turned.push_back(numbers[static_cast<std::size_t>(i * columns + j)]);
  }
  return turned;
}

/// An embedding of 40 rows of 36 and a head of initialiser `head`.
ModelMaker language_model(const std::string& head, const Numbers& numbers) {
  ModelMaker model;
  model.proto().set_producer_name("pytorch");
  model.input("x", {2, 3}, onnx::TensorProto::INT64).output("y");
  add_raw(model, "e.weight", {40, 36}, table(40, 36));
  add_raw(model, head, {36, 40}, numbers);
  model.node("Gather", {"e.weight", "x"}, {"a"});
  model.node("Tanh", {"a"}, {"b"});
  model.node("MatMul", {"b", head}, {"y"}).set_name("/head/MatMul");
  return model;
}

std::string text_of(const Graph& graph) {
  std::string text;
  for (const EqualWeights& pair : graph.equal_weights)
    text += pair.name + (pair.is_transposed ? " is the transpose of " : " is ") + pair.of +
            (pair.is_tied ? ", tied" : ", apart");
  return text;
}

TEST(TiedWeights, AreTransposesThatTheExporterMade) {
  const Numbers head = transposed(table(40, 36), 40, 36);
  const Graph graph = read_onnx_bytes(language_model("onnx::MatMul_12", head).bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(graph), 1440);
  EXPECT_EQ(text_of(graph), "onnx::MatMul_12 is the transpose of e.weight, tied");
  Numbers other = head;
  other.back() += 1.0F;
  const Graph untied =
      read_onnx_bytes(language_model("onnx::MatMul_12", other).bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(untied), 2880);
  EXPECT_EQ(text_of(untied), "");
}

TEST(TiedWeights, OfNamesOfTheirOwnAreApartUnlessAskedFor) {
  const ModelMaker model = language_model("head.weight", transposed(table(40, 36), 40, 36));
  const Graph graph = read_onnx_bytes(model.bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(graph), 2880);
  EXPECT_EQ(text_of(graph), "head.weight is the transpose of e.weight, apart");
  OnnxReadOptions options;
  options.ties = {"head.*"};
  EXPECT_EQ(parameter_count(read_onnx_bytes(model.bytes(), "net.onnx", options)), 1440);
}

TEST(TiedWeights, MayBeTrainedApart) {
  OnnxReadOptions options;
  options.ties.emplace();
  const ModelMaker model = language_model("onnx::MatMul_12", transposed(table(40, 36), 40, 36));
  EXPECT_EQ(parameter_count(read_onnx_bytes(model.bytes(), "net.onnx", options)), 2880);
  options.ties = {"onnx::Gemm*"};
  try {
    read_onnx_bytes(model.bytes(), "net.onnx", options);
    FAIL() << "a pattern that matches nothing";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("matches the pattern 'onnx::Gemm*' of 'ties'"),
              std::string::npos)
        << error.what();
  }
}

TEST(TiedWeights, AreNotLookedForWhereTheFileListsItsParameters) {
  ModelMaker model = language_model("onnx::MatMul_12", transposed(table(40, 36), 40, 36));
  auto& list = *model.proto().add_metadata_props();
  list.set_key("monet.parameters");
  list.set_value("e.weight\nonnx::MatMul_12");
  const Graph graph = read_onnx_bytes(model.bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(graph), 2880);
  EXPECT_EQ(text_of(graph), "");
}

/// Two products of initialisers that are equal; both in the code of modules of these names.
Graph two_products(const std::string& first, const std::string& second) {
  ModelMaker model;
  model.proto().set_producer_name("pytorch");
  model.input("x", {2, 5}).output("y");
  add_raw(model, "onnx::MatMul_7", {5, 5}, table(5, 5));
  add_raw(model, "onnx::MatMul_8", {5, 5}, table(5, 5));
  model.node("MatMul", {"x", "onnx::MatMul_7"}, {"a"}).set_name(first + "/MatMul");
  model.node("MatMul", {"a", "onnx::MatMul_8"}, {"y"}).set_name(second + "/MatMul_1");
  return read_onnx_bytes(model.bytes(), "net.onnx");
}

/// One layer that runs twice, and copies of a layer that each learn on their own.
TEST(TiedWeights, AreThoseOfOneModule) {
  EXPECT_EQ(parameter_count(two_products("/block/f", "/block/f")), 25);
  EXPECT_EQ(parameter_count(two_products("/block/f", "/block_1/f_1")), 25); // its second run
  const Graph copies = two_products("/layers.0/f", "/layers.1/f");
  EXPECT_EQ(parameter_count(copies), 50);
  EXPECT_EQ(text_of(copies), "onnx::MatMul_8 is onnx::MatMul_7, apart");
}

/// Two layers of biases that are equal; where a network is not trained, PyTorch's exporter writes
/// the first of them alone and an Identity in place of the other one.
ModelMaker two_biases(const Numbers& numbers) {
  ModelMaker model;
  model.proto().set_producer_name("pytorch");
  model.input("x", {2, 5}).output("y");
  add_raw(model, "layers.0.bias", {5}, numbers);
  model.node("Identity", {"layers.0.bias"}, {"layers.1.bias"});
  model.node("Add", {"x", "layers.0.bias"}, {"a"}).set_name("/layers.0/Add");
  model.node("Add", {"a", "layers.1.bias"}, {"y"}).set_name("/layers.1/Add");
  return model;
}

TEST(TiedWeights, AreNotCopiesOfOtherNames) {
  const Graph equal = read_onnx_bytes(two_biases(table(1, 5)).bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(equal), 10);
  EXPECT_EQ(text_of(equal), "layers.1.bias is layers.0.bias, apart");
  const Graph zero = read_onnx_bytes(two_biases(Numbers(5, 0.0F)).bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(zero), 10);
  EXPECT_EQ(text_of(zero), "");
  const auto weights = read_onnx_weights_bytes(two_biases(table(1, 5)).bytes(), "net.onnx");
  EXPECT_EQ(weights.at("layers.1.bias"), weights.at("layers.0.bias"));
  OnnxReadOptions options;
  options.ties = {"*"};
  EXPECT_EQ(parameter_count(read_onnx_bytes(two_biases(table(1, 5)).bytes(), "net.onnx", options)),
            5);
}

TEST(TiedWeights, AreNotNumbersThatManyWeightsBeginWith) {
  ModelMaker model;
  model.input("x", {2, 4}).output("y");
  add_raw(model, "a", {4}, Numbers(4, 0.0F));
  add_raw(model, "b", {4}, Numbers(4, 0.0F));
  add_raw(model, "c", {3}, {0.1F, 0.2F, 0.4F});
  add_raw(model, "d", {3}, {0.1F, 0.2F, 0.4F});
  model.node("Add", {"x", "a"}, {"p"});
  model.node("Add", {"p", "b"}, {"y"});
  model.input("z", {2, 3}).output("w");
  model.node("Add", {"z", "c"}, {"q"});
  model.node("Add", {"q", "d"}, {"w"});
  EXPECT_EQ(text_of(read_onnx_bytes(model.bytes(), "net.onnx")), "");
}

} // namespace MONET_TEST_FILE
} // namespace monet
