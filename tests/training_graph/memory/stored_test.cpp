// What is stored for the backward part: as PyTorch does it, to the byte, and as little as possible.
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <map>

namespace monet {
namespace {

Graph network(const std::string& name, std::int64_t batch) {
  OnnxReadOptions options;
  options.batch = batch;
  return read_onnx(std::string(MONET_SOURCE_DIR "/data/workload/") + name + ".onnx", options);
}

TrainingGraph step_of(const Graph& graph, StorePolicy policy, const Loss& loss = Mse{}) {
  TrainingOptions options;
  options.storage.policy = policy;
  options.loss = loss;
  TrainingGraph step = make_training_graph(graph, options);
  verify(step);
  return step;
}

std::map<std::string, ElementType> stored_types(const TrainingGraph& step) {
  std::map<std::string, ElementType> types;
  for (const TensorId id : step.stored_activations)
    types.emplace(step.graph.tensor(id).name, step.graph.tensor(id).type);
  return types;
}

struct Measured {
  const char* name;
  std::int64_t batch;
  std::int64_t bytes; ///< distinct storages that saved_tensors_hooks of PyTorch 1.13 see, on a CPU
};

TEST(PyTorchEager, StoresWhatWasMeasured) {
  for (const Measured& measured : {Measured{"resnet18", 1, 22'260'652},
                                   {"resnet18", 2, 44'444'500},
                                   {"resnet18_cifar", 2, 9'477'220},
                                   {"resnet18_cifar", 4, 18'877'636},
                                   {"mobilenet_v2", 2, 157'201'748},
                                   {"vgg16", 2, 146'718'548},
                                   {"vit_tiny", 3, 106'756'420}}) {
    const TrainingGraph step =
        step_of(network(measured.name, measured.batch), StorePolicy::pytorch_eager, CrossEntropy{});
    EXPECT_EQ(step.stored_bytes, measured.bytes) << measured.name;
    EXPECT_EQ(fold_views(step).stored_bytes, measured.bytes) << measured.name;
  }
}

struct Gpt {
  std::int64_t s, b, h, a, layers, vocabulary;

  std::int64_t layer() const {
    const std::int64_t number = 8; // the square root by which scores are divided
    return 4 * (16 * s * b * h + a * s * s * b) + s * s + 16 * b * s + number;
  }
  std::int64_t total() const {
    const std::int64_t embeddings = 8 * b * s + 8 * s;                   // indices
    const std::int64_t last = 4 * s * b * h + 8 * b * s + 4 * s * b * h; // norm, projection
    const std::int64_t loss = 4 * b * s * vocabulary + 8 * b * s + 4;
    return layers * layer() + embeddings + last + loss;
  }
};

/// Measured was one causal mask of s*s bytes less: the module makes one for both layers, the file
/// has one for each.
TEST(PyTorchEager, Gpt2FollowsItsClosedForm) {
  const auto stored = [](const char* name, std::int64_t batch) {
    return step_of(network(name, batch), StorePolicy::pytorch_eager, CrossEntropy{}).stored_bytes;
  };
  const Gpt nano{64, 2, 64, 2, 2, 256};
  EXPECT_EQ(stored("gpt2_nano", 2), nano.total());
  EXPECT_EQ(nano.total() - 64 * 64, 1'388'052);
}

/// A transformer layer as Megatron has it, with dropout of probabilities and of both branches.
class Transformer : public TinyNetwork {
public:
  Transformer(std::int64_t sequence, std::int64_t batch, std::int64_t width, std::int64_t heads)
      : s_(sequence), b_(batch), h_(width), a_(heads), future_(mask()) {}

  TensorId layer(TensorId x, int number) {
    const std::string p = fmt::format("l{}.", number);
    const Shape wide{b_, s_, h_};
    const TensorId normal = norm(p + "ln1", x);
    const auto heads = ops("Split", {linear(p + "qkv", normal, h_, 3 * h_)}, {wide, wide, wide},
                           with("axis", std::int64_t{2}));
    const TensorId q = head(heads[0], {0, 2, 1, 3}, {b_, a_, s_, h_ / a_});
    const TensorId k = head(heads[1], {0, 2, 3, 1}, {b_, a_, h_ / a_, s_});
    const TensorId v = head(heads[2], {0, 2, 1, 3}, {b_, a_, s_, h_ / a_});
    const Shape square{b_, a_, s_, s_};
    const TensorId scores = op("Div", {op("MatMul", {q, k}, square), number_}, square);
    const TensorId masked = op("Where", {future_, minus_, scores}, square);
    const TensorId kept =
        dropout(op("Softmax", {masked}, square, with("axis", std::int64_t{-1})), square);
    const TensorId context = op("MatMul", {kept, v}, {b_, a_, s_, h_ / a_});
    const TensorId turned = op("Transpose", {context}, {b_, s_, a_, h_ / a_},
                               with("perm", std::vector<std::int64_t>{0, 2, 1, 3}));
    const TensorId flat = op("Reshape", {turned, integers(p + "flat", wide)}, wide);
    x = op("Add", {x, dropout(linear(p + "out", flat, h_, h_), wide)}, wide);
    const TensorId up = linear(p + "fc1", norm(p + "ln2", x), h_, 4 * h_);
    const TensorId active = op("Gelu", {up}, {b_, s_, 4 * h_});
    return op("Add", {x, dropout(linear(p + "fc2", active, 4 * h_, h_), wide)}, wide);
  }

private:
  using Shape = std::vector<std::int64_t>;

  TensorId mask() {
    number_ = number("root", 8.0);
    minus_ = number("minus", -1e4);
    Tensor future;
    future.name = "future";
    future.shape = {s_, s_};
    future.type = ElementType::boolean;
    future.kind = TensorKind::constant;
    return graph.add_tensor(std::move(future));
  }
  TensorId norm(const std::string& name, TensorId x) {
    return op("LayerNormalization", {x, parameter(name + ".w", {h_}), parameter(name + ".b", {h_})},
              {b_, s_, h_});
  }
  TensorId linear(const std::string& name, TensorId x, std::int64_t in, std::int64_t out) {
    const TensorId product = op("MatMul", {x, parameter(name + ".w", {in, out})}, {b_, s_, out});
    return op("Add", {product, parameter(name + ".b", {out})}, {b_, s_, out});
  }
  TensorId head(TensorId x, Shape order, Shape shape) {
    const Shape split{b_, s_, a_, h_ / a_};
    const TensorId parts =
        op("Reshape", {x, integers(fmt::format("split{}", ++count_), split)}, split);
    return op("Transpose", {parts}, std::move(shape), with("perm", std::move(order)));
  }
  TensorId dropout(TensorId x, const Shape& shape) {
    return op("Dropout", {x}, shape, with("ratio", 0.1));
  }

  std::int64_t s_, b_, h_, a_;
  TensorId number_, minus_;
  TensorId future_;
  int count_ = 0;
};

std::int64_t stored_by_layers(int layers, std::int64_t s, std::int64_t b, std::int64_t h,
                              std::int64_t a, ElementType type) {
  Transformer net(s, b, h, a);
  TensorId x =
      net.op("MatMul", {net.input("x", {b, s, h}), net.parameter("in", {h, h})}, {b, s, h});
  for (int i = 0; i < layers; ++i)
    x = net.layer(x, i);
  net.output(x);
  TrainingOptions options;
  options.loss = Mse{};
  options.storage.policy = StorePolicy::pytorch_eager;
  options.precision.activations = type;
  options.precision.weights = type;
  return make_training_graph(net.graph, options).stored_bytes;
}

/// s*b*h*(34 + 5*a*s/h), Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large
/// Transformer Models"), who leave out the statistics of the two norms (two floats a row each) and
/// numbers.
TEST(PyTorchEager, HalfPrecisionTransformerFollowsItsFormula) {
  for (const auto& [s, b, h, a] : {std::array<std::int64_t, 4>{16, 2, 32, 4}, {64, 1, 128, 8}}) {
    const std::int64_t layer = stored_by_layers(3, s, b, h, a, ElementType::fp16) -
                               stored_by_layers(2, s, b, h, a, ElementType::fp16);
    EXPECT_EQ(layer, s * b * (34 * h + 5 * a * s) + 16 * b * s + 8);
  }
}

TEST(PyTorchEager, MinimalStoresLessOnEveryNetwork) {
  for (const char* name :
       {"resnet18", "resnet18_cifar", "mobilenet_v2", "vgg16", "vit_tiny", "gpt2_nano", "gpt2"}) {
    const Graph graph = network(name, 2);
    EXPECT_LT(step_of(graph, StorePolicy::minimal, CrossEntropy{}).stored_bytes,
              step_of(graph, StorePolicy::pytorch_eager, CrossEntropy{}).stored_bytes)
        << name;
  }
}

TEST(MinimalStorage, ReluBeforePoolingKeepsOneBitAnElement) {
  TinyNetwork n;
  const TensorId c = n.op("Conv", {n.input("x", {1, 2, 8, 8}), n.parameter("w", {4, 2, 3, 3})},
                          {1, 4, 8, 8}, with("pads", std::vector<std::int64_t>{1, 1, 1, 1}));
  const TensorId r = n.op("Relu", {c}, {1, 4, 8, 8});
  Attributes pool = with("kernel_shape", std::vector<std::int64_t>{2, 2});
  pool.set("strides", std::vector<std::int64_t>{2, 2});
  const TensorId p = n.op("MaxPool", {r}, {1, 4, 4, 4}, pool);
  n.output(n.op("Relu", {p}, {1, 4, 4, 4}));
  const auto types = stored_types(step_of(n.graph, StorePolicy::minimal));
  EXPECT_EQ(types.at("Relu_1.mask"), ElementType::bit);
  EXPECT_EQ(types.at("MaxPool_2.indices"), ElementType::uint8);
  EXPECT_EQ(types.count("Relu_1"), 0U);
  EXPECT_EQ(types.count("Conv_0"), 0U);
}

TEST(MinimalStorage, ReluBeforeAProductKeepsItsResultAlone) {
  TinyNetwork n;
  const TensorId a = n.op("MatMul", {n.input("x", {4, 4}), n.parameter("w", {4, 4})}, {4, 4});
  const TensorId r = n.op("Relu", {a}, {4, 4});
  n.output(n.op("MatMul", {r, n.parameter("v", {4, 4})}, {4, 4}));
  const auto types = stored_types(step_of(n.graph, StorePolicy::minimal));
  EXPECT_EQ(types.count("Relu_1"), 1U);
  EXPECT_EQ(types.count("Relu_1.mask"), 0U);
}

TEST(MinimalStorage, MasksTakeOneBit) {
  TinyNetwork n;
  const TensorId a = n.op("MatMul", {n.input("x", {4, 4}), n.parameter("w", {4, 4})}, {4, 4});
  const TensorId d = n.op("Dropout", {a}, {4, 4}, with("ratio", 0.5));
  const TensorId c = n.op("Clip", {d, n.number("low", -1.0), n.number("high", 1.0)}, {4, 4});
  const TensorId l = n.op("LeakyRelu", {c}, {4, 4});
  n.output(n.op("Add", {l, n.parameter("b", {4})}, {4, 4})); // the loss reads the sum
  const TrainingGraph step = step_of(n.graph, StorePolicy::minimal);
  int bits = 0;
  for (const auto& [name, type] : stored_types(step))
    bits += type == ElementType::bit ? 1 : 0;
  EXPECT_EQ(bits, 3);
  EXPECT_EQ(count_ops(step.graph, "MaskGrad", Phase::backward), 2);
}

/// The bytes stored and the tensors that live are one number: a mask is what PyTorch keeps of it.
TEST(PyTorchEager, MasksOfDropoutAreCountedOnce) {
  TinyNetwork n;
  const TensorId a = n.op("MatMul", {n.input("x", {4, 4}), n.parameter("w", {4, 4})}, {4, 4});
  const TensorId d = n.op("Dropout", {a}, {4, 4}, with("ratio", 0.5));
  n.output(n.op("MatMul", {d, n.parameter("v", {4, 3})}, {4, 3}));
  const TrainingGraph step = step_of(n.graph, StorePolicy::pytorch_eager);
  std::int64_t bytes = 0;
  for (const TensorId id : step.stored_activations)
    bytes += bytes_of(size_of(step.graph.tensor(id)));
  EXPECT_EQ(bytes, step.stored_bytes);
  EXPECT_EQ(step.stored_bytes, 4 * (16 + 16 + 16 + 12 + 12)); // x, mask, what is dropped, loss
  for (const auto& [name, type] : stored_types(step))
    EXPECT_EQ(type, ElementType::fp32) << name;
}

/// Two products with an activation and a norm between them.
Graph between_products() {
  TinyNetwork n;
  TensorId x = n.op("MatMul", {n.input("x", {4, 8}), n.parameter("w1", {8, 8})}, {4, 8});
  x = n.op("LayerNormalization", {x, n.parameter("s", {8}), n.parameter("b", {8})}, {4, 8});
  x = n.op("Gelu", {x}, {4, 8});
  n.output(n.op("MatMul", {x, n.parameter("w2", {8, 3})}, {4, 3}));
  return n.graph;
}

TrainingGraph chosen(const std::vector<std::string>& keep, const std::vector<std::string>& again) {
  TrainingOptions options;
  options.loss = Mse{};
  options.storage.keep = keep;
  options.storage.recompute = again;
  TrainingGraph step = make_training_graph(between_products(), options);
  verify(step);
  return step;
}

TEST(ExplicitStorage, RecomputedTensorsAreNotStored) {
  const TrainingGraph all = chosen({}, {});
  EXPECT_EQ(stored_types(all).count("Gelu_2"), 1U);
  EXPECT_EQ(stored_types(all).count("LayerNormalization_1"), 1U);
  const TrainingGraph one = chosen({}, {"Gelu_*"});
  EXPECT_EQ(stored_types(one).count("Gelu_2"), 0U);
  EXPECT_EQ(one.stored_bytes, all.stored_bytes - 4 * 8 * 4);
  EXPECT_EQ(count_ops(one.graph, "Gelu", Phase::recompute), 1);
  const TrainingGraph both = chosen({}, {"Gelu_2", "LayerNormalization_1"});
  EXPECT_EQ(stored_types(both).count("LayerNormalization_1"), 0U);
  EXPECT_EQ(stored_types(both).count("MatMul_0"), 1U);
  EXPECT_EQ(count_ops(both.graph, "LayerNormalization", Phase::recompute), 1);
  const TrainingGraph folded = fold_views(both);
  verify(folded);
  EXPECT_EQ(folded.stored_bytes, both.stored_bytes);
}

TEST(ExplicitStorage, KeptTensorsAreStored) {
  const TrainingGraph none = chosen({}, {});
  EXPECT_EQ(stored_types(none).count("MatMul_3"), 1U); // the loss reads it
  TinyNetwork n;
  const TensorId x = n.op("MatMul", {n.input("x", {4, 8}), n.parameter("w1", {8, 8})}, {4, 8});
  n.output(n.op("Add", {x, n.parameter("b", {8})}, {4, 8}));
  TrainingOptions options;
  options.loss = Mse{};
  const std::int64_t without = make_training_graph(n.graph, options).stored_bytes;
  options.storage.keep = {"MatMul_0"};
  const TrainingGraph step = make_training_graph(n.graph, options);
  verify(step);
  EXPECT_EQ(step.stored_bytes, without + 4 * 8 * 4);
  EXPECT_EQ(fold_views(step).stored_bytes, step.stored_bytes);
}

TEST(ExplicitStorage, ImpossibleChoicesAreLocated) {
  EXPECT_THROW(chosen({"nothing"}, {}), InputError);
  TinyNetwork n;
  const TensorId a = n.op("MatMul", {n.input("x", {4, 4}), n.parameter("w", {4, 4})}, {4, 4});
  const TensorId d = n.op("Bernoulli", {a}, {4, 4});
  n.output(n.op("MatMul", {d, n.parameter("v", {4, 4})}, {4, 4}));
  TrainingOptions options;
  options.loss = Mse{};
  options.storage.recompute = {"Bernoulli_1"};
  try {
    make_training_graph(n.graph, options);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("node 'Bernoulli_1'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("random"), std::string::npos);
  }
}

/// One step of a sequence: the product of all steps is not stored for it.
TEST(MinimalStorage, APartIsStoredInsteadOfTheWhole) {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 8, 3});
  const TensorId h = n.op("MatMul", {x, n.parameter("w", {3, 4})}, {2, 8, 4});
  const TensorId last =
      n.op("Slice", {h, n.integers("from", {7}), n.integers("to", {8}), n.integers("axes", {1})},
           {2, 1, 4});
  n.output(n.op("MatMul", {last, n.parameter("v", {4, 5})}, {2, 1, 5}));
  const auto types = stored_types(step_of(n.graph, StorePolicy::minimal));
  EXPECT_EQ(types.count("MatMul_0"), 0U);
  EXPECT_EQ(types.count("Slice_1.part"), 1U);
  // Half of the whole and more is no reason to copy.
  const auto eager = stored_types(step_of(n.graph, StorePolicy::pytorch_eager));
  EXPECT_EQ(eager.count("MatMul_0"), 1U);
}

} // namespace
} // namespace monet
