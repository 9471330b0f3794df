// Nodes that are replaced by several while reading, and forms of newer opsets. What they compute is
// tested with PyTorch's numbers (tests/execute/gradient_cases_test.cpp).
#include "workload/models.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace monet {
namespace MONET_TEST_FILE {

using test::ModelMaker;
using test::Shape;

Graph read(const ModelMaker& model) {
  return read_onnx_bytes(model.bytes(), "net.onnx");
}
std::string error_of(const ModelMaker& model) {
  try {
    read(model);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}
std::int64_t count(const Graph& graph, std::string_view op_type) {
  return std::count_if(graph.operators().begin(), graph.operators().end(),
                       [&](const Operator& op) { return op.op_type == op_type; });
}
std::int64_t all_macs(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Operator& op : graph.operators())
    sum += macs(op.nest);
  return sum;
}
void set_text(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(value);
}

constexpr std::int64_t kSteps = 6, kBatch = 2, kInputs = 3, kStates = 4;

ModelMaker recurrent(const std::string& type, std::int64_t gates, std::int64_t directions) {
  ModelMaker model;
  model.input("x", {kSteps, kBatch, kInputs}).output("y");
  model.weight("w", {directions, gates * kStates, kInputs});
  model.weight("r", {directions, gates * kStates, kStates});
  model.weight("b", {directions, 2 * gates * kStates});
  auto& node = model.node(type, {"x", "w", "r", "b"}, {"y"});
  if (directions == 2)
    set_text(node, "direction", "bidirectional");
  ModelMaker::set(node, "hidden_size", kStates);
  return model;
}

TEST(Recurrent, IsOneProductForAllInputsAndOneAStep) {
  for (const std::int64_t directions : {1, 2}) {
    const Graph graph = read(recurrent("LSTM", 4, directions));
    verify(graph);
    EXPECT_EQ(count(graph, "MatMul"), directions * (1 + kSteps));
    EXPECT_EQ(all_macs(graph), directions * kSteps * kBatch * 4 * kStates * (kInputs + kStates));
    EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (Shape{kSteps, directions, kBatch, kStates}));
  }
}

TEST(Recurrent, GruResetsBeforeItsSecondProduct) {
  const Graph early = read(recurrent("GRU", 3, 1));
  EXPECT_EQ(count(early, "MatMul"), 1 + 2 * kSteps);
  ModelMaker model = recurrent("GRU", 3, 1);
  ModelMaker::set(*model.graph().mutable_node(0), "linear_before_reset", std::int64_t{1});
  const Graph late = read(model);
  EXPECT_EQ(count(late, "MatMul"), 1 + kSteps);
  EXPECT_EQ(all_macs(early), all_macs(late));
}

TEST(Recurrent, WeightsAreTrainedAndZeroStatesAreNot) {
  const Graph graph = read(recurrent("LSTM", 4, 1));
  for (const Tensor& tensor : graph.tensors()) {
    const bool weight = tensor.name == "w" || tensor.name == "r" || tensor.name == "b";
    EXPECT_EQ(tensor.kind == TensorKind::parameter, weight) << tensor.name;
  }
}

TEST(Recurrent, WhatIsNotSupportedIsSaid) {
  const auto changed = [](auto change) {
    ModelMaker model = recurrent("LSTM", 4, 1);
    change(*model.graph().mutable_node(0), model);
    return error_of(model);
  };
  EXPECT_NE(changed([](auto& node, auto&) {
              set_text(node, "direction", "sideways");
            }).find("'sideways' is not a direction"),
            std::string::npos);
  EXPECT_NE(changed([](auto& node, auto&) {
              ModelMaker::set(node, "input_forget", std::int64_t{1});
            }).find("coupled input and forget gates"),
            std::string::npos);
  EXPECT_NE(changed([](auto& node, auto& model) {
              model.input("lengths", {kBatch}, onnx::TensorProto::INT64);
              node.add_input("lengths");
            }).find("sequences of different lengths"),
            std::string::npos);
  EXPECT_NE(changed([](auto& node, auto& model) {
              model.weight("wrong", {1, 3, 3});
              node.set_input(2, "wrong");
            }).find("do not fit"),
            std::string::npos);
}

Graph einsum(const std::string& equation, const std::vector<Shape>& shapes) {
  ModelMaker model;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    names.push_back(std::string(1, static_cast<char>('a' + i)));
    model.input(names.back(), shapes[i]);
  }
  set_text(model.output("y").node("Einsum", names, {"y"}), "equation", equation);
  return read(model);
}

TEST(Einsum, LettersAreLoops) {
  const Graph graph = einsum("bhqd,bhkd->bhqk", {{2, 3, 5, 4}, {2, 3, 7, 4}});
  const LoopNest& nest = graph.operators()[0].nest;
  EXPECT_EQ(nest.compute, ComputeKind::mac);
  EXPECT_EQ(macs(nest), 2 * 3 * 5 * 7 * 4);
  EXPECT_EQ(find_dim(nest, "C"), 4U); // d is summed
  EXPECT_TRUE(is_reduction(nest, 4));
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (Shape{2, 3, 5, 7}));
}

