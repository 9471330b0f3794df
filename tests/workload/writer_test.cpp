// Written files pass ONNX's checker and read back as the same graph.
#include "workload/models.hpp"

#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <gtest/gtest.h>
#include <onnx/checker.h>

namespace monet {
namespace MONET_TEST_FILE {

Graph read_network(const std::string& name) {
  OnnxReadOptions options;
  options.batch = 2;
  return read_onnx(MONET_SOURCE_DIR "/data/workload/" + name + ".onnx", options);
}

void expect_equal(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const Tensor& tensor : a.tensors()) {
    const auto found = b.find_tensor(tensor.name);
    ASSERT_TRUE(found.has_value()) << tensor.name;
    const Tensor& other = b.tensor(*found);
    EXPECT_EQ(tensor.shape, other.shape) << tensor.name;
    EXPECT_EQ(tensor.kind, other.kind) << tensor.name;
    EXPECT_EQ(tensor.type, other.type) << tensor.name;
    EXPECT_EQ(tensor.alias_of.has_value(), other.alias_of.has_value()) << tensor.name;
  }
  ASSERT_EQ(a.operators().size(), b.operators().size());
  for (std::size_t i = 0; i < a.operators().size(); ++i) {
    const Operator& x = a.operators()[i];
    const Operator& y = b.operators()[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.op_type, y.op_type);
    EXPECT_EQ(x.domain, y.domain);
    EXPECT_EQ(x.attributes, y.attributes) << x.name;
    EXPECT_EQ(x.phase, y.phase);
    EXPECT_EQ(x.gradient_of, y.gradient_of);
    EXPECT_EQ(x.nest.dims, y.nest.dims) << x.name;
    ASSERT_EQ(x.nest.operands.size(), y.nest.operands.size()) << x.name;
    for (std::size_t k = 0; k < x.nest.operands.size(); ++k) {
      EXPECT_EQ(x.nest.operands[k].axes, y.nest.operands[k].axes) << x.name;
      EXPECT_EQ(a.tensor(x.nest.operands[k].tensor).name, b.tensor(y.nest.operands[k].tensor).name);
    }
  }
}

class Written : public testing::TestWithParam<const char*> {};

TEST_P(Written, PassesTheCheckerAndReadsBackEqual) {
  const Graph graph = read_network(GetParam());
  const std::string bytes = write_onnx(graph);
  EXPECT_EQ(bytes, write_onnx(graph));
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  expect_equal(graph, read_onnx_bytes(bytes, "again.onnx"));
}

INSTANTIATE_TEST_SUITE_P(All, Written,
                         testing::Values("resnet18", "mobilenet_v2", "vgg16", "vit_tiny",
                                         "gpt2_nano"),
                         [](const auto& param) { return std::string(param.param); });

// Our own operators, element types that ONNX lacks, phases and shared storage.
TEST(Writer, KeepsWhatOnnxCannotSay) {
  Graph graph;
  graph.name = "step";
  const auto x = test::add_tensor(graph, "x", {2, 3}, TensorKind::input);
  const auto w = test::add_tensor(graph, "w", {3, 4}, TensorKind::parameter);
  const auto y = test::add_tensor(graph, "y", {2, 4});
  const auto dy = test::add_tensor(graph, "dy", {2, 4}, TensorKind::gradient);
  const auto dw = test::add_tensor(graph, "dw", {3, 4}, TensorKind::parameter_gradient);
  const auto copy = test::add_tensor(graph, "dw_copy", {4, 3}, TensorKind::parameter_gradient);
  graph.tensor(dy).type = ElementType::fp8_e5m2;
  graph.tensor(dw).alias_of = w;
  graph.inputs = {x};
  graph.outputs = {copy};
  const OpId product = test::add_op(graph, "MatMul", {x, w}, {y});
  test::add_op(graph, "Exp", {y}, {dy});
  const OpId gradient = test::add_op(graph, "MatMulGradB", {x, dy}, {dw}, {}, "ai.monet");
  graph.op(gradient).phase = Phase::backward;
  graph.op(gradient).gradient_of = GradientOf::weight;
  graph.op(gradient).forward_op = product;
  Attributes attributes;
  attributes.set("view", std::string("Transpose"));
  attributes.set("perm", test::Shape{1, 0});
  test::add_op(graph, "Copy", {dw}, {copy}, attributes, "ai.monet");
  const Graph again = read_onnx_bytes(write_onnx(graph), "again.onnx");
  expect_equal(graph, again);
  EXPECT_EQ(again.operators()[2].forward_op, product);
  EXPECT_EQ(again.tensor(again.find_tensor("dy").value()).type, ElementType::fp8_e5m2);
}

// Files are written in opset 17, whose poolings have no dilations, and whose LpPool does not round
// up.
TEST(Writer, AttributesThatItsOpsetLacksAreReadBack) {
  for (const char* attribute : {"dilations", "ceil_mode"}) {
    test::ModelMaker model(19);
    model.input("x", {1, 2, 7, 7}).output("y");
    auto& node = model.node("LpPool", {"x"}, {"y"});
    test::ModelMaker::set(node, "kernel_shape", test::Shape{2, 2});
    test::ModelMaker::set(node, "strides", test::Shape{2, 2});
    if (attribute == std::string("dilations"))
      test::ModelMaker::set(node, attribute, test::Shape{2, 2});
    else
      test::ModelMaker::set(node, attribute, std::int64_t{1});
    const Graph graph = read_onnx_bytes(model.bytes(), "net.onnx");
    const Graph again = read_onnx_bytes(write_onnx(graph), "again.onnx");
    EXPECT_EQ(again.tensor(again.outputs.at(0)).shape, graph.tensor(graph.outputs.at(0)).shape);
    EXPECT_EQ(again.operators().at(0).nest.dims, graph.operators().at(0).nest.dims) << attribute;
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet
