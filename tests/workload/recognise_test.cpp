// Chains that exporters write become one operator where nothing else reads their parts. What they
// compute is compared with PyTorch in tests/execute.
#include "workload/models.hpp"

#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace MONET_TEST_FILE {

using test::ModelMaker;

void add_number(ModelMaker& model, const std::string& name, float value) {
  auto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_float_data(value);
}

void set_number(onnx::NodeProto& node, const std::string& name, float value) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
}

Graph read(const ModelMaker& model, bool recognise = true) {
  OnnxReadOptions options;
  options.recognise = recognise;
  return read_onnx_bytes(model.bytes(), "chain.onnx", options);
}

std::string types(const Graph& graph) {
  std::string text;
  for (const Operator& op : graph.operators())
    text += (text.empty() ? "" : " ") + op.op_type.str();
  return text;
}

/// 0.5 * x * (1 + erf(x / sqrt 2)) as torch.onnx writes it; `twice`: another reader of the erf.
ModelMaker gelu(bool twice) {
  ModelMaker model;
  model.input("x", {2, 8}).output("y");
  add_number(model, "root", 1.4142135F);
  add_number(model, "one", 1.0F);
  add_number(model, "half", 0.5F);
  model.node("Div", {"x", "root"}, {"d"});
  model.node("Erf", {"d"}, {"e"});
  model.node("Add", {"e", "one"}, {"a"});
  model.node("Mul", {"x", "a"}, {"m"});
  model.node("Mul", {"m", "half"}, {"y"});
  if (twice)
    model.output("e");
  return model;
}

TEST(Recognise, GeluOfItsChain) {
  const Graph graph = read(gelu(false));
  verify(graph);
  ASSERT_EQ(types(graph), "Gelu");
  const Operator& op = graph.operators()[0];
  EXPECT_EQ(op.name, "Mul_4"); // the name of the node that makes the result
  EXPECT_EQ(op.inputs.size(), 1U);
  EXPECT_EQ(graph.tensor(*op.outputs[0]).name, "y");
  EXPECT_FALSE(graph.find_tensor("root"));
}

TEST(Recognise, NothingWhereAPartIsReadElsewhereOrOnRequest) {
  EXPECT_EQ(types(read(gelu(true))), "Div Erf Add Mul Mul");
  EXPECT_EQ(types(read(gelu(false), false)), "Div Erf Add Mul Mul");
}

TEST(Recognise, WrittenGraphsAreReadAsTheyAre) {
  const Graph chain = read(gelu(false), false);
  EXPECT_EQ(types(read_onnx_bytes(write_onnx(chain), "again.onnx", {})), types(chain));
  const Graph fused = read(gelu(false));
  const Graph again = read_onnx_bytes(write_onnx(fused), "again.onnx", {});
  EXPECT_EQ(types(again), "Gelu");
  EXPECT_EQ(again.operators()[0].domain, "");
}

/// ONNX Runtime's fused activations are ours under other names.
TEST(Recognise, ActivationsOfOnnxRuntime) {
  ModelMaker model;
  model.import("com.microsoft", 1).input("x", {2, 8}).weight("b", {8}).output("y");
  model.node("Gelu", {"x"}, {"g"}, "com.microsoft");
  model.node("BiasGelu", {"g", "b"}, {"h"}, "com.microsoft");
  model.node("FastGelu", {"h"}, {"f"}, "com.microsoft");
  model.node("QuickGelu", {"f"}, {"y"}, "com.microsoft");
  const Graph graph = read(model);
  verify(graph);
  ASSERT_EQ(types(graph), "Gelu Add Gelu Gelu Silu");
  EXPECT_EQ(graph.operators()[3].attributes.text("approximate", "none"), "tanh");
  EXPECT_NEAR(graph.operators()[4].attributes.number("alpha", 1.0), 1.702, 1e-6);
  EXPECT_EQ(graph.operators()[4].name, "QuickGelu_3");
}

TEST(Recognise, SiluOfItsChainWithAnExpansionOfTheGate) {
  ModelMaker model;
  model.input("gate", {2, 8}).input("up", {2, 8}).output("y");
  model.node("Sigmoid", {"gate"}, {"s"});
  model.node("Mul", {"gate", "s"}, {"m"});
  model.node("Mul", {"m", "up"}, {"y"});
  const Graph graph = read(model);
  verify(graph);
  ASSERT_EQ(types(graph), "Silu Mul");
  EXPECT_EQ(graph.operators()[0].domain, kMonetDomain);
}

/// Opset 16 and before have no layer normalisation.
TEST(Recognise, LayerAndRmsNormalisation) {
  ModelMaker model(15);
  model.input("x", {2, 3, 8}).weight("scale", {8}).weight("bias", {8}).weight("gain", {8});
  model.output("z");
  add_number(model, "two", 2.0F);
  add_number(model, "epsilon", 1e-6F);
  const auto mean = [&](const std::string& from, const std::string& to) {
    ModelMaker::set(model.node("ReduceMean", {from}, {to}), "axes", test::Shape{-1});
  };
  mean("x", "m");
  model.node("Sub", {"x", "m"}, {"d"});
  model.node("Pow", {"d", "two"}, {"q"});
  mean("q", "v");
  model.node("Add", {"v", "epsilon"}, {"ve"});
  model.node("Sqrt", {"ve"}, {"r"});
  model.node("Div", {"d", "r"}, {"n"});
  model.node("Mul", {"n", "scale"}, {"g"});
  model.node("Add", {"g", "bias"}, {"y"});
  model.node("Mul", {"y", "y"}, {"yq"});
  mean("yq", "yv");
  model.node("Add", {"yv", "epsilon"}, {"yve"});
  model.node("Sqrt", {"yve"}, {"yr"});
  model.node("Div", {"y", "yr"}, {"yn"});
  model.node("Mul", {"yn", "gain"}, {"z"});
  const Graph graph = read(model);
  verify(graph);
  ASSERT_EQ(types(graph), "LayerNormalization RMSNormalization");
  const Operator& layer = graph.operators()[0];
  EXPECT_EQ(layer.attributes.integer("axis", 0), -1);
  EXPECT_NEAR(layer.attributes.number("epsilon", 0), 1e-6, 1e-12);
  EXPECT_EQ(graph.tensor(*layer.inputs[1]).name, "scale");
  EXPECT_EQ(graph.tensor(*layer.inputs[1]).kind, TensorKind::parameter);
  EXPECT_EQ(graph.tensor(*graph.operators()[1].inputs[1]).name, "gain");
  EXPECT_EQ(graph.operators()[1].outputs.size(), 1U);
}

TEST(Recognise, GroupNormalisationOfAnInstanceNorm) {
  ModelMaker model;
  model.input("x", {2, 6, 4, 4}).weight("scale", {6, 1, 1}).weight("bias", {6}).output("y");
  model.integers("grouped", {0, 3, -1}).integers("back", {2, 6, 4, 4}).integers("axes", {1, 2});
  for (const auto& [name, value] : {std::pair("ones", 1.0F), std::pair("zeros", 0.0F)}) {
    auto& constant = model.node("Constant", {}, {name});
    auto& attribute = *constant.add_attribute();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    attribute.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    attribute.mutable_t()->add_dims(3);
    for (int i = 0; i < 3; ++i)
      attribute.mutable_t()->add_float_data(value);
  }
  model.node("Reshape", {"x", "grouped"}, {"r"});
  set_number(model.node("InstanceNormalization", {"r", "ones", "zeros"}, {"n"}), "epsilon", 1e-3F);
  model.node("Reshape", {"n", "back"}, {"b"});
  model.node("Unsqueeze", {"bias", "axes"}, {"bias3"});
  model.node("Mul", {"b", "scale"}, {"s"});
  model.node("Add", {"s", "bias3"}, {"y"});
  const Graph graph = read(model);
  verify(graph);
  const Operator& op = graph.operators().back();
  ASSERT_EQ(op.op_type, "GroupNormalization");
  EXPECT_EQ(op.attributes.integer("num_groups", 0), 3);
  EXPECT_NEAR(op.attributes.number("epsilon", 0), 1e-3, 1e-9);
  EXPECT_EQ(graph.tensor(*op.inputs[1]).shape, test::Shape{6});
  EXPECT_EQ(graph.tensor(*op.inputs[2]).shape, test::Shape{6});
}

TEST(Recognise, ExportedGpt2HasOneGeluALayer) {
  OnnxReadOptions options;
  options.batch = 1;
  const Graph graph = read_onnx(MONET_SOURCE_DIR "/data/workload/gpt2_nano.onnx", options);
  int gelus = 0;
  for (const Operator& op : graph.operators()) {
    gelus += op.op_type == "Gelu" ? 1 : 0;
    EXPECT_NE(op.op_type, "Tanh");
    EXPECT_NE(op.op_type, "Pow");
  }
  EXPECT_EQ(gelus, 2);
}

/// Bags [0, 2) and [2, `end`) of five indices, as a loop leaves them.
ModelMaker bags(std::int64_t end) {
  ModelMaker model;
  model.weight("table", {9, 4}).input("x", {5}, onnx::TensorProto::INT64).output("y");
  model.integers("zero", {0}).integers("first", {0}).integers("second", {2}).integers("end", {end});
  for (const char* bag : {"a", "b"}) {
    const std::string name = bag;
    const bool before = name == "a";
    model.node("Slice", {"x", before ? "first" : "second", before ? "second" : "end", "zero"},
               {name + "_indices"});
    model.node("Gather", {"table", name + "_indices"}, {name + "_rows"});
    auto& mean = model.node("ReduceMean", {name + "_rows"}, {name + "_mean"});
    ModelMaker::set(mean, "axes", test::Shape{0});
    ModelMaker::set(mean, "keepdims", std::int64_t{0});
    model.node("Unsqueeze", {name + "_mean", "zero"}, {name + "_row"});
  }
  ModelMaker::set(model.node("Concat", {"a_row", "b_row"}, {"y"}), "axis", std::int64_t{0});
  return model;
}

TEST(Recognise, BagsOfEqualLengthAreLookedUpAtOnce) {
  ModelMaker model = bags(4);
  model.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(4);
  const Graph graph = read(model);
  verify(graph);
  EXPECT_EQ(types(graph), "Reshape Gather ReduceMean");
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (test::Shape{2, 4}));
  // Of different lengths, or when an index is in no bag, they stay apart.
  EXPECT_EQ(types(read(bags(5))).find("Reshape"), std::string::npos);
  EXPECT_EQ(types(read(bags(4))).find("Reshape"), std::string::npos);
}

} // namespace MONET_TEST_FILE
} // namespace monet
