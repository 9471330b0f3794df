// Small networks written by hand for tests.
#pragma once

#include "workload/shared/operators.hpp"

#include "monet/workload/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace monet {

class TinyNetwork {
public:
  Graph graph;

  TinyNetwork() { graph.origin = "tiny.onnx"; }

  TensorId input(const std::string& name, std::vector<std::int64_t> shape,
                 ElementType type = ElementType::fp32) {
    const TensorId id = add(name, std::move(shape), type, TensorKind::input);
    graph.inputs.push_back(id);
    return id;
  }
  TensorId parameter(const std::string& name, std::vector<std::int64_t> shape) {
    return add(name, std::move(shape), ElementType::fp32, TensorKind::parameter);
  }
  TensorId buffer(const std::string& name, std::vector<std::int64_t> shape) {
    return add(name, std::move(shape), ElementType::fp32, TensorKind::buffer);
  }
  TensorId integers(const std::string& name, std::vector<std::int64_t> values) {
    const TensorId id = add(name, {static_cast<std::int64_t>(values.size())}, ElementType::int64,
                            TensorKind::constant);
    graph.tensor(id).values = std::move(values);
    return id;
  }
  TensorId number(const std::string& name, double value) {
    const TensorId id = add(name, {}, ElementType::fp32, TensorKind::constant);
    graph.tensor(id).values = std::vector<double>{value};
    return id;
  }
  /// An operator with one output, called like the operator: "Conv_3".
  TensorId op(const std::string& type, std::vector<std::optional<TensorId>> inputs,
              std::vector<std::int64_t> shape, Attributes attributes = {},
              ElementType result = ElementType::fp32) {
    return ops(type, std::move(inputs), {std::move(shape)}, std::move(attributes), result).front();
  }
  std::vector<TensorId> ops(const std::string& type, std::vector<std::optional<TensorId>> inputs,
                            const std::vector<std::vector<std::int64_t>>& shapes,
                            Attributes attributes = {}, ElementType result = ElementType::fp32) {
    Operator op;
    op.name = fmt::format("{}_{}", type, graph.operators().size());
    op.op_type = type;
    op.inputs = std::move(inputs);
    op.attributes = std::move(attributes);
    std::vector<TensorId> outputs;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::string suffix = i == 0 ? "" : fmt::format("_{}", i);
      outputs.push_back(add(op.name + suffix, shapes[i], result, TensorKind::activation));
      op.outputs.emplace_back(outputs.back());
    }
    const bool known = find_row("", type) != nullptr;
    const OpId id = graph.add_operator(std::move(op));
    if (known)
      build_nest(graph, id);
    return outputs;
  }
  void output(TensorId id) { graph.outputs.push_back(id); }

private:
  TensorId add(const std::string& name, std::vector<std::int64_t> shape, ElementType type,
               TensorKind kind) {
    Tensor tensor;
    tensor.name = name;
    tensor.shape = std::move(shape);
    tensor.type = type;
    tensor.kind = kind;
    return graph.add_tensor(std::move(tensor));
  }
};

inline Attributes with(std::string name, AttributeValue value) {
  Attributes attributes;
  attributes.set(std::move(name), std::move(value));
  return attributes;
}

inline int count_ops(const Graph& graph, std::string_view op_type, Phase phase) {
  return static_cast<int>(
      std::count_if(graph.operators().begin(), graph.operators().end(), [&](const Operator& op) {
        return op.op_type == op_type && op.phase == phase;
      }));
}

/// The only operator of the type in the phase; the first when there are more.
inline const Operator* find_op(const Graph& graph, std::string_view op_type, Phase phase) {
  for (const Operator& op : graph.operators()) {
    if (op.op_type == op_type && op.phase == phase)
      return &op;
  }
  return nullptr;
}

} // namespace monet
