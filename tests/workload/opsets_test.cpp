// Networks of opsets 18 to 21, which the libonnx at hand does not know, and their twins of
// opset 17. What new operators compute is compared with PyTorch by
// tests/execute/gradient_cases_test.cpp (family opsets).
#include "workload/models.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace monet {
namespace MONET_TEST_FILE {

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

// What an opset does not have is not read as another one has it.
TEST(Opsets, AttributesAreThoseOfTheOpset) {
  for (const std::int64_t opset : {17, 18, 19, 20, 21, 22}) {
    const auto refused = [&](std::string_view op, std::string_view attribute, const auto& value,
                             std::vector<std::string> inputs = {"x"}) {
      ModelMaker model(opset);
      model.input("x", {1, 4, 6, 6})
          .output("y")
          .integers("axes", {1})
          .integers("sizes", {1, 4, 9, 9});
      model.integers("pads", {0, 0, 1, 1, 0, 0, 1, 1});
      auto& node = model.node(std::string(op), inputs, {"y"});
      if (op.ends_with("Pool"))
        ModelMaker::set(node, "kernel_shape", Shape{2, 2});
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
        set_text(node, std::string(attribute), value);
      else
        ModelMaker::set(node, std::string(attribute), value);
      const std::string error = error_of(model);
      const std::string place = fmt::format("attribute '{}']: ", attribute);
      return error.find(place) != std::string::npos &&
             error.ends_with(fmt::format(" in opset {}", opset));
    };
    EXPECT_EQ(refused("AveragePool", "dilations", Shape{2, 2}), opset < 19) << opset;
    EXPECT_EQ(refused("LpPool", "dilations", Shape{2, 2}), opset < 18) << opset;
    EXPECT_EQ(refused("LpPool", "ceil_mode", std::int64_t{1}), opset < 18) << opset;
    EXPECT_EQ(refused("ReduceMean", "axes", Shape{1}), opset > 17) << opset;
    EXPECT_EQ(refused("ReduceMax", "axes", Shape{1}, {"x", "axes"}), opset > 17) << opset;
    EXPECT_EQ(refused("Pad", "mode", std::string("wrap"), {"x", "pads"}), opset < 19) << opset;
    EXPECT_EQ(refused("Resize", "coordinate_transformation_mode",
                      std::string("half_pixel_symmetric"), {"x", "", "", "sizes"}),
              opset < 19)
        << opset;
  }
}

TEST(Opsets, ASplitHasSizesOrANumberOfParts) {
  for (const bool number : {false, true}) {
    for (const bool sizes : {false, true}) {
      ModelMaker model(18);
      model.input("x", {5, 3}).output("y").output("z").integers("sizes", {1, 4});
      auto& node = model.node(
          "Split", sizes ? std::vector<std::string>{"x", "sizes"} : std::vector<std::string>{"x"},
          {"y", "z"});
      if (number)
        ModelMaker::set(node, "num_outputs", std::int64_t{2});
      EXPECT_EQ(error_of(model),
                number != sizes ? ""
                                : "net.onnx [node 'Split_0' (Split)]: a Split has either sizes "
                                  "or a 'num_outputs' since opset 18");
    }
  }
}

// Per group in opsets 18 to 20, per channel since.
TEST(Opsets, ScalesOfGroupNormalizationsAreThoseOfTheOpset) {
  for (const std::int64_t opset : {18, 20, 21, 22}) {
    for (const std::int64_t size : {2, 6}) {
      ModelMaker model(opset);
      model.input("x", {1, 6, 4, 4}).weight("s", {size}).weight("b", {size}).output("y");
      auto& node = model.node("GroupNormalization", {"x", "s", "b"}, {"y"});
      ModelMaker::set(node, "num_groups", std::int64_t{2});
      if (opset > 20)
        ModelMaker::set(node, "stash_type", std::int64_t{1});
      const bool fits = (opset > 20) == (size == 6);
      EXPECT_EQ(error_of(model),
                fits ? ""
                     : fmt::format("net.onnx [node 'GroupNormalization_0' (GroupNormalization), "
                                   "input 1]: one value per {} is expected in opset {}: {}",
                                   opset > 20 ? "channel" : "group", opset, opset > 20 ? 6 : 2));
    }
  }
}

// Opset 21 says the type of what is quantised by an attribute, too.
TEST(Opsets, TheTypeOfAQuantisationMayBeAnAttribute) {
  for (const auto& [number, type] : {std::pair{onnx::TensorProto::INT8, ElementType::int8},
                                     std::pair{onnx::TensorProto::UINT8, ElementType::uint8}}) {
    ModelMaker model(21);
    model.input("x", {4, 6}).input("s", {}).output("y");
    auto& node = model.node("QuantizeLinear", {"x", "s"}, {"y"});
    ModelMaker::set(node, "output_dtype", static_cast<std::int64_t>(number));
    const Graph graph = read_onnx_bytes(model.bytes(), "net.onnx");
    EXPECT_EQ(graph.tensor(graph.outputs.at(0)).type, type);
  }
}

TEST(Opsets, ThoseThatAreNotKnownAreRefused) {
  for (const std::int64_t opset : {23, 99}) {
    ModelMaker model(opset);
    model.input("x", {4, 6}).output("y").node("Relu", {"x"}, {"y"});
    EXPECT_EQ(
        error_of(model),
        fmt::format("net.onnx [node 'Relu_0' (Relu)]: an operator of opset {} is not supported "
                    "(export with opset 17)",
                    opset));
  }
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

} // namespace MONET_TEST_FILE
} // namespace monet
