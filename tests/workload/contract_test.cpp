// What every operator expects of its operands and attributes, and models that break it.
#include "workload/models.hpp"
#include "workload/operators/contract.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string_view>

namespace monet {
namespace {

using test::ModelMaker;

TEST(Contract, ABrokenOneIsOurMistakeAfterReading) {
  Graph graph;
  const TensorId x = test::add_tensor(graph, "x", {2, 3});
  const TensorId index = test::add_integers(graph, "index", {0, 1});
  const TensorId y = test::add_tensor(graph, "y", {2, 3});
  test::add_op(graph, "Gather", {x, index}, {y});
  EXPECT_NO_THROW(verify(graph));
  graph.tensor(index).type = ElementType::fp32;
  EXPECT_THROW(verify(graph), InternalError);
  graph.tensor(index).type = ElementType::int64;
  graph.tensor(index).values = std::vector<std::int64_t>{0, 1, 2};
  EXPECT_THROW(verify(graph), InternalError);
}

constexpr int kReal = onnx::TensorProto::FLOAT;
constexpr int kInt32 = onnx::TensorProto::INT32;
constexpr int kInt64 = onnx::TensorProto::INT64;
constexpr std::int64_t kBeyond32Bits = std::int64_t{1} << 32;

/// A model that no one should take, and words of the refusal.
struct Broken {
  const char* name;
  void (*make)(ModelMaker&);
  std::vector<const char*> words;
};

void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.name;
}

/// x -> node -> y with an integer attribute.
void with_integer(ModelMaker& model, const char* op_type, const char* attribute,
                  std::int64_t value) {
  model.input("x", {2, 4}).output("y");
  ModelMaker::set(model.node(op_type, {"x"}, {"y"}), attribute, value);
}

/// Graph output y of a stated shape, for operators whose shape nobody infers.
void stated(ModelMaker& model, const std::string& name, const test::Shape& shape,
            int type = kReal) {
  model.output(name);
  auto& tensor = *model.graph()
                      .mutable_output(model.graph().output_size() - 1)
                      ->mutable_type()
                      ->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (const auto size : shape)
    tensor.mutable_shape()->add_dim()->set_dim_value(size);
}

void own_operator(ModelMaker& model, const char* op_type, const std::vector<std::string>& inputs) {
  model.import("ai.monet", 1);
  model.node(op_type, inputs, {"y"}, "ai.monet");
}

const Broken kBroken[]{
    // element types
    {"RealIndices",
     [](ModelMaker& m) {
       m.input("x", {4, 3}).input("i", {2}, kReal).output("y").node("Gather", {"x", "i"}, {"y"});
     },
     {"Gather", "i"}},
    {"RealSizesOfAReshape",
     [](ModelMaker& m) {
       m.input("x", {4, 3}).weight("s", {2}).output("y").node("Reshape", {"x", "s"}, {"y"});
     },
     {"Reshape"}},
    {"RealRepeats",
     [](ModelMaker& m) {
       m.input("x", {4, 3}).weight("r", {2}).node("Tile", {"x", "r"}, {"y"});
       stated(m, "y", {8, 3});
     },
     {"Tile"}},
    {"IntegerMean",
     [](ModelMaker& m) {
       m.input("x", {2, 3, 4}).input("s", {3}, kInt32).input("b", {3}).output("y");
       m.node("InstanceNormalization", {"x", "s", "b"}, {"y"});
     },
     {"InstanceNormalization"}},
    {"IntegerWithReal",
     [](ModelMaker& m) {
       m.input("x", {2, 3}).input("w", {2, 3}, kInt32).output("y").node("Add", {"x", "w"}, {"y"});
     },
     {"Add", "input 1", "real numbers are expected"}},
    {"IntegerWeight",
     [](ModelMaker& m) {
       m.input("x", {2, 3}).input("w", {3, 2}, kInt64).output("y");
       m.node("MatMul", {"x", "w"}, {"y"});
     },
     {"MatMul", "input 1", "real numbers are expected"}},
    {"RealLabels",
     [](ModelMaker& m) {
       m.input("x", {2, 3}).input("t", {2}, kReal).output("y");
       m.node("SoftmaxCrossEntropyLoss", {"x", "t"}, {"y"});
     },
     {"SoftmaxCrossEntropyLoss"}},
    // counts
    {"OneOperandTooMany",
     [](ModelMaker& m) {
       m.input("x", {2, 3}).output("y").node("Relu", {"x", "x"}, {"y"});
     },
     {"Relu"}},
    {"OneOperandTooFew",
     [](ModelMaker& m) {
       m.input("x", {2, 3}).output("y").node("Add", {"x"}, {"y"});
     },
     {"Add"}},
    {"GradientWithoutStatistics",
     [](ModelMaker& m) {
       m.input("x", {2, 3});
       own_operator(m, "RMSNormGrad", {"x", "x", "x"});
       stated(m, "y", {2, 3});
     },
     {"RMSNormGrad", "input 3", "it is missing"}},
    {"MoreGradientsThanOperands",
     [](ModelMaker& m) {
       m.input("x", {2, 3}).import("ai.monet", 1);
       m.node("MaxGrad", {"x", "x"}, {"y", "z"}, "ai.monet");
       stated(m, "y", {2, 3});
       stated(m, "z", {2, 3});
     },
     {"MaxGrad", "more gradients than operands"}},
    {"ProductGradientOfNothing",
     [](ModelMaker& m) {
       m.input("x", {2, 3});
       own_operator(m, "MulGrad", {"x"});
       stated(m, "y", {2, 3});
     },
     {"MulGrad", "no factor"}},
    // attributes
    {"AxisOfASplitBeyond32Bits",
     [](ModelMaker& m) { with_integer(m, "Split", "axis", kBeyond32Bits + 1); },
     {"Split", "attribute 'axis'", "32 bits"}},
    {"AxisOfASplitBeyond32BitsAndTheRank",
     [](ModelMaker& m) { with_integer(m, "Split", "axis", kBeyond32Bits + 2); },
     {"Split", "attribute 'axis'", "32 bits"}},
    {"AxisOfAConcatenationBeyond32Bits",
     [](ModelMaker& m) { with_integer(m, "Concat", "axis", kBeyond32Bits); },
     {"Concat", "attribute 'axis'", "32 bits"}},
    {"AxisOfAGatherBeyond32Bits",
     [](ModelMaker& m) {
       m.input("x", {2, 4}).input("i", {1}, kInt64).output("y");
       ModelMaker::set(m.node("Gather", {"x", "i"}, {"y"}), "axis", kBeyond32Bits);
     },
     {"Gather", "attribute 'axis'", "32 bits"}},
    {"AxesOfASqueezeBeyond32Bits",
     [](ModelMaker& m) {
       m.proto().mutable_opset_import(0)->set_version(11);
       m.input("x", {1, 4}).output("y");
       ModelMaker::set(m.node("Squeeze", {"x"}, {"y"}), "axes", test::Shape{kBeyond32Bits});
     },
     {"Squeeze", "attribute 'axes'", "32 bits"}},
    {"AxesOfAReductionBeyond32Bits",
     [](ModelMaker& m) {
       m.input("x", {2, 4}).integers("a", {kBeyond32Bits}).output("y");
       m.node("ReduceSum", {"x", "a"}, {"y"});
     },
     {"ReduceSum"}},
    {"AxesOfAnInsertionBeyond32Bits",
     [](ModelMaker& m) {
       m.input("x", {2, 4}).integers("a", {kBeyond32Bits}).output("y");
       m.node("Unsqueeze", {"x", "a"}, {"y"});
     },
     {"Unsqueeze"}},
    {"AxesOfASliceBeyond32Bits",
     [](ModelMaker& m) {
       m.input("x", {2, 4}).integers("s", {0}).integers("e", {1}).integers("a", {kBeyond32Bits});
       m.output("y").node("Slice", {"x", "s", "e", "a"}, {"y"});
     },
     {"Slice"}},
    {"SizesOfAReshapeThatOverflow",
     [](ModelMaker& m) {
       m.input("x", {2, 4}).integers("s", {kBeyond32Bits, kBeyond32Bits, 8}).output("y");
       m.node("Reshape", {"x", "s"}, {"y"});
     },
     {"Reshape"}},
    {"NegativeRepeats",
     [](ModelMaker& m) {
       m.input("x", {2, 4}).integers("r", {-1, 1}).output("y");
       m.node("Tile", {"x", "r"}, {"y"});
     },
     {"Tile"}},
    {"PadsBelowNothing",
     [](ModelMaker& m) {
       m.input("x", {2, 4}).integers("p", {0, -3, 0, -3}).output("y");
       m.node("Pad", {"x", "p"}, {"y"});
     },
     {"Pad"}},
    {"LeastAxis",
     [](ModelMaker& m) {
       with_integer(m, "Softmax", "axis", std::numeric_limits<std::int64_t>::min());
     },
     {"Softmax", "attribute 'axis'", "32 bits"}},
    {"AxisThatIsAList",
     [](ModelMaker& m) {
       m.input("x", {2, 4}).output("y");
       ModelMaker::set(m.node("Softmax", {"x"}, {"y"}), "axis", test::Shape{0, 1});
     },
     {"Softmax", "attribute 'axis'", "an integer is expected"}},
    {"SlopeThatIsAnInteger",
     [](ModelMaker& m) { with_integer(m, "LeakyRelu", "alpha", 1); },
     {"LeakyRelu", "attribute 'alpha'", "a number is expected"}},
    // empty tensors
    {"SequenceOfNothing",
     [](ModelMaker& m) {
       m.input("x", {0, 1, 4}).weight("w", {1, 20, 4}).weight("r", {1, 20, 5}).output("y");
       ModelMaker::set(m.node("LSTM", {"x", "w", "r"}, {"y"}), "hidden_size", 5);
     },
     {"LSTM"}},
    {"ImageWithoutRows",
     [](ModelMaker& m) {
       m.input("x", {1, 3, 0, 4}).output("y").node("Relu", {"x"}, {"y"});
     },
     {"Relu", "'x' has no elements"}},
    {"ProductOverNothing",
     [](ModelMaker& m) {
       m.input("x", {2, 0}).input("w", {0, 3}).output("y").node("MatMul", {"x", "w"}, {"y"});
     },
     {"MatMul", "has no elements"}},
    // stated shapes that do not follow from the operands
    {"StatedGradientOfSlices",
     [](ModelMaker& m) {
       m.input("dy", {2, 3}).input("i", {2, 1}, kInt64);
       own_operator(m, "GatherNDGrad", {"dy", "i"});
       stated(m, "y", {5, 4});
     },
     {"GatherNDGrad", "[2, 3] is its shape, [2, 4] is expected"}},
    {"StatedGradientOfABorder",
     [](ModelMaker& m) {
       m.input("dy", {1, 9}).import("ai.monet", 1);
       auto& node = m.node("PadGrad", {"dy"}, {"y"}, "ai.monet");
       ModelMaker::set(node, "pads", test::Shape{0, 1, 0, 1});
       stated(m, "y", {1, 4});
     },
     {"PadGrad", "[1, 9] is its shape, [1, 6] is expected"}},
    {"StatedCopy",
     [](ModelMaker& m) {
       m.input("x", {2, 3});
       own_operator(m, "Copy", {"x"});
       stated(m, "y", {4, 4});
     },
     {"Copy", "[4, 4] has other elements than the input's [2, 3]"}},
    {"StatedSlice",
     [](ModelMaker& m) {
       m.input("x", {2, 3}).import("ai.monet", 1);
       auto& node = m.node("SliceGrad", {"x"}, {"y"}, "ai.monet");
       ModelMaker::set(node, "starts", test::Shape{0, 3});
       ModelMaker::set(node, "steps", test::Shape{1, 1});
       stated(m, "y", {2, 5});
     },
     {"SliceGrad", "elements 3 to 5 of an axis of 5 are requested"}},
    {"StatedReversal",
     [](ModelMaker& m) {
       m.input("x", {4, 2}).input("n", {1}, kInt64).output("y");
       m.node("ReverseSequence", {"x", "n"}, {"y"});
     },
     {"ReverseSequence", "[1] is its shape, [2] is expected"}},
};

/// All but those that are copies read what they differentiate, or what came of it.
TEST(Contract, GradientsNeedMoreThanOneOperand) {
  const std::set<std::string_view> copies{"AveragePoolGrad", "PadGrad",     "ResizeGrad",
                                          "SliceGrad",       "EinsumGradA", "EinsumGradB"};
  for (const OperatorRow& rule : all_rows()) {
    const bool is_gradient = rule.op_type.contains("Grad");
    if (!is_gradient || copies.contains(rule.op_type) || rule.op_type.ends_with("LossGrad"))
      continue;
    ModelMaker model;
    model.input("x", {2, 3, 4, 4}).import(std::string(rule.domain), 1);
    model.node(rule.op_type.str(), {"x"}, {"y"}, std::string(rule.domain));
    stated(model, "y", {2, 3, 4, 4});
    EXPECT_THROW(read_onnx_bytes(model.bytes(), "net.onnx", {}), InputError) << rule.op_type.name();
  }
}

class BrokenModels : public testing::TestWithParam<Broken> {};

TEST_P(BrokenModels, AreRefusedWithTheirPlace) {
  ModelMaker model;
  GetParam().make(model);
  try {
    read_onnx_bytes(model.bytes(), "net.onnx", {});
    FAIL() << "it is taken";
  } catch (const InputError& error) {
    for (const char* words : GetParam().words)
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(All, BrokenModels, testing::ValuesIn(kBroken),
                         [](const auto& test) { return test.param.name; });

} // namespace
} // namespace monet
