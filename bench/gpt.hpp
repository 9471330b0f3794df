// Transformers of the GPT family as ONNX, of any size, in the form torch.onnx exports them.
#pragma once

#include "workload/models.hpp"

#include <string>

namespace monet::bench {

struct GptShape {
  int layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t tokens = 1024;
  std::int64_t vocabulary = 50257;
};

/// Brown et al. 2020, table 2.1: GPT-3 175B.
inline GptShape gpt3(int layers = 96) {
  return {layers, 12288, 96, 2048, 50257};
}

class GptMaker {
public:
  explicit GptMaker(const GptShape& shape) : shape_(shape) {}

  std::string bytes() {
    const auto [layers, width, heads, tokens, vocabulary] = shape_;
    model_.input("ids", {1, tokens}, onnx::TensorProto::INT64).output("logits");
    model_.weight("wte", {vocabulary, width}).weight("wpe", {tokens, width});
    model_.weight("mask", {tokens, tokens}, onnx::TensorProto::BOOL);
    number("low", -1e9).number("sqrt", 8).number("half", 0.5).number("one", 1);
    number("gelu_a", 0.044715).number("gelu_b", 0.7978845608);
    model_.integers("split", {width, width, width});
    model_.integers("apart", {1, tokens, heads, width / heads});
    model_.integers("together", {1, tokens, width});
    node("Gather", {"wte", "ids"}, {"tok"});
    node("Add", {"tok", "wpe"}, {"x0"});
    std::string x = "x0";
    for (int i = 0; i < layers; ++i)
      x = block("h" + std::to_string(i), x);
    x = norm("ln_f", x);
    transposed("wte", "wte.T");
    node("MatMul", {x, "wte.T"}, {"logits"});
    return model_.bytes();
  }

private:
  using Names = std::vector<std::string>;

  onnx::NodeProto& node(const std::string& type, const Names& inputs, const Names& outputs) {
    return model_.node(type, inputs, outputs);
  }
  GptMaker& number(const std::string& name, double value) {
    auto& tensor = *model_.graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_float_data(static_cast<float>(value));
    return *this;
  }
  void transposed(const std::string& name, const std::string& result) {
    test::ModelMaker::set(node("Transpose", {name}, {result}), "perm", test::Shape{1, 0});
  }
  std::string norm(const std::string& name, const std::string& x) {
    model_.weight(name + ".weight", {shape_.width}).weight(name + ".bias", {shape_.width});
    node("LayerNormalization", {x, name + ".weight", name + ".bias"}, {name});
    return name;
  }
  std::string linear(const std::string& name, const std::string& x, std::int64_t in,
                     std::int64_t out) {
    model_.weight(name + ".weight", {out, in}).weight(name + ".bias", {out});
    transposed(name + ".weight", name + ".T");
    node("MatMul", {x, name + ".T"}, {name + ".product"});
    node("Add", {name + ".bias", name + ".product"}, {name});
    return name;
  }
  std::string binary(const std::string& type, const std::string& a, const std::string& b,
                     const std::string& result) {
    node(type, {a, b}, {result});
    return result;
  }
  std::string head_wise(const std::string& x, const test::Shape& order) {
    node("Reshape", {x, "apart"}, {x + ".apart"});
    test::ModelMaker::set(node("Transpose", {x + ".apart"}, {x + ".heads"}), "perm", order);
    return x + ".heads";
  }
  std::string attention(const std::string& name, const std::string& x) {
    const std::string qkv = linear(name + ".c_attn", x, shape_.width, 3 * shape_.width);
    test::ModelMaker::set(node("Split", {qkv, "split"}, {name + ".q", name + ".k", name + ".v"}),
                          "axis", std::int64_t{2});
    const std::string q = head_wise(name + ".q", {0, 2, 1, 3});
    const std::string k = head_wise(name + ".k", {0, 2, 3, 1});
    const std::string v = head_wise(name + ".v", {0, 2, 1, 3});
    binary("MatMul", q, k, name + ".scores");
    binary("Div", name + ".scores", "sqrt", name + ".scaled");
    node("Where", {"mask", "low", name + ".scaled"}, {name + ".masked"});
    test::ModelMaker::set(node("Softmax", {name + ".masked"}, {name + ".p"}), "axis",
                          std::int64_t{-1});
    binary("MatMul", name + ".p", v, name + ".context");
    test::ModelMaker::set(node("Transpose", {name + ".context"}, {name + ".tokens"}), "perm",
                          test::Shape{0, 2, 1, 3});
    binary("Reshape", name + ".tokens", "together", name + ".joined");
    return linear(name + ".c_proj", name + ".joined", shape_.width, shape_.width);
  }
  std::string gelu(const std::string& x) {
    binary("Mul", x, x, x + ".2");
    binary("Mul", x, x + ".2", x + ".3");
    binary("Mul", x + ".3", "gelu_a", x + ".a");
    binary("Add", x, x + ".a", x + ".s");
    binary("Mul", x + ".s", "gelu_b", x + ".b");
    node("Tanh", {x + ".b"}, {x + ".t"});
    binary("Add", x + ".t", "one", x + ".u");
    binary("Mul", x, "half", x + ".h");
    return binary("Mul", x + ".h", x + ".u", x + ".gelu");
  }
  std::string block(const std::string& name, const std::string& x) {
    const std::string attended = attention(name + ".attn", norm(name + ".ln_1", x));
    binary("Add", x, attended, name + ".mid");
    const std::string wide =
        linear(name + ".c_fc", norm(name + ".ln_2", name + ".mid"), shape_.width, 4 * shape_.width);
    const std::string narrow = linear(name + ".c_proj", gelu(wide), 4 * shape_.width, shape_.width);
    return binary("Add", name + ".mid", narrow, name + ".out");
  }

  GptShape shape_;
  test::ModelMaker model_;
};

} // namespace monet::bench
