// Control flow and sequences, of which a graph has nothing: turns of loops one after the other,
// lists of tensors looked up while reading. What they compute is compared with PyTorch by
// tests/execute/training_cases_test.cpp (family control).
#include "workload/models.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace monet {
namespace MONET_TEST_FILE {

using test::ModelMaker;
using test::Shape;

Graph read(const ModelMaker& model) {
  Graph graph = read_onnx_bytes(model.bytes(), "net.onnx");
  verify(graph);
  return graph;
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
Shape shape_of(const Graph& graph, std::string_view name) {
  return graph.tensor(*graph.find_tensor(name)).shape;
}

/// A graph within a node.
struct Inner {
  onnx::GraphProto& graph;

  onnx::NodeProto& node(const std::string& op_type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
    auto& made = *graph.add_node();
    made.set_op_type(op_type);
    for (const auto& name : inputs)
      made.add_input(name);
    for (const auto& name : outputs)
      made.add_output(name);
    return made;
  }
  Inner& inputs(const std::vector<std::string>& names) {
    for (const auto& name : names)
      graph.add_input()->set_name(name);
    return *this;
  }
  Inner& outputs(const std::vector<std::string>& names) {
    for (const auto& name : names)
      graph.add_output()->set_name(name);
    return *this;
  }
  Inner& integers(const std::string& name, const Shape& values) {
    auto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<std::int64_t>(values.size()));
    for (const auto value : values)
      tensor.add_int64_data(value);
    return *this;
  }
};
Inner inner(onnx::NodeProto& node, const std::string& attribute = "body") {
  auto& made = *node.add_attribute();
  made.set_name(attribute);
  made.set_type(onnx::AttributeProto::GRAPH);
  made.mutable_g()->set_name(attribute);
  return {*made.mutable_g()};
}

void add_bool(ModelMaker& model, const std::string& name, bool value) {
  auto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::BOOL);
  tensor.add_int32_data(value ? 1 : 0);
}

// --- Loop ---

/// y = tanh(... tanh(x w) w ...), and all of them as scans; `turns` times.
ModelMaker repeated(std::int64_t turns) {
  ModelMaker model;
  model.input("x", {2, 4}).weight("w", {4, 4}).output("y").output("all").integers("m", {turns});
  add_bool(model, "true", true);
  Inner body = inner(model.node("Loop", {"m", "true", "x"}, {"y", "all"}));
  body.inputs({"i", "c", "s"}).outputs({"c", "t", "t"});
  body.node("MatMul", {"s", "w"}, {"p"});
  body.node("Tanh", {"p"}, {"t"});
  return model;
}

TEST(Loop, IsItsTurnsWithSharedWeights) {
  const Graph graph = read(repeated(3));
  EXPECT_EQ(count(graph, "Loop"), 0);
  EXPECT_EQ(count(graph, "MatMul"), 3);
  EXPECT_EQ(shape_of(graph, "y"), (Shape{2, 4}));
  EXPECT_EQ(shape_of(graph, "all"), (Shape{3, 2, 4}));
  const auto parameters =
      std::count_if(graph.tensors().begin(), graph.tensors().end(),
                    [](const Tensor& tensor) { return tensor.kind == TensorKind::parameter; });
  EXPECT_EQ(parameters, 1);
  EXPECT_EQ(graph.tensor(*graph.find_tensor("w")).consumers.size(), 3U);
}

TEST(Loop, OfOneTurnOrNone) {
  EXPECT_EQ(shape_of(read(repeated(1)), "all"), (Shape{1, 2, 4}));
  EXPECT_EQ(
      error_of(repeated(0)),
      "net.onnx [node 'Loop_0' (Loop)]: output 'all' of a loop without iterations has no shape");
  ModelMaker model = repeated(0);
  model.graph().mutable_output()->RemoveLast();
  model.graph().mutable_node(0)->mutable_output()->RemoveLast();
  model.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_output()->RemoveLast();
  const Graph graph = read(model);
  ASSERT_EQ(graph.operators().size(), 1U);
  EXPECT_EQ(graph.operators()[0].op_type, "Identity");
}

