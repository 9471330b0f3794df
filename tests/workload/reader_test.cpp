// Reading ONNX: what folds, what kinds tensors get, and what is refused with which words.
#include "workload/models.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace monet {
namespace MONET_TEST_FILE {

using test::ModelMaker;

Graph read(const ModelMaker& model, const OnnxReadOptions& options = {}) {
  return read_onnx_bytes(model.bytes(), "net.onnx", options);
}

std::string error_of(const ModelMaker& model, const OnnxReadOptions& options = {}) {
  try {
    read(model, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const Tensor& named(const Graph& graph, const std::string& name) {
  return graph.tensor(graph.find_tensor(name).value());
}

// --- what is read ---

TEST(Reader, BindsTheBatchEverywhere) {
  ModelMaker model;
  model.input("x", {-1, 4}).input("y", {4, -1}).output("z"); // y's second axis is "batch" too
  model.node("MatMul", {"x", "y"}, {"z"});
  OnnxReadOptions options;
  options.batch = 3;
  const Graph graph = read(model, options);
  EXPECT_EQ(named(graph, "y").shape, (test::Shape{4, 3}));
  EXPECT_EQ(named(graph, "z").shape, (test::Shape{3, 3}));
  EXPECT_EQ(named(graph, "x").kind, TensorKind::input);
}

// Reshape to [batch, 12] where 12 = 3 * 4 is computed from x's shape by Shape, Gather, Mul,
// Unsqueeze, Concat.
TEST(Reader, FoldsShapeArithmetic) {
  ModelMaker model;
  model.input("x", {-1, 3, 4}).output("y");
  model.integers("one", {1}).integers("two", {2}).integers("zero", {0});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "zero"}, {"b"});
  model.node("Gather", {"shape", "one"}, {"h"});
  model.node("Gather", {"shape", "two"}, {"w"});
  model.node("Mul", {"h", "w"}, {"hw"});
  auto& concat = model.node("Concat", {"b", "hw"}, {"target"});
  ModelMaker::set(concat, "axis", std::int64_t{0});
  model.node("Reshape", {"x", "target"}, {"y"});
  OnnxReadOptions options;
  options.batch = 5;
  const Graph graph = read(model, options);
  ASSERT_EQ(graph.operators().size(), 1U);
  EXPECT_EQ(graph.operators()[0].op_type, "Reshape");
  EXPECT_EQ(named(graph, "y").shape, (test::Shape{5, 12}));
  EXPECT_FALSE(graph.find_tensor("shape").has_value());
}

std::vector<std::int64_t> folded(const Graph& graph, const std::string& name) {
  const auto& values = named(graph, name).values;
  return values ? std::get<std::vector<std::int64_t>>(*values) : std::vector<std::int64_t>{};
}

// Constant graph outputs show what was folded. ONNX divides towards zero and takes the divisor's
// sign in Mod.
TEST(Reader, FoldsAsOnnxDefines) {
  using List = std::vector<std::int64_t>;
  ModelMaker model;
  model.integers("a", {7, -7, 9, 4}).integers("b", {2, 2, -2, 3});
  model.integers("minus", {-1})
      .integers("far", {-100})
      .integers("zero", {0})
      .integers("order", {3, -4});
  for (const char* op : {"Add", "Div", "Mod", "Greater"})
    model.node(op, {"a", "b"}, {op});
  model.node("Where", {"Greater", "a", "b"}, {"where"});
  model.node("Slice", {"a", "minus", "far", "zero", "minus"}, {"reversed"});
  model.node("Gather", {"a", "order"}, {"gathered"});
  ModelMaker::set(model.node("ReduceProd", {"b"}, {"product"}), "keepdims", std::int64_t{1});
  ModelMaker::set(model.node("Concat", {"order", "zero"}, {"joined"}), "axis", std::int64_t{0});
  ModelMaker::set(model.node("Split", {"a"}, {"front", "back"}), "axis", std::int64_t{0});
  model.node("Unsqueeze", {"a", "zero"}, {"row"});
  ModelMaker::set(model.node("Transpose", {"row"}, {"column"}), "perm", test::Shape{1, 0});
  model.node("Add", {"column", "row"}, {"table"});
  model.node("Trilu", {"table"}, {"upper"});
  for (const char* name : {"Add", "Div", "Mod", "where", "reversed", "gathered", "product",
                           "joined", "back", "upper"}) {
    model.output(name);
  }
  const Graph graph = read(model);
  EXPECT_TRUE(graph.operators().empty());
  EXPECT_EQ(folded(graph, "Add"), (List{9, -5, 7, 7}));
  EXPECT_EQ(folded(graph, "Div"), (List{3, -3, -4, 1}));
  EXPECT_EQ(folded(graph, "Mod"), (List{1, 1, -1, 1}));
  EXPECT_EQ(folded(graph, "where"), (List{7, 2, 9, 4}));
  EXPECT_EQ(folded(graph, "reversed"), (List{4, 9, -7, 7}));
  EXPECT_EQ(folded(graph, "gathered"), (List{4, 7}));
  EXPECT_EQ(folded(graph, "product"), (List{-24}));
  EXPECT_EQ(folded(graph, "joined"), (List{3, -4, 0}));
  EXPECT_EQ(folded(graph, "back"), (List{9, 4}));
  EXPECT_EQ(folded(graph, "upper"), (List{14, 0, 16, 11, 0, -14, 2, -3, 0, 0, 18, 13, 0, 0, 0, 8}));
}

// The angles of rotary positions: a product and its cosine, both of constants.
TEST(Reader, ConstantsThatAreNotFoldedStayOperators) {
  ModelMaker model;
  onnx::AttributeProto& numbers = *model.node("Constant", {}, {"positions"}).add_attribute();
  numbers.set_name("value_floats");
  numbers.set_type(onnx::AttributeProto::FLOATS);
  numbers.add_floats(0.0F);
  numbers.add_floats(1.0F);
  model.node("Add", {"positions", "positions"}, {"angles"});
  model.node("Cos", {"angles"}, {"cosines"});
  model.node("Softmax", {"angles"}, {"shares"});
  model.input("x", {3, 2});
  model.node("Mul", {"x", "cosines"}, {"y"});
  model.node("Mul", {"y", "shares"}, {"z"});
  model.output("z");
  const Graph graph = read(model);
  EXPECT_EQ(std::get<std::vector<double>>(named(graph, "cosines").values.value()),
            (std::vector<double>{1.0, std::cos(2.0)}));
  ASSERT_TRUE(named(graph, "shares").producer);
  EXPECT_EQ(graph.op(*named(graph, "shares").producer).op_type, "Softmax");
}

TEST(Reader, KindsFollowFromUse) {
  ModelMaker model;
  model.input("x", {1, 2, 4, 4}).output("y");
  model.weight("w", {2, 2, 1, 1}).weight("scale", {2}).weight("bias", {2});
  model.weight("mean", {2}).weight("var", {2});
  model.node("Conv", {"x", "w"}, {"c"});
  auto& norm = model.node("BatchNormalization", {"c", "scale", "bias", "mean", "var"},
                          {"y", "new_mean", "new_var"});
  ModelMaker::set(norm, "training_mode", std::int64_t{1});
  const Graph graph = read(model);
  EXPECT_EQ(named(graph, "w").kind, TensorKind::parameter);
  EXPECT_EQ(named(graph, "scale").kind, TensorKind::parameter);
  EXPECT_EQ(named(graph, "mean").kind, TensorKind::buffer);
  EXPECT_EQ(named(graph, "new_var").alias_of, graph.find_tensor("var"));
  EXPECT_EQ(parameter_count(graph), 4 + 2 + 2);
}

TEST(Reader, KeepsTheBitsThatZigZagsAttributesGive) {
  ModelMaker model;
  model.input("x", {1, 8}).output("y");
  ModelMaker::set(model.node("Relu", {"x"}, {"y"}), "act_size", 4);
  const Graph graph = read(model);
  EXPECT_EQ(graph.op(OpId(0)).attributes.integer("act_size", 8), 4);
}

TEST(Reader, SortsNodesAndNamesThem) {
  ModelMaker model;
  model.input("x", {2}).output("z");
  model.node("Relu", {"y"}, {"z"}).set_name("");
  model.node("Exp", {"x"}, {"y"}).set_name("");
  model.node("Exp", {"x"}, {"dead"});
  const Graph graph = read(model);
  ASSERT_EQ(graph.operators().size(), 2U);
  EXPECT_EQ(graph.operators()[0].name, "y");
  EXPECT_EQ(graph.operators()[1].name, "z");
  verify(graph);
}

TEST(Reader, InlinesModelFunctions) {
  ModelMaker model;
  model.import("com.example", 1).input("x", {2}).output("y");
  auto& function = *model.proto().add_functions();
  function.set_name("Gate");
  function.set_domain("com.example");
  function.add_input("a");
  function.add_output("b");
  auto& import = *function.add_opset_import();
  import.set_version(17);
  auto& first = *function.add_node();
  first.set_op_type("Sigmoid");
  first.add_input("a");
  first.add_output("s");
  auto& second = *function.add_node();
  second.set_op_type("Sub");
  second.add_input("a");
  second.add_input("s");
  second.add_output("b");
  model.node("Gate", {"x"}, {"h"}, "com.example");
  model.node("Gate", {"h"}, {"y"}, "com.example");
  const Graph graph = read(model);
  ASSERT_EQ(graph.operators().size(), 4U);
  EXPECT_EQ(graph.operators()[3].op_type, "Sub");
  verify(graph);
}

// Opset 9: Squeeze and Slice have attributes; both get the form of opset 17.
TEST(Reader, ReadsOldOpsets) {
  ModelMaker model(9);
  model.input("x", {4, 1, 6}).output("z");
  ModelMaker::set(model.node("Squeeze", {"x"}, {"y"}), "axes", test::Shape{1});
  auto& slice = model.node("Slice", {"y"}, {"z"});
  ModelMaker::set(slice, "starts", test::Shape{1});
  ModelMaker::set(slice, "ends", test::Shape{3});
  const Graph graph = read(model);
  EXPECT_EQ(named(graph, "z").shape, (test::Shape{2, 6}));
  EXPECT_EQ(graph.operators()[1].inputs.size(), 3U);
}

// 4 -> (4-1)*2 + 3 - 2 = 7 by the attributes, 8 by the declared output: one more row is padded.
TEST(Reader, DeclaredTransposedOutputSetsOutputPadding) {
  ModelMaker model;
  model.input("x", {1, 1, 4}).weight("w", {1, 1, 3}).output("y");
  auto& node = model.node("ConvTranspose", {"x", "w"}, {"y"});
  ModelMaker::set(node, "strides", test::Shape{2});
  ModelMaker::set(node, "pads", test::Shape{1, 1});
  auto& type = *model.graph().mutable_output(0)->mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (const int size : {1, 1, 8})
    type.mutable_shape()->add_dim()->set_dim_value(size);
  const Graph graph = read(model);
  EXPECT_EQ(named(graph, "y").shape, (test::Shape{1, 1, 8}));
  EXPECT_EQ(graph.operators()[0].attributes.integers("output_padding"), (test::Shape{1}));
}

// A mask of 2000 x 2000 is too large to keep: it becomes a buffer without values, and no operator
// makes it.
TEST(Reader, LargeConstantsKeepTheirShapeOnly) {
  ModelMaker model;
  model.input("x", {2000, 2000}).output("y");
  model.integers("shape", {2000, 2000});
  model.node("ConstantOfShape", {"shape"}, {"zeros"});
  model.node("Exp", {"zeros"}, {"ones"});
  model.node("Add", {"x", "ones"}, {"y"});
  const Graph graph = read(model);
  ASSERT_EQ(graph.operators().size(), 1U);
  EXPECT_EQ(named(graph, "ones").kind, TensorKind::buffer);
  EXPECT_FALSE(named(graph, "ones").values.has_value());
}

// --- what is refused ---

TEST(Reader, ListsAllUnsupportedOperators) {
  ModelMaker model;
  model.import("com.example", 1).input("x", {2}).output("z");
  model.node("Foo", {"x"}, {"y"}, "com.example");
  model.node("Bar", {"y"}, {"z"}, "com.example");
  const std::string error = error_of(model);
  EXPECT_TRUE(contains(error, "net.onnx [node 'Foo_0' (com.example.Foo)]: operator Foo of domain "
                              "'com.example' is not supported"));
  EXPECT_TRUE(contains(error, "node 'Bar_1' (com.example.Bar)"));
}

TEST(Reader, UnboundDimensionsNameTheOption) {
  ModelMaker model;
  model.input("x", {-1, 4}).output("y");
  model.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->set_dim_param("sequence");
  model.node("Relu", {"x"}, {"y"});
  const std::string error = error_of(model);
  EXPECT_TRUE(contains(error, "net.onnx [tensor 'x']: dimension 'batch' (axis 0) has no size"));
  EXPECT_TRUE(contains(error, "--batch"));
  EXPECT_TRUE(contains(error, "dimension 'sequence' (axis 1) has no size"));
  EXPECT_TRUE(contains(error, "dimensions: {sequence: ...}"));
}

TEST(Reader, SizesThatDependOnDataAreStated) {
  ModelMaker model;
  model.input("x", {6, 4}).input("mask", {6}, onnx::TensorProto::BOOL).output("y");
  model.node("NonZero", {"mask"}, {"rows"});
  model.node("Transpose", {"rows"}, {"places"});
  model.node("GatherND", {"x", "places"}, {"y"});
  OnnxReadOptions options;
  EXPECT_TRUE(contains(error_of(model), "how many elements are not zero depends on data"));
  EXPECT_TRUE(contains(error_of(model), "--dim rows=..."));
  options.dimensions = {{"row", 2}};
  EXPECT_TRUE(contains(error_of(model, options), "did you mean 'rows'"));
  options.dimensions = {{"rows", 7}};
  EXPECT_TRUE(contains(error_of(model, options), "7 of 6 elements"));
  options.dimensions = {{"rows", 2}};
  const Graph graph = read(model, options);
  EXPECT_EQ(named(graph, "y").shape, (test::Shape{2, 4}));
}

TEST(Reader, WhatIsNotZeroInAConstantIsCounted) {
  ModelMaker model;
  model.input("x", {3, 4}).output("y").integers("mask", {0, 5, 0, -1});
  model.node("NonZero", {"mask"}, {"columns"});
  model.integers("flat", {-1});
  model.node("Reshape", {"columns", "flat"}, {"places"});
  ModelMaker::set(model.node("Gather", {"x", "places"}, {"y"}), "axis", std::int64_t{1});
  EXPECT_EQ(named(read(model), "y").shape, (test::Shape{3, 2}));
}

TEST(Reader, CyclesNameANode) {
  ModelMaker model;
  model.input("x", {2}).output("a");
  model.node("Add", {"x", "b"}, {"a"});
  model.node("Relu", {"a"}, {"b"});
  EXPECT_EQ(error_of(model),
            "net.onnx [node 'Add_0' (Add)]: the node depends on its own output (a cycle)");
}

TEST(Reader, MissingAndDuplicateValues) {
  ModelMaker missing;
  missing.input("x", {2}).output("y");
  missing.node("Add", {"x", "ghost"}, {"y"});
  EXPECT_EQ(error_of(missing), "net.onnx [node 'Add_0' (Add)]: no node computes input 'ghost'");
  ModelMaker twice;
  twice.input("x", {2}).output("y");
  twice.node("Relu", {"x"}, {"y"});
  twice.node("Exp", {"x"}, {"y"});
  EXPECT_EQ(error_of(twice), "net.onnx [node 'Exp_1' (Exp)]: value 'y' is computed twice");
}

TEST(Reader, WrongRankAndSizes) {
  ModelMaker model;
  model.input("x", {1, 3, 8}).weight("w", {4, 3, 3, 3}).output("y");
  model.node("Conv", {"x", "w"}, {"y"});
  EXPECT_TRUE(contains(error_of(model), "net.onnx [node 'Conv_0' (Conv)]: "));
  ModelMaker product;
  product.input("a", {2, 3}).input("b", {4, 5}).output("y");
  product.node("MatMul", {"a", "b"}, {"y"});
  EXPECT_TRUE(contains(error_of(product), "net.onnx [node 'MatMul_0' (MatMul)]: "));
}

TEST(Reader, BadAttributes) {
  ModelMaker zero;
  zero.input("x", {1, 1, 8}).weight("w", {1, 1, 3}).output("y");
  ModelMaker::set(zero.node("Conv", {"x", "w"}, {"y"}), "strides", test::Shape{0});
  EXPECT_EQ(error_of(zero), "net.onnx [node 'Conv_0' (Conv), attribute 'strides']: values of at "
                            "least 1 are expected");
  ModelMaker unknown;
  unknown.input("x", {2}).output("y");
  ModelMaker::set(unknown.node("Relu", {"x"}, {"y"}), "slope", std::int64_t{1});
  EXPECT_TRUE(contains(error_of(unknown), "slope"));
  ModelMaker perm;
  perm.input("x", {2, 3}).output("y");
  ModelMaker::set(perm.node("Transpose", {"x"}, {"y"}), "perm", test::Shape{0, 7});
  EXPECT_TRUE(contains(error_of(perm), "attribute 'perm']: this is not a permutation"));
}

TEST(Reader, NamelessGraphOutput) {
  ModelMaker model;
  model.input("x", {2}).output("");
  model.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(error_of(model), "net.onnx [tensor '']: no node computes this graph output");
}

/// x -> If(size of axis 1 is 1) { Squeeze } else { Identity }, as torch.onnx writes x.squeeze(1).
ModelMaker squeeze_if_one(std::int64_t size) {
  ModelMaker model;
  model.input("x", {2, size, 3}).output("z").integers("one", {1}).integers("axis", {1});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "one"}, {"size"});
  model.node("Equal", {"size", "one"}, {"is_one"});
  model.node("Relu", {"x"}, {"y"}); // read in the branches only
  auto& node = model.node("If", {"is_one"}, {"z"});
  for (const char* name : {"then", "else"}) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(std::string(name) + "_branch");
    attribute.set_type(onnx::AttributeProto::GRAPH);
    auto& graph = *attribute.mutable_g();
    graph.set_name(name);
    auto& inner = *graph.add_node();
    inner.set_op_type(std::string(name) == "then" ? "Squeeze" : "Sigmoid");
    inner.add_input("y");
    if (std::string(name) == "then")
      inner.add_input("axis");
    inner.add_output(std::string(name) + "_out");
    graph.add_output()->set_name(std::string(name) + "_out");
  }
  return model;
}

