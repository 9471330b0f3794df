// A network with many unsupported operators: one report, with the ways of the gradients.
#include "workload/models.hpp"

#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

using test::ModelMaker;

std::vector<InputProblem> problems_of(const ModelMaker& model,
                                      const TrainingOptions& training = {}) {
  OnnxReadOptions options;
  read_for(options, training);
  try {
    make_training_graph(read_onnx_bytes(model.bytes(), "net.onnx", options), training);
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

/// x -> Conv -> Mod -> Foo -> Relu -> Hardmax -> Bar -> Reshape -> + -> Gemm -> y, and Baz beside
/// it, over which nothing is trained. Foo, Bar and Baz cannot be read; Mod and Hardmax have no
/// gradient.
ModelMaker five_problems() {
  ModelMaker model;
  model.import("com.example", 1).input("x", {2, 3, 8, 8}).input("z", {2, 4}).output("y");
  model.weight("conv.weight", {4, 3, 3, 3}).weight("fc.weight", {10, 4});
  model.node("Conv", {"x", "conv.weight"}, {"a"});
  model.node("Hardmax", {"a"}, {"m"});
  model.node("Foo", {"m"}, {"b"}, "com.example");
  model.node("Relu", {"b"}, {"c"});
  model.node("Hardmax", {"c"}, {"d"});
  model.node("Bar", {"d"}, {"e"}, "com.example");
  model.node("Baz", {"z"}, {"f"}, "com.example");
  model.node("Shape", {"e"}, {"s"});
  model.node("Reshape", {"e", "s"}, {"g"});
  model.node("Add", {"g", "f"}, {"h"});
  ModelMaker::set(model.node("Gemm", {"h", "fc.weight"}, {"y"}), "transB", std::int64_t{1});
  return model;
}

TEST(Explain, UnreadableAndUndifferentiableOperatorsComeInOneReport) {
  const std::vector<InputProblem> problems = problems_of(five_problems());
  const std::vector<std::string> nodes{
      "node 'Hardmax_1' (Hardmax)", "node 'Foo_2' (com.example.Foo)", "node 'Hardmax_4' (Hardmax)",
      "node 'Bar_5' (com.example.Bar)", "node 'Baz_6' (com.example.Baz)"};
  ASSERT_EQ(problems.size(), nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i)
    EXPECT_EQ(problems[i].where.element, nodes[i]);
}

TEST(Explain, EveryProblemNamesTheWayOfItsGradient) {
  const std::vector<InputProblem> problems = problems_of(five_problems());
  ASSERT_EQ(problems.size(), 5U);
  EXPECT_EQ(problems[1].what, "operator Foo of domain 'com.example' is not supported");
  EXPECT_EQ(
      problems[1].hint,
      "the gradient's path is 'conv.weight' -> Conv_0 (Conv) -> Hardmax_1 "
      "(Hardmax) -> Foo_2 (Foo) -> "
      "Relu_3 (Relu) -> Hardmax_4 (Hardmax) -> ... 3 more ... -> Gemm_10 (Gemm) -> 'y' -> loss");
  EXPECT_EQ(problems[4].hint, "no gradient has to pass it");
}

TEST(Explain, FrozenParametersNeedNoGradient) {
  TrainingOptions options;
  options.trainable.freeze = {"conv*"};
  const std::vector<InputProblem> problems = problems_of(five_problems(), options);
  ASSERT_EQ(problems.size(), 3U); // two of them can be read and are none any more
  for (const InputProblem& problem : problems)
    EXPECT_EQ(problem.hint, "no gradient has to pass it");
}

TEST(Explain, WithoutTrainingTheReaderSpeaksForItself) {
  try {
    read_onnx_bytes(five_problems().bytes(), "net.onnx");
    FAIL();
  } catch (const InputError& error) {
    for (const char* name : {"Foo_2", "Bar_5", "Baz_6"})
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos);
  }
}

/// x -> Conv -> QuantizeLinear -> QLinearConv -> DequantizeLinear: the integers between are no fake
/// quantisation.
TEST(Explain, OperatorsOnIntegersAreRefusedByName) {
  ModelMaker model;
  model.input("x", {1, 3, 4, 4}).output("y");
  model.weight("w", {3, 3, 1, 1}).weight("q", {2, 3, 1, 1}, onnx::TensorProto::INT8);
  model.weight("s", {}).weight("z", {}, onnx::TensorProto::UINT8);
  model.weight("zw", {}, onnx::TensorProto::INT8);
  model.node("Conv", {"x", "w"}, {"a"});
  model.node("QuantizeLinear", {"a", "s", "z"}, {"b"});
  model.node("QLinearConv", {"b", "s", "z", "q", "s", "zw", "s", "z"}, {"c"});
  model.node("DequantizeLinear", {"c", "s", "z"}, {"y"});
  TrainingOptions training;
  training.loss = Mse{};
  const std::vector<InputProblem> problems = problems_of(model, training);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].where.element, "node 'QuantizeLinear_1' (QuantizeLinear)");
  EXPECT_EQ(problems[0].what,
            "no gradient passes 'QuantizeLinear': it computes in integers, at inference only");
  EXPECT_EQ(problems[0].hint,
            "the gradient's path is 'w' -> Conv_0 (Conv) -> QuantizeLinear_1 (QuantizeLinear) -> "
            "QLinearConv_2 (QLinearConv) -> DequantizeLinear_3 (DequantizeLinear) -> 'y' -> loss");
}

/// Nothing is trained, and the reason is named.
TEST(Explain, WhereTheGradientEndsIsNamed) {
  ModelMaker model;
  model.input("x", {2, 3}).output("y").weight("w", {3, 4});
  model.node("MatMul", {"x", "w"}, {"a"});
  ModelMaker::set(model.node("ArgMax", {"a"}, {"b"}), "axis", std::int64_t{1});
  ModelMaker::set(model.node("Cast", {"b"}, {"y"}), "to", std::int64_t{onnx::TensorProto::FLOAT});
  const std::vector<InputProblem> problems = problems_of(model);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].where.element, "node 'ArgMax_1' (ArgMax)");
  EXPECT_EQ(problems[0].what, "no trained parameter reaches the loss: no gradient passes 'ArgMax': "
                              "its result is an integer, or constant nearly everywhere");
}

} // namespace
} // namespace monet