TEST(Loop, EndsWhenItsConditionDoes) {
  ModelMaker model; // while (i + 1 < 5), without a number of turns
  model.input("x", {2}).output("y").integers("five", {5});
  add_bool(model, "true", true);
  Inner body = inner(model.node("Loop", {"", "true", "x"}, {"y"}));
  body.inputs({"i", "c", "s"}).outputs({"more", "t"}).integers("one", {1});
  body.node("Add", {"i", "one"}, {"next"});
  body.node("Less", {"next", "five"}, {"more"});
  body.node("Sin", {"s"}, {"t"});
  EXPECT_EQ(count(read(model), "Sin"), 5);
  model.graph().mutable_initializer(1)->set_int32_data(0, 0); // never begins
  EXPECT_EQ(count(read(model), "Sin"), 0);
}

TEST(Loop, OnDataIsRefused) {
  ModelMaker turns = repeated(2);
  turns.graph().mutable_initializer(1)->set_name("other");
  turns.input("m", {}, onnx::TensorProto::INT64);
  EXPECT_EQ(error_of(turns),
            "net.onnx [node 'Loop_0' (Loop)]: the number of iterations depends on data");
  ModelMaker ends = repeated(2);
  ends.input("b", {}, onnx::TensorProto::BOOL);
  ends.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_output(0)->set_name("b");
  EXPECT_EQ(error_of(ends),
            "net.onnx [node 'Loop_0' (Loop)]: whether iteration 0 is the last one depends on data");
}

