#include "workload/transformer/layers.hpp"

namespace monet::transformer {

namespace {

constexpr double kEpsilon = 1e-5; ///< PyTorch's, GPT-2's and Megatron's

} // namespace

TensorId add_norm(GraphWriter& writer, const TransformerShape& shape, const std::string& name,
                  TensorId x) {
  const bool centred = shape.norm == TransformerShape::Norm::layer;
  Node node{.name = name,
            .op_type = centred ? "LayerNormalization" : "RMSNormalization",
            .inputs = {x, writer.parameter(name + ".weight", {shape.hidden})},
            .attributes = {{"axis", std::int64_t{-1}}, {"epsilon", kEpsilon}}};
  if (centred)
    node.inputs.push_back(writer.parameter(name + ".bias", {shape.hidden}));
  return writer.add(std::move(node), writer.shape(x));
}

TensorId add_dropout(GraphWriter& writer, double share, const std::string& name, TensorId x,
                     const std::string& ratio) {
  if (share == 0.0)
    return x;
  return writer.add(
      {.name = name, .op_type = "Dropout", .inputs = {x, writer.number(ratio, share)}},
      writer.shape(x));
}

TensorId add_feed_forward(GraphWriter& writer, const TransformerShape& shape,
                          const std::string& name, TensorId x, const Linear& linear) {
  const std::int64_t wide = shape.size_of_ffn();
  const auto activated = [&](Node node) {
    node.name = name + ".act";
    const Extents extents = writer.shape(node.inputs[0]);
    return writer.add(std::move(node), extents);
  };
  TensorId inner;
  switch (shape.activation) {
  case TransformerShape::Activation::gelu:
    inner = activated({.op_type = "Gelu",
                       .inputs = {linear("fc", x, wide)},
                       .attributes = {{"approximate", std::string("tanh")}}});
    break;
  case TransformerShape::Activation::relu:
    inner = activated({.op_type = "Relu", .inputs = {linear("fc", x, wide)}});
    break;
  case TransformerShape::Activation::swiglu: {
    const TensorId gate =
        activated({.op_type = "Silu", .inputs = {linear("gate", x, wide)}, .domain = kMonetDomain});
    inner = writer.with(name + ".gated", "Mul", gate, linear("up", x, wide));
    break;
  }
  }
  return linear("proj", inner, shape.hidden);
}

} // namespace monet::transformer
