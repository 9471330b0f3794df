// Networks of opsets 18 to 21, which the libonnx at hand does not know, and their twins of
// opset 17. What new operators compute is compared with PyTorch by
// tests/execute/gradient_cases_test.cpp (family opsets).
#include "workload/models.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace monet {
namespace {

using test::ModelMaker;
using test::Shape;

void set_text(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(value);
}

std::string error_of(const ModelMaker& model) {
  try {
    read_onnx_bytes(model.bytes(), "net.onnx");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string text_of(const AttributeValue& value) {
  return std::visit(
      [](const auto& held) {
        if constexpr (requires { held.begin(); })
          return fmt::format("{}", fmt::join(held, ","));
        else
          return fmt::format("{}", held);
      },
      value);
}

/// A graph with the numbers of its constants, but for their names.
std::string text_of(const Graph& graph) {
  std::string text;
  const auto operand = [&](const std::optional<TensorId>& id) {
    if (!id)
      return std::string("-");
    const Tensor& tensor = graph.tensor(*id);
    const std::string numbers =
        !tensor.values
            ? tensor.name
            : std::visit([](const auto& list) { return fmt::format("{}", list); }, *tensor.values);
    return fmt::format("{}{}:{}", numbers, tensor.shape, name_of(tensor.type));
  };
  for (const Operator& op : graph.operators()) {
    text += fmt::format("{} {}", op.name, op.op_type);
    for (const auto& [name, value] : op.attributes.all())
      text += fmt::format(" {}={}", name, text_of(value));
    for (const auto& id : op.inputs)
      text += " " + operand(id);
    text += " ->";
    for (const auto& id : op.outputs)
      text += " " + operand(id);
    text += "\n";
  }
  return text;
}

/// Nodes in the form that opset 17, or a later one, has for the same.
ModelMaker network(std::int64_t opset) {
  const bool newer = opset > 17;
  ModelMaker model(opset);
  model.input("x", {2, 4, 7, 6}).output("y").weight("w", {4, 4, 3, 3}).weight("g", {5});
  model.integers("pads", {0, 0, 1, 0, 0, 0, 0, 2}).integers("some", {1, 0, 0, 2});
  model.integers("halves", {2, 2}).integers("rows", {-2}).integers("axes", {2, 3});
  model.integers("sizes", {2, 4, 6, 9}).integers("sizes_of_axes", {6, 9});
  model.node("Conv", {"x", "w"}, {"a"});
  model.node("Pad",
             newer ? std::vector<std::string>{"a", "some", "", "axes"}
                   : std::vector<std::string>{"a", "pads"},
             {"b"});
  auto& resize = model.node("Resize", {"b", "", "", newer ? "sizes_of_axes" : "sizes"}, {"c"});
  set_text(resize, "mode", "linear");
  auto& pool = model.node("AveragePool", {"c"}, {"d"});
  ModelMaker::set(pool, "kernel_shape", Shape{2, 2});
  if (newer) {
    ModelMaker::set(resize, "axes", Shape{2, -1});
    ModelMaker::set(resize, "antialias", std::int64_t{0});
    set_text(resize, "keep_aspect_ratio_policy", "stretch");
  }
  if (opset > 18)
    ModelMaker::set(pool, "dilations", Shape{1, 1});
  auto& split = model.node(
      "Split", newer ? std::vector<std::string>{"d"} : std::vector<std::string>{"d", "halves"},
      {"e", "f"});
  ModelMaker::set(split, "axis", std::int64_t{1});
  if (newer)
    ModelMaker::set(split, "num_outputs", std::int64_t{2});
  model.node("Mul", {"e", "f"}, {"h"});
  auto& mean = model.node(
      "ReduceMean", newer ? std::vector<std::string>{"h", "rows"} : std::vector<std::string>{"h"},
      {"i"});
  if (!newer)
    ModelMaker::set(mean, "axes", Shape{-2});
  model.node("ReduceSum", {"i", "rows"}, {"j"});
  auto& cast = model.node("Cast", {"j"}, {"k"});
  ModelMaker::set(cast, "to", std::int64_t{onnx::TensorProto::DOUBLE});
  if (opset > 18)
    ModelMaker::set(cast, "saturate", std::int64_t{1});
  model.node("ReduceMax", {"k"}, {"y"});
  return model;
}

TEST(Opsets, TwinsAreTheSameGraph) {
  const Graph twin = read_onnx_bytes(network(17).bytes(), "net.onnx");
  EXPECT_EQ(twin.operators().size(), 10U);
  for (const std::int64_t opset : {18, 19, 20, 21, 22})
    EXPECT_EQ(text_of(read_onnx_bytes(network(opset).bytes(), "net.onnx")), text_of(twin)) << opset;
}

TEST(Opsets, QuantisationInBlocksIsRefused) {
  for (const std::int64_t block : {0, 2}) {
    ModelMaker model(21);
    model.input("x", {4, 6}).input("s", {}).input("z", {}, onnx::TensorProto::INT8).output("y");
    auto& node = model.node("QuantizeLinear", {"x", "s", "z"}, {"y"});
    ModelMaker::set(node, "block_size", block);
    ModelMaker::set(node, "saturate", std::int64_t{1});
    EXPECT_EQ(error_of(model), block == 0 ? ""
                                          : "net.onnx [node 'QuantizeLinear_0' (QuantizeLinear)]: "
                                            "quantisation in blocks (attribute 'block_size') of "
                                            "opset 21 is not supported (export with opset 17)");
  }
}

TEST(Opsets, WhatIsLeftOutIsNamed) {
  ModelMaker wrap(19);
  wrap.input("x", {4}).output("y").integers("pads", {1, 1});
  set_text(wrap.node("Pad", {"x", "pads"}, {"y"}), "mode", "wrap");
  EXPECT_NE(error_of(wrap).find("Pad that wraps around of opset 19"), std::string::npos);
  ModelMaker deformable(19);
  deformable.input("x", {1, 1, 4, 4}).weight("w", {1, 1, 2, 2}).input("o", {1, 8, 3, 3});
  deformable.output("y").node("DeformConv", {"x", "w", "o"}, {"y"});
  EXPECT_EQ(error_of(deformable), "net.onnx [node 'DeformConv_0' (DeformConv)]: operator "
                                  "DeformConv of domain 'ai.onnx' is not supported");
  ModelMaker uneven(18);
  uneven.input("x", {1, 2, 4, 6}).output("y").integers("sizes", {7, 9});
  auto& resize = uneven.node("Resize", {"x", "", "", "sizes"}, {"y"});
  ModelMaker::set(resize, "axes", Shape{2, 3});
  set_text(resize, "keep_aspect_ratio_policy", "not_larger");
  EXPECT_EQ(error_of(uneven), ""); // by 3 / 2: 6 and 9
  uneven.graph().mutable_initializer(0)->set_int64_data(1, 8);
  EXPECT_NE(error_of(uneven).find("keep_aspect_ratio_policy"), std::string::npos); // 5.33 rows
}

TEST(Opsets, NewOperatorsThatDoNotFitTheirInputs) {
  ModelMaker blocks(18);
  blocks.input("x", {1, 8, 5}).output("y").integers("image", {4, 4}).integers("block", {2, 2});
  blocks.node("Col2Im", {"x", "image", "block"}, {"y"});
  EXPECT_EQ(error_of(blocks), "net.onnx [node 'Col2Im_0' (Col2Im)]: blocks of 4 elements in 9 "
                              "places do not fit the input");
  ModelMaker crop(18);
  crop.input("x", {4, 4}).input("to", {2}, onnx::TensorProto::INT64).output("y");
  crop.node("CenterCropPad", {"x", "to"}, {"y"});
  EXPECT_EQ(error_of(crop),
            "net.onnx [node 'CenterCropPad_0' (CenterCropPad)]: input 1 depends on data");
  ModelMaker grid(20);
  grid.input("theta", {2, 3, 3}).output("y").integers("size", {2, 1, 4, 4});
  grid.node("AffineGrid", {"theta", "size"}, {"y"});
  EXPECT_EQ(error_of(grid), "net.onnx [node 'AffineGrid_0' (AffineGrid)]: theta and the size do "
                            "not fit each other");
}

// --- reductions ---

TEST(Reductions, OverAxesThatDependOnDataAreRefused) {
  for (const std::int64_t opset : {13, 17, 18, 21}) {
    for (const char* op : {"ReduceSum", "ReduceMean", "ReduceL2"}) {
      if (opset < 18 && std::string(op) != "ReduceSum")
        continue;
      ModelMaker model(opset);
      model.input("x", {3, 3}).input("axes", {1}, onnx::TensorProto::INT64).output("y");
      model.node(op, {"x", "axes"}, {"y"});
      auto& declared = *model.graph().mutable_output(0)->mutable_type()->mutable_tensor_type();
      declared.set_elem_type(onnx::TensorProto::FLOAT); // either axis would do
      declared.mutable_shape()->add_dim()->set_dim_value(3);
      EXPECT_EQ(error_of(model),
                fmt::format("net.onnx [node '{}_0' ({}), input 1]: the axes depend on data (export "
                            "the network with constant axes)",
                            op, op));
    }
  }
}

TEST(Reductions, OverNoAxesThatWouldComputeSomethingAreRefused) {
  ModelMaker model(18);
  model.input("x", {3, 3}).output("y");
  ModelMaker::set(model.node("ReduceL1", {"x"}, {"y"}), "noop_with_empty_axes", std::int64_t{1});
  EXPECT_EQ(error_of(model), "net.onnx [node 'ReduceL1_0' (ReduceL1), attribute "
                             "'noop_with_empty_axes']: over no axes, this reduction is not "
                             "supported");
}

} // namespace
} // namespace monet