TEST(Reader, TakesTheBranchOfAKnownCondition) {
  for (const std::int64_t size : {1, 4}) {
    const Graph graph = read_onnx_bytes(squeeze_if_one(size).bytes(), "net.onnx");
    verify(graph);
    ASSERT_EQ(graph.operators().size(), 3U);
    EXPECT_EQ(graph.operators()[1].op_type, size == 1 ? "Squeeze" : "Sigmoid");
    EXPECT_EQ(named(graph, "z").shape, size == 1 ? (test::Shape{2, 3}) : (test::Shape{2, 4, 3}));
  }
}

TEST(Reader, SubgraphsAreRefused) {
  ModelMaker model;
  model.input("x", {2}).input("c", {}, onnx::TensorProto::BOOL).output("y");
  auto& node = model.node("If", {"c"}, {"y"});
  auto& branch = *node.add_attribute();
  branch.set_name("then_branch");
  branch.set_type(onnx::AttributeProto::GRAPH);
  branch.mutable_g()->set_name("then");
  EXPECT_EQ(error_of(model), "net.onnx [node 'If_0' (If), attribute 'then_branch']: operators with "
                             "subgraphs are not supported");
}

TEST(Reader, NewOpsetsThatChangedAnOperator) {
  ModelMaker model(18);
  model.input("x", {2, 3}).input("axes", {1}, onnx::TensorProto::INT64).output("y");
  model.integers("pads", {0, 1}).node("Pad", {"x", "pads", "", "axes"}, {"y"});
  EXPECT_TRUE(contains(error_of(model), "Pad along computed axes of opset 18 is not supported"));
  ModelMaker far(99);
  far.input("x", {2}).output("y");
  far.node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(contains(error_of(far), "opset 99 is not supported"));
}

