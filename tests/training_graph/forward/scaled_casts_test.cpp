// Products in fp8: which are, what is cast, and the bytes of copies, scales and histories.
#include "training_graph/read_options.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace monet {
namespace {

std::string in_types(const std::string& products) {
  return "{precision: {weights: fp32, activations: bf16, gradients: bf16, optimizer_state: bf16, "
         "products: " +
         products + "}, loss: cross_entropy";
}

/// x [4, 6] -> Gemm -> Relu -> Gemm: [4, 3].
TinyNetwork perceptron() {
  TinyNetwork n;
  const auto transposed = with("transB", std::int64_t{1});
  const TensorId x = n.input("x", {4, 6});
  const TensorId h =
      n.op("Gemm", {x, n.parameter("w1", {8, 6}), n.parameter("b1", {8})}, {4, 8}, transposed);
  const TensorId r = n.op("Relu", {h}, {4, 8});
  n.output(
      n.op("Gemm", {r, n.parameter("w2", {3, 8}), n.parameter("b2", {3})}, {4, 3}, transposed));
  return n;
}

TrainingGraph step_of(const Graph& network, const std::string& options) {
  TrainingGraph step = make_training_graph(network, read_options(options));
  verify(step);
  verify(fold_views(step));
  return step;
}

const Tensor& named(const TrainingGraph& step, std::string_view name) {
  return step.graph.tensor(step.graph.find_tensor(name).value());
}

std::int64_t bytes_owned(const TrainingGraph& step, MemoryOwner owner) {
  std::int64_t bits = 0;
  for (std::size_t i = 0; i < step.owner.size(); ++i) {
    const Tensor& tensor = step.graph.tensors()[i];
    if (step.owner[i] == owner && !tensor.alias_of)
      bits += size_of(tensor).value;
  }
  return bytes_of({bits});
}

/// By hand: what is stored of x [4, 6] and of the hidden layer [4, 8] is a byte an element, w2
/// [3, 8] is there for dX; then Relu's mask, log-probabilities [4, 3] in fp32 and labels.
TEST(ScaledProducts, APerceptronStoresAByteAnElement) {
  const TrainingGraph step = step_of(perceptron().graph, in_types("{amax_history: 16}") + "}");
  EXPECT_EQ(step.stored_bytes, 24 + 32 + 24 + 4 + 48 + 32);
  EXPECT_EQ(bytes_owned(step, MemoryOwner::stored_activations), step.stored_bytes);
  // Adam's moments in bf16: 2 * 2 bytes for 48 + 8 + 24 + 3 parameters. Six tensors (x, w1, hidden,
  // w2, two gradients) with 16 maxima and a scale of four bytes each.
  EXPECT_EQ(bytes_owned(step, MemoryOwner::optimizer_state), 4 * 83 + 6 * (16 + 1) * 4);
  for (const char* name : {"x.fp8", "w1.fp8", "Relu_1.fp8", "w2.fp8"})
    EXPECT_EQ(named(step, name).type, ElementType::fp8_e4m3) << name;
  for (const char* name : {"Gemm_0.grad.fp8", "Gemm_2.grad.fp8"})
    EXPECT_EQ(named(step, name).type, ElementType::fp8_e5m2) << name;
  for (const char* name : {"x.fp8.scale", "x.fp8.amax", "x.fp8.amax_history"})
    EXPECT_EQ(named(step, name).type, ElementType::fp32) << name;
  EXPECT_EQ(named(step, "w1.grad").type, ElementType::bf16);
  EXPECT_EQ(named(step, "Relu_1.fp8.grad").type, ElementType::bf16);
  // Nothing but what is multiplied is cast, biases by a plain Cast.
  EXPECT_EQ(count_ops(step.graph, "ScaledCast", Phase::forward), 4);
  EXPECT_EQ(count_ops(step.graph, "ScaledCast", Phase::backward), 2);
  EXPECT_EQ(count_ops(step.graph, "Cast", Phase::forward), 2);
  EXPECT_EQ(count_ops(step.graph, "AmaxUpdate", Phase::update), 6);
}

TEST(ScaledProducts, PyTorchWouldKeepTheSameCopies) {
  const TrainingGraph step =
      step_of(perceptron().graph, in_types("{}") + ", store: pytorch-eager}");
  // Relu's result in bf16 rather than its mask, and what the mean is divided by; the gradient of x
  // is not wanted, so w1 is not kept.
  EXPECT_EQ(step.stored_bytes, 24 + 32 + 24 + 2 * 32 + 48 + 32 + 4);
}

/// A cast reads each element once and writes a byte for it; the maxima come with it.
TEST(ScaledProducts, ACastIsOneSweep) {
  const TrainingGraph delayed = step_of(perceptron().graph, in_types("{}") + "}");
  const Operator* cast = find_op(delayed.graph, "ScaledCast", Phase::forward);
  EXPECT_EQ(iterations(cast->nest), 24);
  EXPECT_EQ(cast->nest.work, (VectorWork{0, 1, 0, 1, 0, 0}));
  for (const Access& access : cast->nest.operands)
    EXPECT_EQ(access.passes, 1);
  EXPECT_EQ(named(delayed, "x.fp8.amax").shape, (std::vector<std::int64_t>{4}));

  const TrainingGraph current = step_of(perceptron().graph, in_types("{scaling: current}") + "}");
  cast = find_op(current.graph, "ScaledCast", Phase::forward);
  EXPECT_EQ(cast->nest.work, (VectorWork{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(count_ops(current.graph, "Amax", Phase::forward), 4);
  EXPECT_EQ(count_ops(current.graph, "Amax", Phase::backward), 2);
  EXPECT_EQ(count_ops(current.graph, "AmaxUpdate", Phase::update), 0);
  EXPECT_EQ(bytes_owned(current, MemoryOwner::optimizer_state), 4 * 83);
  const MacSplit macs = count_macs(current.graph);
  EXPECT_EQ(macs.forward, 4 * 6 * 8 + 4 * 8 * 3);
  EXPECT_EQ(macs.backward_weight, macs.forward);
  EXPECT_EQ(macs.backward_input, 4 * 8 * 3);
}

/// What three layers read is cast once, and so is a gradient that two layers get.
TEST(ScaledProducts, ATensorIsCastOnceForAllItsReaders) {
  TinyNetwork n;
  const TensorId x = n.op("Tanh", {n.input("x", {5, 4})}, {5, 4});
  const TensorId first = n.op("MatMul", {x, n.parameter("q", {4, 3})}, {5, 3});
  const TensorId second = n.op("MatMul", {x, n.parameter("k", {4, 3})}, {5, 3});
  n.output(n.op("Add", {first, second}, {5, 3}));
  const TrainingGraph step = step_of(n.graph, in_types("{}") + "}");
  EXPECT_EQ(count_ops(step.graph, "ScaledCast", Phase::forward), 3);
  EXPECT_EQ(count_ops(step.graph, "ScaledCast", Phase::backward), 1);
}

/// Of a layer that is called twice, inputs share a scale and a history, and so do gradients.
TEST(ScaledProducts, CallsOfALayerShareScales) {
  TinyNetwork n;
  const TensorId w = n.parameter("w", {4, 4});
  const TensorId first = n.op("Tanh", {n.op("MatMul", {n.input("x", {5, 4}), w}, {5, 4})}, {5, 4});
  n.output(n.op("MatMul", {first, w}, {5, 4}));
  const TrainingGraph step = step_of(n.graph, in_types("{}") + "}");
  EXPECT_EQ(count_ops(step.graph, "ScaledCast", Phase::forward), 3);
  EXPECT_EQ(count_ops(step.graph, "ScaledCast", Phase::backward), 2);
  EXPECT_EQ(count_ops(step.graph, "AmaxUpdate", Phase::update), 3); // w, x and Tanh, both gradients
}

/// Products of two activations (attention's scores) stay in their types.
TEST(ScaledProducts, LeaveProductsWithoutWeights) {
  TinyNetwork n;
  const TensorId x = n.op("MatMul", {n.input("x", {5, 4}), n.parameter("w", {4, 5})}, {5, 5});
  n.output(n.op("MatMul", {x, x}, {5, 5}));
  const TrainingGraph step = step_of(n.graph, in_types("{}") + "}");
  EXPECT_EQ(count_ops(step.graph, "ScaledCast", Phase::forward), 2);
  EXPECT_EQ(named(step, "w.fp8").type, ElementType::fp8_e4m3);
}

/// Gradients of products in fp8 have the type of gradients whatever the file says.
TEST(ScaledProducts, TakeTheTypesOfTheFile) {
  const TrainingGraph step =
      step_of(perceptron().graph, "{precision: {products: {}}, loss: cross_entropy}");
  EXPECT_EQ(named(step, "Relu_1").type, ElementType::fp32);
  EXPECT_EQ(named(step, "Relu_1.fp8").type, ElementType::fp8_e4m3);
  EXPECT_EQ(named(step, "Relu_1.fp8.grad").type, ElementType::fp32);
  EXPECT_EQ(named(step, "w2.grad").type, ElementType::fp32);
}

TEST(ScaledProducts, LayersAreChosen) {
  TinyNetwork n;
  TensorId x = n.input("x", {4, 6});
  for (const char* name : {"first", "second", "third", "fourth"})
    x = n.op("MatMul", {x, n.parameter(name, {6, 6})}, {4, 6});
  n.output(x);
  const auto scaled = [&](const std::string& products, const std::string& more = "") {
    const TrainingGraph step = step_of(n.graph, in_types(products) + more + "}");
    std::vector<std::string> names;
    for (const Operator& op : step.graph.operators()) {
      if (op.op_type == "ScaledCast" && op.attributes.integer("weight", 0) != 0)
        names.push_back(step.graph.tensor(*op.inputs[0]).name);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(scaled("{layers: ['f*']}"), (Names{"first", "fourth"}));
  EXPECT_EQ(scaled("{keep_first_and_last: true}"), (Names{"second", "third"}));
  EXPECT_EQ(scaled("{keep_first_and_last: true, layers: ['f*', third]}"), (Names{"third"}));
  // Adapters belong to their layer.
  EXPECT_EQ(scaled("{keep_first_and_last: true}",
                   ", trainable: {lora: {rank: 2, targets: [second, fourth]}}"),
            (Names{"second", "second.lora_A", "second.lora_B", "third"}));
}

TEST(ScaledProducts, AreRefusedWithWords) {
  const auto refused = [&](const std::string& options, const std::string& words) {
    try {
      static_cast<void>(make_training_graph(perceptron().graph, read_options(options)));
      ADD_FAILURE() << options;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused(in_types("{layers: [w3]}") + "}", "no weight of a product matches the pattern 'w3'");
  refused(in_types("{keep_first_and_last: true}") + "}", "no product of a layer");
  refused("{precision: {activations: fp8_e4m3, products: {}}}", "'products' casts to fp8");
  refused("{precision: {weights: int8, products: {}}}", "'products' casts to fp8");
  refused("{precision: {gradients: mxfp8_e5m2, products: {}}}", "'products' casts to fp8");
  refused("{precision: {products: {forward: bf16}}}", "one of: fp8_e4m3, fp8_e5m2");
  refused("{precision: {products: {scaling: never}}}", "one of: delayed, current, block");
  refused("{precision: {products: {scaling: current, amax_history: 2}}}", "is of delayed scaling");
  refused("{precision: {products: {amax_history: 0}}}", "a history of 0 steps");
  refused("{precision: {products: {amax_history: 1e9}}}", "outside [1, 1048576]");
  refused("{precision: {products: {margin: 100}}}", "'margin' is 100");
  refused("{precision: {products: {amax: 100}}}", "'amax'");
  Graph low = perceptron().graph;
  for (std::size_t i = 0; i < low.tensors().size(); ++i)
    low.tensor(TensorId(i)).type = ElementType::fp8_e5m2;
  EXPECT_THROW(
      static_cast<void>(make_training_graph(low, read_options("{precision: {products: {}}}"))),
      InputError);
}

TEST(BlockScaling, ScalesLieBesideTheElements) {
  Tensor tensor;
  tensor.type = ElementType::fp8_e4m3_1x128;
  const auto bytes = [&](std::vector<std::int64_t> shape) {
    tensor.shape = std::move(shape);
    return bytes_of(size_of(tensor));
  };
  EXPECT_EQ(bytes({3, 128}), 3 * 128 + 3 * 4);
  EXPECT_EQ(bytes({3, 129}), 3 * 129 + 3 * 2 * 4);
  EXPECT_EQ(bytes({5, 3, 64}), 15 * 64 + 15 * 4); // a scale for each row, however short
  EXPECT_EQ(bytes({}), 1 + 4);
  EXPECT_EQ(bytes({0, 7}), 0);
  tensor.type = ElementType::fp8_e5m2_128x128;
  EXPECT_EQ(bytes({300, 200}), 300 * 200 + 3 * 2 * 4);
  EXPECT_EQ(core_bits_of(ElementType::fp8_e4m3_1x128), 8);
  EXPECT_EQ(core_bits_of(ElementType::mxfp4_e2m1), 5);
  EXPECT_EQ(storage_of(ElementType::fp8_e4m3_1x128, 256).value, 256 * 8 + 2 * 32);
  EXPECT_EQ(storage_of(ElementType::fp8_e4m3_128x128, 2 * 128 * 128).value,
            2 * (128 * 128 * 8 + 32));
}

/// Tokens t = 130 of width 200 through layers of 300 and 3, by hand: forward products read blocks
/// along the width, dW's blocks along the tokens, weights squares for both.
TEST(BlockScaling, CopiesLieAlongTheSummedAxis) {
  TinyNetwork n;
  const TensorId x = n.op("Tanh", {n.input("x", {10, 13, 200})}, {10, 13, 200});
  const TensorId h = n.op(
      "Tanh", {n.op("MatMul", {x, n.parameter("w1", {200, 300})}, {10, 13, 300})}, {10, 13, 300});
  n.output(n.op("MatMul", {h, n.parameter("w2", {300, 3})}, {10, 13, 3}));
  const TrainingGraph step =
      step_of(n.graph, in_types("{scaling: block}") + ", store: minimal, optimizer: sgd}");
  const auto bytes = [&](const char* name) { return bytes_of(size_of(named(step, name))); };
  EXPECT_EQ(named(step, "Tanh_0.fp8").type, ElementType::fp8_e4m3_1x128);
  EXPECT_EQ(named(step, "w1.fp8").type, ElementType::fp8_e4m3_128x128);
  EXPECT_EQ(named(step, "MatMul_3.grad.fp8").type, ElementType::fp8_e4m3_1x128); // no wider range
  EXPECT_EQ(bytes("Tanh_0.fp8"), 130 * 200 + 130 * 2 * 4);
  EXPECT_EQ(bytes("Tanh_0.fp8.columns"), 200 * 130 + 200 * 2 * 4);
  EXPECT_EQ(bytes("w1.fp8"), 200 * 300 + 2 * 3 * 4);
  EXPECT_EQ(bytes("w2.fp8"), 300 * 3 + 3 * 1 * 4);
  EXPECT_EQ(bytes("MatMul_1.grad.fp8.columns"), 300 * 130 + 300 * 2 * 4);
  // The first layer's input wants no gradient: its dY is cast for dW alone.
  EXPECT_FALSE(step.graph.find_tensor("MatMul_1.grad.fp8"));
  EXPECT_EQ(bytes("MatMul_3.grad.fp8"), 130 * 3 + 130 * 4);
  // Stored: the copies that dW reads, w2 for dX, what Tanh's gradient reads (bf16), and of the loss
  // log-probabilities and labels.
  EXPECT_EQ(step.stored_bytes, 200 * 130 + 200 * 8 + 300 * 130 + 300 * 8 + 900 + 12 +
                                   2 * 130 * 300 + 4 * 130 * 3 + 8 * 130);
  EXPECT_EQ(bytes_owned(step, MemoryOwner::optimizer_state), 0);
  const TrainingGraph eager =
      step_of(n.graph, in_types("{scaling: block}") + ", store: pytorch-eager, optimizer: sgd}");
  EXPECT_EQ(eager.stored_bytes, step.stored_bytes + 4); // what the mean is divided by
  // Nothing is stored of one layer for the other: the views of the copies fold away.
  EXPECT_EQ(count_ops(fold_views(step).graph, "Transpose", Phase::backward), 0);
  EXPECT_EQ(count_ops(fold_views(step).graph, "Copy", Phase::backward), 0);
  EXPECT_EQ(find_op(step.graph, "BlockCast", Phase::forward)->nest.work,
            (VectorWork{0, 2, 0, 2, 0, 0}));
}

/// Convolutions, stacks of weights and transposed inputs are left; adapters' bases need no copy.
TEST(BlockScaling, TakesMatrices) {
  TinyNetwork n;
  const TensorId c =
      n.op("Conv", {n.input("x", {1, 4, 6, 6}), n.parameter("k", {5, 4, 3, 3})}, {1, 5, 4, 4});
  n.output(
      n.op("MatMul", {n.op("Relu", {c}, {1, 5, 4, 4}), n.parameter("w", {4, 4})}, {1, 5, 4, 4}));
  const TrainingGraph step = step_of(n.graph, in_types("{scaling: block}") + "}");
  EXPECT_EQ(count_ops(step.graph, "BlockCast", Phase::forward), 2);
  EXPECT_THROW(step_of(n.graph, in_types("{scaling: block, layers: [k]}") + "}"), InputError);
  const TrainingGraph adapted =
      step_of(perceptron().graph, in_types("{scaling: block, layers: [w1]}") +
                                      ", trainable: {lora: {rank: 2, targets: [w2]}}}");
  EXPECT_FALSE(adapted.graph.find_tensor("x.fp8.columns"));
}

/// GPT-2 of two layers of width h = 64, s = 64 tokens, 256 words: of the operands of its products
/// (h, h, h and 4 h numbers a token in a layer, h before the head) a byte an element is stored
/// instead of two, and a byte for each of the 12 h^2 weights of a layer and the 256 h of the head.
TEST(ScaledProducts, ATransformerLayer) {
  OnnxReadOptions reading;
  reading.batch = 1;
  const Graph network =
      read_onnx(std::string(MONET_SOURCE_DIR) + "/data/workload/gpt2_nano.onnx", reading);
  const std::string types = "{precision: {weights: bf16, activations: bf16, gradients: bf16, "
                            "optimizer_state: fp32, master_weights: fp32";
  const std::int64_t s = 64;
  const std::int64_t h = 64;
  const std::int64_t copies = 2 * 12 * h * h + 256 * h;
  for (const std::string store : {"minimal", "pytorch-eager"}) {
    const std::string rest = "}, store: " + store + "}";
    const TrainingGraph plain = step_of(network, types + rest);
    const TrainingGraph step = step_of(network, types + ", products: {amax_history: 8}" + rest);
    EXPECT_EQ(step.stored_bytes, plain.stored_bytes - 15 * s * h + copies) << store;
    // Nine products: nine inputs, weights and gradients.
    EXPECT_EQ(bytes_owned(step, MemoryOwner::optimizer_state),
              bytes_owned(plain, MemoryOwner::optimizer_state) + 27 * (8 + 1) * 4);
    EXPECT_EQ(fold_views(step).stored_bytes, step.stored_bytes);
    // In blocks along the tokens, a scale for each of h (h, h, 4 h) rows; a weight of [n, h] has
    // n / 128 squares: 2 and 1 and 2 and 2 in a layer, 2 in the head.
    const TrainingGraph blocks = step_of(network, types + ", products: {scaling: block}" + rest);
    EXPECT_EQ(blocks.stored_bytes, step.stored_bytes + 4 * 15 * h + 4 * (2 * 7 + 2)) << store;
    EXPECT_EQ(fold_views(blocks).stored_bytes, blocks.stored_bytes);
  }
}

/// dW adds up the rows of all images, so that blocks along them do not end with an image.
TEST(ScaledProducts, BlocksOfSeveralImagesStayWhole) {
  TinyNetwork n;
  n.output(n.op("MatMul", {n.input("x", {2, 6, 8}), n.parameter("w", {8, 4})}, {2, 6, 4}));
  const TrainingGraph step = step_of(n.graph, in_types("{scaling: block}") + "}");
  const TrainingGraph folded = fold_views(step);
  for (const TrainingGraph* made : {&step, &folded})
    EXPECT_EQ(bytes_of(size_of(named(*made, "x.fp8.columns"))), 8 * 12 + 8 * 4);
  EXPECT_EQ(folded.stored_bytes, step.stored_bytes);
}

/// Operators as a file may have them.
TEST(ScaledProducts, MalformedOperatorsAreRefused) {
  using Shapes = std::vector<std::vector<std::int64_t>>;
  const auto build = [](const std::string& op_type, const Shapes& inputs, const Shapes& outputs,
                        ElementType type = ElementType::fp32) {
    TinyNetwork n;
    Operator op;
    op.name = "only";
    op.op_type = op_type;
    op.domain = kMonetDomain;
    for (const auto& shape : inputs)
      op.inputs.emplace_back(n.input(fmt::format("i{}", op.inputs.size()), shape, type));
    for (const auto& shape : outputs) {
      Tensor tensor;
      tensor.name = fmt::format("o{}", op.outputs.size());
      tensor.shape = shape;
      op.outputs.emplace_back(n.graph.add_tensor(std::move(tensor)));
    }
    build_nest(n.graph, n.graph.add_operator(std::move(op)));
  };
  EXPECT_NO_THROW(build("ScaledCast", {{4, 6}, {}}, {{4, 6}, {4}}));
  EXPECT_THROW(build("ScaledCast", {{4, 6}, {}}, {{4, 6}, {5}}), InputError);
  EXPECT_THROW(build("ScaledCast", {{4, 6}, {2}}, {{4, 6}}), InputError);
  EXPECT_THROW(build("ScaledCast", {{4, 6}}, {{4, 6}}), InputError);
  EXPECT_THROW(build("ScaledCast", {{4, 6}, {}}, {{6, 4}}), InputError);
  EXPECT_THROW(build("ScaledCast", {{4}, {}}, {{4}}, ElementType::int64), InputError);
  EXPECT_THROW(build("ScaledCast", {}, {{4}}), InputError);
  EXPECT_NO_THROW(build("BlockCast", {{2, 4, 6}}, {{2, 4, 6}, {6, 8}}));
  EXPECT_THROW(build("BlockCast", {{2, 4, 6}}, {{2, 4, 6}, {8, 6}}), InputError);
  EXPECT_THROW(build("BlockCast", {{6}}, {{6}}), InputError);
  EXPECT_THROW(build("BlockCast", {{4, 6}}, {}), InputError);
  EXPECT_THROW(build("Amax", {{4, 6}}, {{6}}), InputError);
  EXPECT_THROW(build("Amax", {{4}}, {{4, 6}}), InputError);
  EXPECT_THROW(build("AmaxScale", {{4}}, {{4}}), InputError);
  EXPECT_NO_THROW(build("AmaxUpdate", {{4}, {}, {3}, {2, 5}}, {{4}, {}}));
  EXPECT_THROW(build("AmaxUpdate", {{0}, {}, {3}}, {{0}, {}}), InputError);
  EXPECT_THROW(build("AmaxUpdate", {{4}, {}}, {{4}, {}}), InputError);
  EXPECT_THROW(build("AmaxUpdate", {{4}, {}, {3}}, {{5}, {}}), InputError);
}

/// The step as a file says the same again.
TEST(ScaledProducts, AreWrittenAndReadAgain) {
  for (const std::string products :
       {"{amax_history: 4}", "{scaling: current}", "{scaling: block}"}) {
    const TrainingGraph step = step_of(perceptron().graph, in_types(products) + "}");
    const Graph again = read_onnx_bytes(write_onnx(step.graph), "again.onnx");
    verify(again);
    ASSERT_EQ(again.operators().size(), step.graph.operators().size());
    for (std::size_t i = 0; i < again.operators().size(); ++i) {
      const Operator& op = again.operators()[i];
      EXPECT_EQ(op.op_type, step.graph.operators()[i].op_type);
      EXPECT_EQ(op.nest.dims, step.graph.operators()[i].nest.dims) << op.name;
      if (op.op_type != "Cast") { // which says its type then
        EXPECT_EQ(op.attributes, step.graph.operators()[i].attributes) << op.name;
      }
    }
    for (const Tensor& tensor : step.graph.tensors()) {
      const auto id = again.find_tensor(tensor.name);
      ASSERT_TRUE(id) << tensor.name;
      EXPECT_EQ(again.tensor(*id).type, tensor.type) << tensor.name;
      EXPECT_EQ(again.tensor(*id).kind, tensor.kind) << tensor.name;
    }
    verify(make_inference_graph(again));
  }
}

} // namespace
} // namespace monet
