// Adds tensors, operators and standard layers to a graph; transformer.cpp and experts.cpp use it.
#include "workload/transformer/writer.hpp"

#include "base/shared/checked.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <utility>

namespace monet::transformer {

namespace {

std::string text_of(const Extents& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

constexpr double kEpsilon = 1e-5; ///< default of PyTorch, GPT-2 and Megatron

} // namespace

TensorId GraphWriter::new_tensor(Tensor tensor) {
  if (checked_product(tensor.shape) > max_elements_) {
    throw InputError({graph_.origin, 0, 0, ""},
                     fmt::format("'{}' [{}] has more than {} elements", tensor.name,
                                 text_of(tensor.shape), max_elements_));
  }
  return graph_.add_tensor(std::move(tensor));
}

TensorId GraphWriter::parameter(const std::string& name, Extents shape) {
  return new_tensor({.name = name, .shape = std::move(shape), .kind = TensorKind::parameter});
}

TensorId GraphWriter::input(const std::string& name, Extents shape, ElementType type) {
  const TensorId id = new_tensor(
      {.name = name, .shape = std::move(shape), .type = type, .kind = TensorKind::input});
  graph_.inputs.push_back(id);
  return id;
}

TensorId GraphWriter::constant(Tensor tensor) {
  if (const auto known = constants_.find(tensor.name); known != constants_.end())
    return known->second;
  tensor.kind = TensorKind::constant;
  const std::string name = tensor.name;
  const TensorId id = new_tensor(std::move(tensor));
  constants_.emplace(name, id);
  return id;
}

TensorId GraphWriter::integers(const std::string& name, const Extents& values, ElementType type) {
  return constant({.name = name,
                   .shape = {static_cast<std::int64_t>(values.size())},
                   .type = type,
                   .values = values});
}

TensorId GraphWriter::shape_of(const std::string& name, const Extents& values) {
  return integers(name, values, ElementType::int64);
}

TensorId GraphWriter::integer(const std::string& name, std::int64_t value, ElementType type) {
  return constant({.name = name, .type = type, .values = Extents{value}});
}

TensorId GraphWriter::number(const std::string& name, double value) {
  return constant({.name = name, .values = std::vector<double>{value}});
}

TensorId GraphWriter::numbers(const std::string& name, const std::vector<double>& values) {
  return constant(
      {.name = name, .shape = {static_cast<std::int64_t>(values.size())}, .values = values});
}

std::vector<TensorId> GraphWriter::add_all(Node node, const std::vector<Extents>& shapes) {
  Operator op{.name = node.name,
              .op_type = std::string(node.op_type),
              .domain = std::string(node.domain),
              .attributes = std::move(node.attributes)};
  op.inputs.assign(node.inputs.begin(), node.inputs.end());
  std::vector<TensorId> results;
  for (const Extents& shape : shapes) {
    const std::string suffix = results.empty() ? "" : fmt::format("/{}", results.size());
    results.push_back(new_tensor({.name = node.name + suffix, .shape = shape, .type = node.type}));
  }
  op.outputs.assign(results.begin(), results.end());
  build_nest(graph_, graph_.add_operator(std::move(op)));
  return results;
}

TensorId GraphWriter::add(Node node, Extents shape) {
  return add_all(std::move(node), {std::move(shape)}).front();
}

TensorId GraphWriter::with(const std::string& name, OpType op_type, TensorId tensor,
                           TensorId other) {
  return add({.name = name, .op_type = op_type, .inputs = {tensor, other}}, shape(tensor));
}

TensorId GraphWriter::softmax(const std::string& name, TensorId tensor) {
  return add({.name = name,
              .op_type = ops::Softmax,
              .inputs = {tensor},
              .attributes = {{"axis", std::int64_t{-1}}}},
             Extents(shape(tensor)));
}

TensorId GraphWriter::transpose(const std::string& name, TensorId tensor, const Extents& perm) {
  const Extents from = shape(tensor);
  Extents to;
  for (const std::int64_t axis : perm)
    to.push_back(from.at(static_cast<std::size_t>(axis)));
  return add({.name = name,
              .op_type = ops::Transpose,
              .inputs = {tensor},
              .attributes = {{"perm", perm}},
              .type = graph_.tensor(tensor).type},
             std::move(to));
}

TensorId GraphWriter::reshape(const std::string& name, TensorId tensor, const Extents& shape) {
  const TensorId wanted = shape_of(fmt::format("shape [{}]", text_of(shape)), shape);
  return add({.name = name,
              .op_type = ops::Reshape,
              .inputs = {tensor, wanted},
              .attributes = {{"allowzero", std::int64_t{0}}},
              .type = graph_.tensor(tensor).type},
             shape);
}

TensorId GraphWriter::einsum(const std::string& name, const std::string& letters, TensorId first,
                             TensorId second, Extents shape) {
  return add({.name = name,
              .op_type = ops::Einsum,
              .inputs = {first, second},
              .attributes = {{"equation", letters}}},
             std::move(shape));
}

TensorId add_norm(GraphWriter& writer, const TransformerShape& shape, const std::string& name,
                  TensorId x) {
  const bool centred = shape.norm == TransformerShape::Norm::layer;
  Node node{.name = name,
            .op_type = centred ? ops::LayerNormalization : ops::RMSNormalization,
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
      {.name = name, .op_type = ops::Dropout, .inputs = {x, writer.number(ratio, share)}},
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
    inner = activated({.op_type = ops::Gelu,
                       .inputs = {linear("fc", x, wide)},
                       .attributes = {{"approximate", std::string("tanh")}}});
    break;
  case TransformerShape::Activation::relu:
    inner = activated({.op_type = ops::Relu, .inputs = {linear("fc", x, wide)}});
    break;
  case TransformerShape::Activation::swiglu: {
    const TensorId gate = activated(
        {.op_type = ops::Silu, .inputs = {linear("gate", x, wide)}, .domain = kMonetDomain});
    inner = writer.with(name + ".gated", ops::Mul, gate, linear("up", x, wide));
    break;
  }
  }
  return linear("proj", inner, shape.hidden);
}

} // namespace monet::transformer