TEST(Reader, HostileSizes) {
  ModelMaker huge;
  huge.input("x", {1 << 30, 1 << 30, 1 << 30}).output("y");
  huge.node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(contains(error_of(huge), "elements"));
  ModelMaker negative;
  negative.input("x", {2}).weight("w", {-5}).output("y");
  negative.node("Add", {"x", "w"}, {"y"});
  EXPECT_EQ(error_of(negative), "net.onnx [tensor 'w']: an axis has -5 elements");
  ModelMaker recursive;
  recursive.import("f", 1).input("x", {2}).output("y");
  auto& function = *recursive.proto().add_functions();
  function.set_name("F");
  function.set_domain("f");
  function.add_input("a");
  function.add_output("b");
  auto& call = *function.add_node();
  call.set_op_type("F");
  call.set_domain("f");
  call.add_input("a");
  call.add_output("b");
  recursive.node("F", {"x"}, {"y"}, "f");
  EXPECT_TRUE(contains(error_of(recursive), "call each other too deeply"));
}

TEST(Reader, NotOnnx) {
  const auto error = [](std::string_view bytes) -> std::string {
    try {
      read_onnx_bytes(bytes, "net.onnx");
    } catch (const InputError& problem) {
      return problem.what();
    }
    return "no error";
  };
  EXPECT_TRUE(contains(error("not a protobuf"), "net.onnx: this is not an ONNX model"));
  EXPECT_TRUE(contains(error(""), "net.onnx: the file is empty"));
  EXPECT_TRUE(contains(error(std::string_view("PK\x03\x04 data.pkl")), "this is a PyTorch file"));
}

