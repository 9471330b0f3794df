// ONNX models written in a few lines, and graphs made by hand.
#pragma once

#include "workload/shared/operators.hpp"

#include "monet/workload/graph.hpp"

#include <onnx/onnx_pb.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace monet::test {

using Shape = std::vector<std::int64_t>;

/// A ModelProto under construction. A negative size in an input's shape is the symbolic dimension
/// "batch".
class ModelMaker {
public:
  explicit ModelMaker(std::int64_t opset = 17) {
    model_.set_ir_version(8);
    auto& import = *model_.add_opset_import();
    import.set_domain("");
    import.set_version(opset);
    model_.mutable_graph()->set_name("test");
  }

  onnx::ModelProto& proto() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  ModelMaker& import(const std::string& domain, std::int64_t version) {
    auto& opset = *model_.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
    return *this;
  }
  ModelMaker& input(const std::string& name, const Shape& shape,
                    int type = onnx::TensorProto::FLOAT) {
    describe(*graph().add_input(), name, shape, type);
    return *this;
  }
  ModelMaker& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  /// A weight without data, as weightless exports have.
  ModelMaker& weight(const std::string& name, const Shape& shape,
                     int type = onnx::TensorProto::FLOAT) {
    auto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const auto size : shape)
      tensor.add_dims(size);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    return *this;
  }
  ModelMaker& integers(const std::string& name, const std::vector<std::int64_t>& values) {
    auto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<std::int64_t>(values.size()));
    for (const auto value : values)
      tensor.add_int64_data(value);
    return *this;
  }
  onnx::NodeProto& node(const std::string& op_type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& domain = "") {
    auto& made = *graph().add_node();
    made.set_name(op_type + "_" + std::to_string(graph().node_size() - 1));
    made.set_op_type(op_type);
    made.set_domain(domain);
    for (const auto& input : inputs)
      made.add_input(input);
    for (const auto& output : outputs)
      made.add_output(output);
    return made;
  }
  static void set(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  static void set_float(onnx::NodeProto& node, const std::string& name, double value) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(value));
  }
  static void set(onnx::NodeProto& node, const std::string& name, const Shape& values) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const auto value : values)
      attribute.add_ints(value);
  }
  std::string bytes() const { return model_.SerializeAsString(); }

private:
  static void describe(onnx::ValueInfoProto& info, const std::string& name, const Shape& shape,
                       int type) {
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    auto& dims = *tensor.mutable_shape();
    for (const auto size : shape) {
      if (size < 0) {
        dims.add_dim()->set_dim_param("batch");
      } else {
        dims.add_dim()->set_dim_value(size);
      }
    }
  }
  onnx::ModelProto model_;
};

inline TensorId add_tensor(Graph& graph, const std::string& name, Shape shape,
                           TensorKind kind = TensorKind::activation) {
  Tensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  tensor.kind = kind;
  return graph.add_tensor(std::move(tensor));
}

inline TensorId add_integers(Graph& graph, const std::string& name,
                             std::vector<std::int64_t> values) {
  const TensorId id =
      add_tensor(graph, name, {static_cast<std::int64_t>(values.size())}, TensorKind::constant);
  graph.tensor(id).type = ElementType::int64;
  graph.tensor(id).values = std::move(values);
  return id;
}

inline OpId add_op(Graph& graph, const std::string& op_type, const std::vector<TensorId>& inputs,
                   const std::vector<TensorId>& outputs, Attributes attributes = {},
                   const std::string& domain = "") {
  Operator op;
  op.name = op_type + "_" + std::to_string(graph.operators().size());
  op.op_type = op_type;
  op.domain = domain;
  op.attributes = std::move(attributes);
  op.inputs.assign(inputs.begin(), inputs.end());
  op.outputs.assign(outputs.begin(), outputs.end());
  const OpId id = graph.add_operator(std::move(op));
  build_nest(graph, id);
  return id;
}

/// Calls visit(index) with the loop indices of every iteration, the last loop fastest.
template <class Visit>
void for_each_iteration(const LoopNest& nest, Visit&& visit) {
  std::vector<std::int64_t> index(nest.dims.size(), 0);
  for (const LoopDim& dim : nest.dims) {
    if (dim.size == 0)
      return;
  }
  while (true) {
    visit(index);
    std::size_t i = index.size();
    while (i > 0 && ++index[i - 1] == nest.dims[i - 1].size)
      index[--i] = 0;
    if (i == 0)
      return;
  }
}

/// Row-major position of the element that an access touches; nullopt outside the tensor (padding).
inline std::optional<std::int64_t> position(const Access& access, const Shape& shape,
                                            const std::vector<std::int64_t>& index) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::int64_t value = access.axes[i].offset;
    for (const AffineTerm& term : access.axes[i].terms)
      value += term.coefficient * index[term.dim];
    if (value < 0 || value >= shape[i])
      return std::nullopt;
    at = at * shape[i] + value;
  }
  return at;
}

} // namespace monet::test