TEST(Loop, IsBounded) {
  EXPECT_EQ(error_of(repeated(std::int64_t{1} << 40)),
            "net.onnx [node 'Loop_0' (Loop)]: unrolled, the network has more than 100000 nodes");
  ModelMaker empty; // a body of no nodes
  empty.input("x", {2}).output("y");
  add_bool(empty, "true", true);
  inner(empty.node("Loop", {"", "true", "x"}, {"y"})).inputs({"i", "c", "s"}).outputs({"c", "s"});
  EXPECT_EQ(error_of(empty),
            "net.onnx [node 'Loop_0' (Loop)]: unrolled, the network has more than 100000 nodes");
  ModelMaker names = repeated(90'000);
  names.graph().mutable_node(0)->set_name(std::string(10'000, 'n'));
  EXPECT_NE(error_of(names).find("256 MiB of names"), std::string::npos);
}

TEST(Loop, NestedTooDeeplyIsRefused) {
  for (const int depth : {8, 9}) {
    ModelMaker model;
    model.input("x", {2}).output("y").integers("m", {1});
    add_bool(model, "true", true);
    onnx::NodeProto* loop = &model.node("Loop", {"m", "true", "x"}, {"y"});
    for (int i = 0; i < depth; ++i) {
      Inner body = inner(*loop);
      body.inputs({"i", "c", "s"}).outputs({"c", "t"});
      loop = &body.node(i + 1 < depth ? "Loop" : "Sin", {}, {"t"});
      if (i + 1 < depth) {
        loop->add_input("m");
        loop->add_input("true");
      }
      loop->add_input("s");
    }
    if (depth == 8)
      EXPECT_EQ(count(read(model), "Sin"), 1);
    else
      EXPECT_NE(error_of(model).find("operators with subgraphs"), std::string::npos);
  }
}

TEST(Loop, WithBodiesThatDoNotFit) {
  ModelMaker model = repeated(2);
  model.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->add_input()->set_name("k");
  EXPECT_EQ(error_of(model),
            "net.onnx [node 'Loop_0' (Loop), attribute 'body']: a body of 4 inputs "
            "and 3 outputs does not fit a loop with 1 carried values and 2 "
            "outputs");
}

TEST(Loop, NamesWithinMayBeThoseOutside) {
  ModelMaker model; // "x" and "h" are both outside and inside; "Loop_1/0/h" is in the file, too
  model.input("x", {3}).output("y").output("h").output("Loop_1/0/h").integers("m", {2});
  add_bool(model, "true", true);
  model.node("Cos", {"x"}, {"h"});
  Inner body = inner(model.node("Loop", {"m", "true", "h"}, {"y"}));
  model.node("Exp", {"x"}, {"Loop_1/0/h"});
  body.inputs({"i", "c", "x"}).outputs({"c", "h"});
  body.node("Sin", {"x"}, {"h"});
  const Graph graph = read(model);
  const Operator& last = graph.op(*graph.tensor(*graph.find_tensor("y")).producer);
  const Operator& second = graph.op(*graph.tensor(*last.inputs[0]).producer);
  const Operator& first = graph.op(*graph.tensor(*second.inputs[0]).producer);
  EXPECT_EQ(second.op_type, "Sin");
  EXPECT_EQ(first.op_type, "Sin");
  EXPECT_EQ(graph.tensor(*first.inputs[0]).name, "h");
}

TEST(Loop, AConstantWithinIsOneForAllTurns) {
  ModelMaker model = repeated(4);
  auto& body = *model.graph().mutable_node(0)->mutable_attribute(0)->mutable_g();
  auto& constant = *body.add_node(); // first in the body
  constant.set_op_type("Constant");
  constant.add_output("large");
  auto& tensor = *constant.add_attribute();
  tensor.set_name("value");
  tensor.set_type(onnx::AttributeProto::TENSOR);
  tensor.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  tensor.mutable_t()->add_dims(4);
  for (const float value : {0.1F, 0.7F, -0.3F, 0.2F})
    tensor.mutable_t()->add_float_data(value);
  for (int i = body.node_size() - 1; i > 0; --i)
    body.mutable_node()->SwapElements(i, i - 1);
  body.mutable_node(2)->set_op_type("Add"); // instead of tanh
  body.mutable_node(2)->add_input("large");
  const Graph graph = read(model);
  const Operator& add = *std::find_if(graph.operators().begin(), graph.operators().end(),
                                      [](const Operator& op) { return op.op_type == "Add"; });
  EXPECT_EQ(graph.tensor(*add.inputs[1]).consumers.size(), 4U);
}

TEST(Loop, UnknownOperatorsWithinAreReportedOnce) {
  ModelMaker model = repeated(3);
  auto& body = *model.graph().mutable_node(0)->mutable_attribute(0)->mutable_g();
  body.mutable_node(1)->set_op_type("Curl");
  EXPECT_EQ(error_of(model), "net.onnx [node 'Loop_0/0/1:t' (Curl)]: operator Curl of domain "
                             "'ai.onnx' is not supported");
  OnnxReadOptions options;
  options.explain = [](const NetworkOutline& outline) {
    EXPECT_EQ(outline.unsupported.size(), 1U);
    return std::vector<InputProblem>{{{}, "seen", ""}};
  };
  EXPECT_THROW(read_onnx_bytes(model.bytes(), "net.onnx", options), InputError);
}

TEST(Loop, OtherOperatorsWithGraphsAreRefused) {
  ModelMaker model;
  model.input("x", {2}).output("y").node("SequenceConstruct", {"x"}, {"s"});
  Inner body = inner(model.node("SequenceMap", {"s"}, {"t"}));
  body.inputs({"a"}).outputs({"b"}).node("Sin", {"a"}, {"b"});
  model.node("SequenceAt", {"t", "zero"}, {"y"});
  model.integers("zero", {0});
  EXPECT_EQ(error_of(model), "net.onnx [node 'SequenceMap_1' (SequenceMap), attribute 'body']: "
                             "operators with subgraphs are not supported");
}

// --- Scan ---

TEST(Scan, WalksAlongItsInputs) {
  ModelMaker model; // sums up the rows of x from the last to the first
  model.input("x", {2, 5, 3}).input("zero", {2, 3}).output("sum").output("sums");
  auto& node = model.node("Scan", {"zero", "x"}, {"sum", "sums"});
  ModelMaker::set(node, "num_scan_inputs", std::int64_t{1});
  ModelMaker::set(node, "scan_input_axes", Shape{1});
  ModelMaker::set(node, "scan_input_directions", Shape{1});
  ModelMaker::set(node, "scan_output_axes", Shape{2});
  Inner body = inner(node);
  body.inputs({"before", "row"}).outputs({"after", "after"});
  body.node("Add", {"before", "row"}, {"after"});
  const Graph graph = read(model);
  EXPECT_EQ(count(graph, "Add"), 5);
  EXPECT_EQ(shape_of(graph, "sum"), (Shape{2, 3}));
  EXPECT_EQ(shape_of(graph, "sums"), (Shape{2, 3, 5}));
  const Operator& split = *std::find_if(graph.operators().begin(), graph.operators().end(),
                                        [](const Operator& op) { return op.op_type == "Split"; });
  const auto add = std::find_if(graph.operators().begin(), graph.operators().end(),
                                [](const Operator& op) { return op.op_type == "Add"; });
  const Operator& squeeze = graph.op(*graph.tensor(*add->inputs[1]).producer);
  EXPECT_EQ(squeeze.inputs[0], split.outputs[4]);
}

// --- Sequences ---

TEST(Sequences, AreLookedUpWhileReading) {
  ModelMaker model; // [a, b] -> [c, a, b] -> [c, b]
  model.input("x", {2, 3}).output("y").output("n").integers("zero", {0}).integers("back", {-1});
  for (const char* op : {"Sin", "Cos", "Exp"})
    model.node(op, {"x"}, {std::string(op) + "_x"});
  model.integers("second", {-2});
  model.node("SequenceConstruct", {"Sin_x", "Cos_x"}, {"s"});
  model.node("SequenceInsert", {"s", "Exp_x", "zero"}, {"t"});
  model.node("SequenceErase", {"t", "second"}, {"u"});
  model.node("SequenceAt", {"u", "zero"}, {"first"});
  model.node("SequenceAt", {"u", "back"}, {"last"});
  model.node("SequenceLength", {"u"}, {"n"});
  model.node("Sub", {"first", "last"}, {"y"});
  const Graph graph = read(model);
  ASSERT_EQ(graph.operators().size(), 3U); // the sine went
  const Operator& sub = graph.operators()[2];
  EXPECT_EQ(graph.tensor(*sub.inputs[0]).name, "Exp_x");
  EXPECT_EQ(graph.tensor(*sub.inputs[1]).name, "Cos_x");
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(*graph.tensor(*graph.find_tensor("n")).values),
            std::vector<std::int64_t>{2});
}

TEST(Sequences, AreSplitAndJoined) {
  for (const bool stacked : {false, true}) {
    ModelMaker model;
    model.input("x", {7, 3}).output("y").integers("sizes", {3, 4});
    auto& length = *model.graph().add_initializer(); // a scalar: parts of 3, 3 and 1
    length.set_name("length");
    length.set_data_type(onnx::TensorProto::INT64);
    length.add_int64_data(3);
    auto& split = stacked ? model.node("SplitToSequence", {"x"}, {"s"})
                          : model.node("SplitToSequence", {"x", "length"}, {"s"});
    if (stacked) {
      ModelMaker::set(split, "axis", std::int64_t{-1});
      ModelMaker::set(split, "keepdims", std::int64_t{0});
    }
    auto& join = model.node("ConcatFromSequence", {"s"}, {"y"});
    ModelMaker::set(join, "axis", std::int64_t{stacked ? -1 : 0});
    ModelMaker::set(join, "new_axis", std::int64_t{stacked});
    const Graph graph = read(model);
    EXPECT_EQ(shape_of(graph, "y"), (Shape{7, 3}));
    EXPECT_EQ(graph.operators()[0].op_type, "Split");
    EXPECT_EQ(graph.operators()[0].outputs.size(), 3U);
    EXPECT_EQ(shape_of(graph, "SplitToSequence_0/parts/2"), (stacked ? Shape{7, 1} : Shape{1, 3}));
  }
}

TEST(Sequences, WhatIsWrongIsSaid) {
  ModelMaker data;
  data.input("x", {2, 3}).input("at", {}, onnx::TensorProto::INT64).output("y");
  data.node("SplitToSequence", {"x"}, {"s"});
  data.node("SequenceAt", {"s", "at"}, {"y"});
  EXPECT_EQ(error_of(data), "net.onnx [node 'SequenceAt_1' (SequenceAt), input 1]: the position "
                            "depends on data");
  ModelMaker length;
  length.input("x", {2, 3}).input("n", {}, onnx::TensorProto::INT64).output("y");
  length.node("SplitToSequence", {"x", "n"}, {"s"});
  length.node("SequenceLength", {"s"}, {"y"});
  EXPECT_EQ(error_of(length), "net.onnx [node 'SplitToSequence_0' (SplitToSequence), input 1]: the "
                              "length of a part depends on data");
  ModelMaker far;
  far.input("x", {2, 3}).output("y").integers("two", {2});
  far.node("SplitToSequence", {"x"}, {"s"});
  far.node("SequenceAt", {"s", "two"}, {"y"});
  EXPECT_EQ(error_of(far), "net.onnx [node 'SequenceAt_1' (SequenceAt), input 1]: the position is "
                           "outside a sequence of 2");
  ModelMaker empty;
  empty.output("y");
  empty.node("SequenceEmpty", {}, {"s"});
  ModelMaker::set(empty.node("ConcatFromSequence", {"s"}, {"y"}), "axis", std::int64_t{0});
  EXPECT_EQ(error_of(empty),
            "net.onnx [node 'ConcatFromSequence_1' (ConcatFromSequence)]: the sequence is empty");
  ModelMaker tensor;
  tensor.input("x", {2, 3}).output("y");
  tensor.node("SequenceLength", {"x"}, {"y"});
  EXPECT_EQ(error_of(tensor),
            "net.onnx [node 'SequenceLength_0' (SequenceLength)]: input 0 is not a sequence");
  ModelMaker sequence;
  sequence.input("x", {2, 3}).output("y");
  sequence.node("SequenceConstruct", {"x"}, {"s"});
  sequence.node("Relu", {"s"}, {"y"});
  EXPECT_EQ(error_of(sequence), "net.onnx [node 'Relu_1' (Relu)]: input 's' is a sequence where a "
                                "tensor is expected");
  ModelMaker output;
  output.input("x", {2, 3}).output("s");
  output.node("SequenceConstruct", {"x", "x"}, {"s"});
  EXPECT_NE(error_of(output).find("net.onnx [tensor 's']: this graph output is a sequence"),
            std::string::npos);
}

/// Rows of x, doubled, in a list that a loop fills.
ModelMaker collected(std::int64_t turns) {
  ModelMaker model;
  model.input("x", {3, 2}).output("y").integers("m", {turns}).integers("axis", {0});
  add_bool(model, "true", true);
  model.node("SequenceEmpty", {}, {"none"});
  Inner body = inner(model.node("Loop", {"m", "true", "none"}, {"rows"}));
  body.inputs({"i", "c", "list"}).outputs({"c", "longer"});
  body.node("Gather", {"x", "i"}, {"row"});
  body.node("Add", {"row", "row"}, {"twice"});
  body.node("SequenceInsert", {"list", "twice"}, {"longer"});
  auto& join = model.node("ConcatFromSequence", {"rows"}, {"y"});
  ModelMaker::set(join, "axis", std::int64_t{0});
  ModelMaker::set(join, "new_axis", std::int64_t{1});
  return model;
}

TEST(Sequences, AreCarriedByLoops) {
  const Graph graph = read(collected(3));
  EXPECT_EQ(count(graph, "Add"), 3);
  EXPECT_EQ(shape_of(graph, "y"), (Shape{3, 2}));
}

TEST(Sequences, OfPytorchsRepeatInterleave) {
  // x [3, 2, 5], every slice of axis 1 four times: PyTorch reshapes [3, 1, 4, 5] by [0, -1, 0],
  // which ONNX reads as [3, 5, 4].
  for (const bool torch : {true, false}) {
    ModelMaker model;
    model.input("x", {3, 2, 5}).output("y").integers("m", {2});
    add_bool(model, "true", true);
    if (torch)
      model.proto().set_producer_name("pytorch");
    model.integers("ones", {1, 1}).integers("repeats", {3, 1, 4, 5});
    ModelMaker::set(model.node("SplitToSequence", {"x", "ones"}, {"s"}), "axis", std::int64_t{1});
    model.node("SequenceEmpty", {}, {"none"});
    Inner body = inner(model.node("Loop", {"m", "true", "none"}, {"all"}));
    body.inputs({"i", "c", "list"}).outputs({"c", "longer"});
    const auto constant = [&](const std::string& name, const Shape& values) {
      auto& tensor = *body.node("Constant", {}, {name}).add_attribute();
      tensor.set_name("value");
      tensor.set_type(onnx::AttributeProto::TENSOR);
      tensor.mutable_t()->set_data_type(onnx::TensorProto::INT64);
      tensor.mutable_t()->add_dims(static_cast<std::int64_t>(values.size()));
      for (const auto value : values)
        tensor.mutable_t()->add_int64_data(value);
    };
    body.node("SequenceAt", {"s", "i"}, {"slice"});
    constant("axis", {2});
    body.node("Unsqueeze", {"slice", "axis"}, {"apart"});
    body.node("Expand", {"apart", "repeats"}, {"repeated"});
    constant("shape", {0, -1, 0});
    body.node("Reshape", {"repeated", "shape"}, {"back"});
    body.node("SequenceInsert", {"list", "back"}, {"longer"});
    ModelMaker::set(model.node("ConcatFromSequence", {"all"}, {"y"}), "axis", std::int64_t{1});
    EXPECT_EQ(shape_of(read(model), "y"), (torch ? Shape{3, 8, 5} : Shape{3, 10, 4}));
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet
