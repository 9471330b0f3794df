// Parameters told from buffers: by the file's list, by names, by numbers, by place, by the user.
#include "workload/models.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace monet {
namespace MONET_TEST_FILE {

using test::ModelMaker;
using Numbers = std::vector<float>;

void add(ModelMaker& model, const std::string& name, const test::Shape& shape,
         const Numbers& numbers) {
  auto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const auto size : shape)
    tensor.add_dims(size);
  for (const float number : numbers)
    tensor.add_float_data(number);
}

/// y = x <op> `name`; x is broadcast to it, or fits a product.
ModelMaker reads(const std::string& name, const test::Shape& shape, const Numbers& numbers,
                 const std::string& op_type = "Mul") {
  ModelMaker model;
  const bool product = op_type == "MatMul";
  model.input("x", product ? test::Shape{1, shape.front()} : test::Shape{2, 1, 1, 1}).output("y");
  add(model, name, shape, numbers);
  model.node(op_type, {"x", name}, {"y"});
  return model;
}

TensorKind kind_of(const ModelMaker& model, const std::string& name,
                   const OnnxReadOptions& options = {}) {
  const Graph graph = read_onnx_bytes(model.bytes(), "net.onnx", options);
  return graph.tensor(graph.find_tensor(name).value()).kind;
}

Numbers made(std::size_t count, const std::function<double(double)>& of) {
  Numbers numbers;
  for (std::size_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>(of(static_cast<double>(i))));
  return numbers;
}

/// Without any order.
Numbers random(std::size_t count) {
  return made(count, [](double i) { return std::sin(37.0 * i * i + 11.0 * i + 1.0); });
}

TEST(Parameters, HaveNoAxesSometimes) {
  EXPECT_EQ(kind_of(reads("scale", {}, {2.6592F}), "scale"), TensorKind::parameter);
  EXPECT_EQ(kind_of(reads("block.alpha", {}, {0.0F}), "block.alpha"), TensorKind::parameter);
  EXPECT_EQ(kind_of(reads("p", {1}, {3.0F}, "Pow"), "p"), TensorKind::parameter);
  EXPECT_EQ(kind_of(reads("conv.epsilon", {}, {0.0F}), "conv.epsilon"), TensorKind::parameter);
  EXPECT_EQ(kind_of(reads("1.weight", {1}, {0.25F}), "1.weight"), TensorKind::parameter);
}

TEST(Parameters, AreNotWhatAnExporterFolded) {
  for (const char* name : {"/attn/Constant_output_0", "onnx::Div_37", "const_fold_opt__12", "45"})
    EXPECT_EQ(kind_of(reads(name, {}, {8.0F}), name), TensorKind::constant) << name;
  EXPECT_EQ(kind_of(reads("norm.eps", {}, {1e-5F}), "norm.eps"), TensorKind::constant);
  EXPECT_EQ(kind_of(reads("half", {}, {0.5F}), "half"), TensorKind::constant);
}

TEST(Parameters, BeginAsRandomNumbersOnesZerosOrIdentities) {
  for (const Numbers& numbers :
       {random(16), Numbers(16, 0.0F), Numbers(16, 1.0F), Numbers(16, 1e-6F),
        made(16, [](double i) { return std::fmod(i, 5.0) == 0.0 ? 1.0 : 0.0; })})
    EXPECT_EQ(kind_of(reads("w", {4, 4}, numbers, "MatMul"), "w"), TensorKind::parameter);
}

/// Decays of a state space model: log(1..N) in every row. A line of one number is no sine.
TEST(Parameters, MayBeginInOrder) {
  const Numbers decay = made(48, [](double i) { return std::log(1.0 + std::fmod(i, 6.0)); });
  EXPECT_EQ(kind_of(reads("decay", {8, 6}, decay), "decay"), TensorKind::parameter);
}

TEST(Buffers, AreToldByTheirNumbers) {
  const auto is_buffer = [](const test::Shape& shape, const Numbers& numbers,
                            const std::string& op_type = "Add") {
    return kind_of(reads("w", shape, numbers, op_type), "w") == TensorKind::buffer;
  };
  const auto triangle = [](float above) {
    return made(16, [=](double i) { return std::fmod(i, 4) > std::floor(i / 4) ? above : 0.0; });
  };
  EXPECT_TRUE(is_buffer({4, 4}, triangle(-std::numeric_limits<float>::infinity())));
  EXPECT_TRUE(is_buffer({4, 4}, triangle(-1e9F)));
  EXPECT_TRUE(is_buffer({1, 1, 4, 4}, triangle(1.0F), "Mul"));
  EXPECT_TRUE(is_buffer({8, 4}, made(32, [](double i) { // rotary, positions by rows
                          return std::cos(std::floor(i / 4) * std::pow(0.1, std::fmod(i, 4)));
                        })));
  EXPECT_TRUE(is_buffer({6}, made(6, [](double i) { return std::pow(10000.0, -i / 6); })));
  EXPECT_TRUE(is_buffer({6}, made(6, [](double i) { return 0.5 * i - 1.0; })));
  EXPECT_TRUE(is_buffer({5, 6}, made(30, [](double i) { // powers of 0, 1/5, ..., 1
                          return std::pow(std::fmod(i, 6) / 5, std::floor(i / 6));
                        })));
  EXPECT_FALSE(is_buffer({4}, {1, 0, 0, 0}));
  EXPECT_TRUE(is_buffer({9}, made(9, [](double i) { // a period of a window
                          return 0.54 - 0.46 * std::cos(2 * 3.14159265358979 * i / 9);
                        })));
  EXPECT_TRUE(is_buffer({8}, made(8, [](double i) { return std::sqrt(0.1 + 0.1 * i); })));
  EXPECT_TRUE(is_buffer({3, 3}, {2, 1, 0.5F, 1, 2, 1, 0.5F, 1, 2}, "MatMul"));
  EXPECT_FALSE(is_buffer({8}, random(8)));
  EXPECT_FALSE(is_buffer({4, 4}, random(16)));
  EXPECT_FALSE(is_buffer({3, 3}, {2, 1, 0.5F, 1.1F, 2, 1, 0.5F, 1, 2}, "MatMul"));
}

TEST(Buffers, AreFixedFilters) {
  const auto is_buffer = [](const Numbers& numbers) {
    ModelMaker model;
    model.input("x", {1, 1, 8, 8}).output("y");
    add(model, "w", {1, 1, 3, 3}, numbers);
    auto& node = model.node("Conv", {"x", "w"}, {"y"});
    ModelMaker::set(node, "kernel_shape", test::Shape{3, 3});
    return kind_of(model, "w") == TensorKind::buffer;
  };
  EXPECT_TRUE(is_buffer({-1, 0, 1, -2, 0, 2, -1, 0, 1})); // Sobel
  EXPECT_TRUE(is_buffer({1, 2, 1, 2, 4, 2, 1, 2, 1}));    // Gauss
  EXPECT_TRUE(is_buffer(Numbers(9, 1.0F / 9.0F)));        // mean
  EXPECT_FALSE(is_buffer({0, 0, 0, 0, 1, 0, 0, 0, 0}));   // begins as an identity
  EXPECT_FALSE(is_buffer({-1, 0, 1, -2, 0.1F, 2, -1, 0, 1}));
}

TEST(Buffers, AreToldByTheirNames) {
  for (const char* name : {"attn.inv_freq", "h.0.causal_mask", "anchors", "ema_weight"}) {
    EXPECT_EQ(kind_of(reads(name, {3}, {0.3F, -0.7F, 0.2F}), name), TensorKind::buffer) << name;
  }
  EXPECT_EQ(kind_of(reads("mask_token", {3}, {0.3F, -0.7F, 0.2F}), "mask_token"),
            TensorKind::parameter);
  EXPECT_EQ(kind_of(reads("mask", {3}, {0.3F, -0.7F, 0.2F}), "mask"), TensorKind::parameter);
  EXPECT_EQ(kind_of(reads("mask", {3}, {0.0F, 1.0F, 1.0F}), "mask"), TensorKind::buffer);
}

/// PyTorch writes a module's parameters, then its buffers.
TEST(Buffers, FollowEachOther) {
  ModelMaker model;
  model.proto().set_producer_name("pytorch");
  model.input("x", {2, 3}).output("y");
  add(model, "m.weight", {3}, random(3));
  add(model, "m.inv_freq", {3}, random(3));
  add(model, "m.offset", {3}, random(3));
  add(model, "n.offset", {3}, random(3));
  model.node("Mul", {"x", "m.weight"}, {"a"});
  model.node("Mul", {"a", "m.inv_freq"}, {"b"});
  model.node("Add", {"b", "m.offset"}, {"c"});
  model.node("Add", {"c", "n.offset"}, {"y"});
  EXPECT_EQ(kind_of(model, "m.weight"), TensorKind::parameter);
  EXPECT_EQ(kind_of(model, "m.offset"), TensorKind::buffer);
  EXPECT_EQ(kind_of(model, "n.offset"), TensorKind::parameter);
  model.proto().set_producer_name("another");
  EXPECT_EQ(kind_of(model, "m.offset"), TensorKind::parameter);
}

TEST(Buffers, ListOfTheFileIsBelieved) {
  ModelMaker model = reads("inv_freq", {3}, random(3));
  add(model, "w", {3}, random(3));
  model.node("Mul", {"y", "w"}, {"z"});
  model.output("z");
  auto& list = *model.proto().add_metadata_props();
  list.set_key("monet.parameters");
  list.set_value("inv_freq\nanother");
  EXPECT_EQ(kind_of(model, "inv_freq"), TensorKind::parameter);
  EXPECT_EQ(kind_of(model, "w"), TensorKind::buffer);
}

TEST(Buffers, AreWhatTheUserSays) {
  OnnxReadOptions options;
  options.parameters = {"inv_*"};
  EXPECT_EQ(kind_of(reads("inv_freq", {3}, random(3)), "inv_freq", options), TensorKind::parameter);
  options = {};
  options.buffers = {"w"};
  EXPECT_EQ(kind_of(reads("w", {3}, random(3)), "w", options), TensorKind::buffer);
  options.buffers = {"v"};
  try {
    kind_of(reads("w", {3}, random(3)), "w", options);
    FAIL() << "a pattern that matches nothing";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("no initialiser matches the pattern 'v' of 'buffers'"),
              std::string::npos)
        << error.what();
  }
}

TEST(Buffers, AreListedWithTheReason) {
  const Graph graph =
      read_onnx_bytes(reads("rope.inv_freq", {3}, random(3)).bytes(), "net.onnx", {});
  ASSERT_EQ(graph.buffers.size(), 1U);
  EXPECT_EQ(graph.buffers[0].name, "rope.inv_freq");
  EXPECT_EQ(graph.buffers[0].why, "its name");
}

/// Names of what may be either, "name: why", parameters and buffers apart.
using Doubts = std::vector<std::string>;
Doubts doubts_of(const Graph& graph) {
  Doubts found;
  for (const FoundBuffer& buffer : graph.buffers) {
    if (buffer.is_guess)
      found.push_back("buffer " + buffer.name + ": " + buffer.why);
  }
  for (const FoundBuffer& parameter : graph.doubtful)
    found.push_back("parameter " + parameter.name + ": " + parameter.why);
  return found;
}

/// A network of PyTorch that reads all its initialisers one after the other.
ModelMaker module(const std::vector<std::pair<std::string, Numbers>>& numbers) {
  ModelMaker model;
  model.proto().set_producer_name("pytorch");
  model.input("x", {2, 1}).output("y");
  std::string last = "x";
  for (const auto& [name, list] : numbers) {
    add(model, name, {static_cast<std::int64_t>(list.size())}, list);
    model.node("Add", {last, name}, {"after_" + name});
    last = "after_" + name;
  }
  model.node("Identity", {last}, {"y"});
  return model;
}

/// Centres of radial basis functions in sequence; their widths and mix, in front of no buffer.
TEST(Parameters, ThatBeginInOrderPrecedeOthers) {
  const Numbers centres = made(8, [](double i) { return 0.25 * i - 1.0; });
  const ModelMaker model =
      module({{"centres", centres}, {"widths", random(8)}, {"mix", random(8)}, {"t", centres}});
  const Graph graph = read_onnx_bytes(model.bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(graph), 24);
  EXPECT_EQ(doubts_of(graph),
            (Doubts{"buffer t: numbers in sequence", "parameter centres: numbers in sequence"}));
}

/// Two numbers in sequence in front of one of random ones: mostly two buffers and a third.
TEST(Buffers, OutweighARandomOneBehindThem) {
  const Numbers line = made(8, [](double i) { return 0.25 * i - 1.0; });
  const Graph graph = read_onnx_bytes(
      module({{"from", line}, {"to", line}, {"noise", random(8)}}).bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(graph), 0);
  EXPECT_EQ(doubts_of(graph).size(), 3U);
}