// A truncated or bit-flipped network is refused or read, but never crashes; seeds are the
// positions.
TEST(Reader, DamagedFilesAreNeverFatal) {
  ModelMaker model;
  model.input("x", {1, 2, 4, 4}).weight("w", {2, 2, 3, 3}).output("z");
  auto& conv = model.node("Conv", {"x", "w"}, {"y"});
  ModelMaker::set(conv, "strides", test::Shape{1, 2});
  model.integers("shape", {1, -1});
  model.node("Reshape", {"y", "shape"}, {"z"});
  const std::string good = model.bytes();
  int read_count = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int bit : {0, 3, 7, 8}) {
      std::string bad = bit == 8 ? good.substr(0, at) : good;
      if (bit < 8)
        bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      try {
        read_onnx_bytes(bad, "bad.onnx");
        ++read_count;
      } catch (const InputError&) {
      }
    }
  }
  EXPECT_GT(read_count, 0); // names and documentation may change
}

/// x[:, -1]: a slice without its axis, which folds away where a Gather would copy.
TEST(Reader, TakesOneIndexAsAView) {
  ModelMaker model;
  model.input("x", {2, 5, 3}).output("y");
  auto& index = *model.graph().add_initializer();
  index.set_name("last");
  index.set_data_type(onnx::TensorProto::INT64);
  index.add_int64_data(-1);
  ModelMaker::set(model.node("Gather", {"x", "last"}, {"y"}), "axis", std::int64_t{1});
  const Graph graph = read(model);
  ASSERT_EQ(graph.operators().size(), 2U);
  EXPECT_EQ(graph.operators()[0].op_type, "Slice");
  EXPECT_EQ(graph.operators()[1].op_type, "Squeeze");
  EXPECT_EQ(named(graph, "y").shape, (test::Shape{2, 3}));
}

TEST(Reader, KnowsOneHotOfAComputedDepth) {
  ModelMaker model;
  model.input("i", {2, 4}, onnx::TensorProto::INT64).input("x", {7, 3}).output("y");
  model.node("Shape", {"x"}, {"sizes"});
  model.integers("first", {0});
  model.node("Gather", {"sizes", "first"}, {"depth"});
  model.weight("levels", {2});
  ModelMaker::set(model.node("OneHot", {"i", "depth", "levels"}, {"y"}), "axis", std::int64_t{1});
  EXPECT_EQ(named(read(model), "y").shape, (test::Shape{2, 7, 4}));
}

} // namespace MONET_TEST_FILE
} // namespace monet