TEST(Einsum, ManyOperandsAreContractedInPairs) {
  const Graph graph = einsum("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}});
  EXPECT_EQ(count(graph, "Einsum"), 2);
  EXPECT_EQ(all_macs(graph), 2 * 3 * 4 + 2 * 4 * 5);
}

TEST(Einsum, OneOperandIsNoProduct) {
  EXPECT_EQ(einsum("ij->ji", {{2, 3}}).operators()[0].nest.compute, ComputeKind::copy);
  EXPECT_EQ(einsum("ij->i", {{2, 3}}).operators()[0].nest.compute, ComputeKind::vector);
}

TEST(Einsum, WrongEquationsAreToldApart) {
  const auto wrong = [](const std::string& equation, const std::vector<Shape>& shapes) {
    try {
      einsum(equation, shapes);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(wrong("ij,jk->ik", {{2, 3}, {4, 5}}).find("'j' has 3 and 4"), std::string::npos);
  EXPECT_NE(wrong("ij->ik", {{2, 3}}).find("is in no operand"), std::string::npos);
  EXPECT_NE(wrong("ij->ii", {{2, 3}}).find("occurs twice"), std::string::npos);
  EXPECT_NE(wrong("ij,jk->ik", {{2, 3}}).find("2 operands are described"), std::string::npos);
  EXPECT_NE(wrong("i1->i", {{2, 3}}).find("is not a letter"), std::string::npos);
  EXPECT_NE(wrong("i->i", {{2, 3}}).find("does not describe 2 axes"), std::string::npos);
}

TEST(Einsum, OperandsThatAreLeftOutAreErrors) {
  for (const std::vector<std::string>& inputs :
       {std::vector<std::string>{""}, {"a", ""}, {"a", "", "a"}}) {
    ModelMaker model;
    model.input("a", {2, 3}).output("y");
    set_text(model.node("Einsum", inputs, {"y"}), "equation",
             inputs.size() == 1   ? "ij->i"
             : inputs.size() == 2 ? "ij,ij->i"
                                  : "ij,ij,ij->i");
    EXPECT_NE(error_of(model).find("left out"), std::string::npos) << inputs.size();
  }
}

TEST(Reader, PadAndSplitOfOpset18) {
  ModelMaker model(18);
  model.input("x", {2, 3, 7}).output("p").output("s0").output("s2");
  model.integers("pads", {1, 2, 0, 3}).integers("axes", {-1, 0});
  model.node("Pad", {"x", "pads", "", "axes"}, {"p"});
  auto& split = model.node("Split", {"x"}, {"s0", "s1", "s2"});
  ModelMaker::set(split, "axis", std::int64_t{2});
  ModelMaker::set(split, "num_outputs", std::int64_t{3});
  const Graph graph = read(model);
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (Shape{2 + 2 + 3, 3, 7 + 1 + 0}));
  EXPECT_EQ(graph.tensor(graph.outputs[1]).shape, (Shape{2, 3, 3}));
  EXPECT_EQ(graph.tensor(graph.outputs[2]).shape, (Shape{2, 3, 1}));
}

TEST(Reader, ResizeOfSomeAxesOfOpset18) {
  ModelMaker model(18);
  model.input("x", {1, 2, 4, 3}).output("y").integers("sizes", {5, 7});
  auto& resize = model.node("Resize", {"x", "", "", "sizes"}, {"y"});
  ModelMaker::set(resize, "axes", Shape{-1, 2});
  ModelMaker::set(resize, "antialias", std::int64_t{0});
  set_text(resize, "mode", "linear");
  const Graph graph = read(model);
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (Shape{1, 2, 7, 5}));
  resize.mutable_attribute(1)->set_i(1); // there is nothing to smooth where all becomes larger
  EXPECT_EQ(error_of(model), "");
  model.graph().mutable_initializer(0)->set_int64_data(0, 2);
  EXPECT_NE(error_of(model).find("antialias"), std::string::npos);
}

TEST(Reader, RoundedUpPoolingLeavesOutWindowsThatBeginOutside) {
  ModelMaker model;
  model.input("x", {1, 1, 5, 4}).output("y");
  auto& pool = model.node("MaxPool", {"x"}, {"y"});
  ModelMaker::set(pool, "kernel_shape", Shape{2, 2});
  ModelMaker::set(pool, "strides", Shape{3, 3});
  ModelMaker::set(pool, "pads", Shape{1, 1, 1, 1});
  ModelMaker::set(pool, "ceil_mode", std::int64_t{1});
  const Graph graph = read(model);
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (Shape{1, 1, 2, 2}));
}

} // namespace MONET_TEST_FILE
} // namespace monet