TEST(Buffers, OfNamesThatParametersShareAreGuesses) {
  const Graph graph = read_onnx_bytes(
      module({{"gain", {0.3F, -0.7F}}, {"slopes", {0.0625F, 0.00390625F}}}).bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(graph), 2);
  EXPECT_EQ(doubts_of(graph), Doubts{"buffer slopes: its name"});
  const Graph certain = read_onnx_bytes(
      module({{"inv_freq", {1.0F, 0.3F}}, {"mask", {1.0F, 0.0F}}}).bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(certain), 0);
  EXPECT_EQ(doubts_of(certain), Doubts{});
}

TEST(Parameters, WithNamesOfStatisticsAreDoubtful) {
  const Graph graph = read_onnx_bytes(
      module({{"class_prior_logits", random(5)}, {"gain", random(5)}}).bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(graph), 10);
  EXPECT_EQ(doubts_of(graph), Doubts{"parameter class_prior_logits: its name"});
}

/// Features are shifted and divided by what was measured, and logits by what stands behind that.
TEST(Buffers, NormaliseTheInput) {
  ModelMaker model;
  model.proto().set_producer_name("pytorch");
  model.input("x", {2, 6}).output("y");
  add(model, "centre", {6}, random(6));
  add(model, "spread", {6}, Numbers{1.1F, 0.9F, 1.3F, 0.7F, 1.0F, 0.8F});
  add(model, "offset", {4}, random(4));
  add(model, "l.weight", {6, 4}, random(24));
  model.node("Sub", {"x", "centre"}, {"a"});
  model.node("Div", {"a", "spread"}, {"b"});
  model.node("MatMul", {"b", "l.weight"}, {"c"});
  model.node("Add", {"c", "offset"}, {"y"});
  const Graph graph = read_onnx_bytes(model.bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(graph), 24);
  EXPECT_EQ(doubts_of(graph), (Doubts{"buffer centre: what normalises the input",
                                      "buffer spread: what normalises the input",
                                      "buffer offset: its place behind a buffer of its module"}));
}

/// The weight of a layer may begin as filters that mirror themselves (a cosine transform), but
/// hardly as one filter for all channels.
TEST(Parameters, OfALayerMayBeginAsFilters) {
  const Numbers edges{-1, 0, 1, -2, 0, 2, -1, 0, 1, -1, -2, -1, 0, 0, 0, 1, 2, 1};
  const auto graph_of = [](const std::string& name, const Numbers& numbers) {
    ModelMaker model;
    model.proto().set_producer_name("pytorch");
    model.input("x", {1, 1, 8, 8}).output("y");
    add(model, name, {2, 1, 3, 3}, numbers);
    ModelMaker::set(model.node("Conv", {"x", name}, {"y"}), "kernel_shape", test::Shape{3, 3});
    return read_onnx_bytes(model.bytes(), "net.onnx");
  };
  EXPECT_EQ(parameter_count(graph_of("f.weight", edges)), 18);
  EXPECT_EQ(doubts_of(graph_of("f.weight", edges)), Doubts{"parameter f.weight: a fixed filter"});
  EXPECT_EQ(parameter_count(graph_of("f.edges", edges)), 0);
  Numbers blur{1, 2, 1, 2, 4, 2, 1, 2, 1};
  blur.insert(blur.end(), blur.begin(), blur.begin() + 9);
  EXPECT_EQ(parameter_count(graph_of("f.weight", blur)), 0);
}

TEST(Parameters, OfALayerMayBeginAsATransform) {
  ModelMaker model;
  model.proto().set_producer_name("pytorch");
  model.input("x", {2, 8}).output("y");
  add(model, "t.weight", {8, 8}, made(64, [](double i) {
        return std::cos(3.14159265358979 / 8 * (std::fmod(i, 8) + 0.5) * std::floor(i / 8));
      }));
  model.node("MatMul", {"x", "t.weight"}, {"y"});
  const Graph graph = read_onnx_bytes(model.bytes(), "net.onnx");
  EXPECT_EQ(parameter_count(graph), 64);
  EXPECT_EQ(doubts_of(graph), Doubts{"parameter t.weight: sines of its position"});
}

TEST(Parameters, ThatAreListedButSettingsAreGuesses) {
  ModelMaker model;
  model.input("x", {2, 3}).output("y");
  add(model, "bound", {}, {2.5F});
  model.node("Clip", {"x", "", "bound"}, {"y"});
  auto& list = *model.proto().add_metadata_props();
  list.set_key("monet.parameters");
  list.set_value("bound");
  EXPECT_EQ(doubts_of(read_onnx_bytes(model.bytes(), "net.onnx")),
            Doubts{"buffer bound: its use as a setting of an operator"});
}

} // namespace MONET_TEST_FILE
} // namespace monet
