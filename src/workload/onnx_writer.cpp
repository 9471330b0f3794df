// Writes a Graph as a ModelProto, from which read_onnx restores it; commands export networks and
// training steps with it.
//
// Parameters, moments and buffers are graph inputs, as in training graphs of ONNX Runtime: no data
// are needed, and Netron and the ONNX checker accept the file. Information that ONNX lacks (tensor
// kinds, 8-bit floating types, shared storage) is in metadata_props "monet.tensors" and
// "monet.aliases", and in the doc_string of nodes.
#include "monet/workload/onnx_writer.hpp"

#include "workload/onnx/proto.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/defs/data_type_utils.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace monet {

namespace {

constexpr int kOpset = 17;
constexpr int kIrVersion = 8;

void write_value_info(const Tensor& tensor, onnx::ValueInfoProto& info) {
  info.set_name(tensor.name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_file::onnx_type(tensor.type));
  auto& shape = *type.mutable_shape();
  for (const std::int64_t size : tensor.shape)
    shape.add_dim()->set_dim_value(size);
}

/// Whether a typed field of a TensorProto holds the tensor's numbers unchanged.
bool can_hold_values(const Tensor& tensor) {
  if (!tensor.values)
    return false;
  switch (tensor.type.kind()) {
  case ElementType::Kind::fp64:
  case ElementType::Kind::fp32:
  case ElementType::Kind::int64:
  case ElementType::Kind::int32:
  case ElementType::Kind::int16:
  case ElementType::Kind::int8:
  case ElementType::Kind::uint16:
  case ElementType::Kind::uint8:
  case ElementType::Kind::boolean:
    return true;
  default:
    return false;
  }
}

void write_constant(const Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_name(tensor.name);
  proto.set_data_type(onnx_file::onnx_type(tensor.type));
  for (const std::int64_t size : tensor.shape)
    proto.add_dims(size);
  std::visit(
      [&](const auto& list) {
        for (const auto number : list) {
          if (tensor.type == ElementType::fp64) {
            proto.add_double_data(static_cast<double>(number));
          } else if (tensor.type == ElementType::fp32) {
            proto.add_float_data(static_cast<float>(number));
          } else if (tensor.type == ElementType::int64) {
            proto.add_int64_data(static_cast<std::int64_t>(number));
          } else {
            proto.add_int32_data(static_cast<std::int32_t>(number));
          }
        }
      },
      *tensor.values);
}

/// Whether the type is written as an integer type because ONNX lacks it; the operator then loses
/// its ONNX meaning.
bool is_substituted(ElementType type) {
  return is_floating(type) && (bits_of(type) <= 8 || type == ElementType::qint8);
}

/// Checks operand types against an operator's definition, in which one letter (T) stands for one
/// type.
class TypeCheck {
public:
  explicit TypeCheck(const Graph& graph) : graph_(graph) {}

  bool fits(const std::vector<std::optional<TensorId>>& operands,
            const std::vector<onnx::OpSchema::FormalParameter>& formal) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i])
        continue;
      const auto& parameter = formal[std::min(i, formal.size() - 1)];
      const bool mixed =
          parameter.GetOption() == onnx::OpSchema::Variadic && !parameter.GetIsHomogeneous();
      onnx::TypeProto proto;
      proto.mutable_tensor_type()->set_elem_type(
          onnx_file::onnx_type(graph_.tensor(*operands[i]).type));
      const onnx::DataType type = onnx::Utils::DataTypeUtils::ToType(proto);
      if (parameter.GetTypes().count(type) == 0)
        return false;
      if (!mixed && bound_.emplace(parameter.GetTypeStr(), type).first->second != type)
        return false;
    }
    return true;
  }

private:
  const Graph& graph_;
  std::map<std::string, onnx::DataType> bound_; ///< by letter
};

/// Whether a pooling has attributes newer than the schema: dilated AveragePool since opset 19,
/// dilated or rounded-up LpPool since opset 18.
bool has_newer_attributes(const Operator& op, const onnx::OpSchema& schema) {
  return std::ranges::any_of(std::array{"dilations", "ceil_mode"}, [&](const char* name) {
    return op.attributes.has(name) && schema.attributes().count(name) == 0;
  });
}

/// Domain of an operator: MONET's for ONNX operators with more operands than ONNX allows, or with
/// other types.
std::string domain_of(const Graph& graph, const Operator& op) {
  if (!op.domain.empty())
    return op.domain;
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(op.op_type.str(), kOpset, "");
  const bool fits = schema != nullptr &&
                    static_cast<int>(op.inputs.size()) <= schema->max_input() &&
                    static_cast<int>(op.outputs.size()) <= schema->max_output();
  if (!fits || has_newer_attributes(op, *schema))
    return std::string(kMonetDomain);
  if (!op.nest.operands.empty()) {
    for (const auto* side : {&op.inputs, &op.outputs}) {
      for (const auto& id : *side) {
        if (id && is_substituted(graph.tensor(*id).type))
          return std::string(kMonetDomain);
      }
    }
  }
  TypeCheck types(graph);
  const bool typed =
      types.fits(op.inputs, schema->inputs()) && types.fits(op.outputs, schema->outputs());
  return typed ? "" : std::string(kMonetDomain);
}

std::string describe(const Graph& graph, const Operator& op) {
  std::string text = fmt::format("phase: {}", name_of(op.phase));
  if (op.gradient_of == GradientOf::input)
    text += "\ngradient_of: input";
  if (op.gradient_of == GradientOf::weight)
    text += "\ngradient_of: weight";
  if (op.gradient_of == GradientOf::both)
    text += "\ngradient_of: both";
  if (op.forward_op)
    text += fmt::format("\nforward_op: {}", graph.op(*op.forward_op).name);
  return text;
}

void write_node(const Graph& graph, const Operator& op, onnx::NodeProto& node) {
  node.set_name(op.name);
  node.set_op_type(op.op_type.str());
  const std::string domain = domain_of(graph, op);
  if (!domain.empty())
    node.set_domain(domain);
  node.set_doc_string(describe(graph, op));
  for (const auto& input : op.inputs)
    node.add_input(input ? graph.tensor(*input).name : "");
  for (const auto& output : op.outputs)
    node.add_output(output ? graph.tensor(*output).name : "");
  for (const auto& [name, value] : op.attributes.all()) {
    onnx_file::write_attribute(name, value, *node.add_attribute());
  }
  if (op.op_type == ops::Cast && !op.attributes.has("to") && op.outputs[0]) {
    const auto to = onnx_file::onnx_type(graph.tensor(*op.outputs[0]).type);
    onnx_file::write_attribute("to", std::int64_t{to}, *node.add_attribute());
  }
}

void write_tensors(const Graph& graph, onnx::GraphProto& proto) {
  std::set<TensorId> listed;
  const auto input = [&](TensorId id) {
    if (listed.insert(id).second)
      write_value_info(graph.tensor(id), *proto.add_input());
  };
  for (const TensorId id : graph.inputs)
    input(id);
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    if (tensor.producer || listed.count(TensorId(i)) != 0)
      continue;
    if (can_hold_values(tensor)) {
      write_constant(tensor, *proto.add_initializer());
    } else {
      input(TensorId(i));
    }
  }
  for (const TensorId id : graph.outputs) {
    if (listed.insert(id).second)
      write_value_info(graph.tensor(id), *proto.add_output());
  }
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    if (graph.tensors()[i].producer && listed.count(TensorId(i)) == 0) {
      write_value_info(graph.tensors()[i], *proto.add_value_info());
    }
  }
}

void write_metadata(const Graph& graph, onnx::ModelProto& model) {
  std::string tensors;
  std::string aliases;
  for (const Tensor& tensor : graph.tensors()) {
    tensors += fmt::format("{} {} {}\n", name_of(tensor.kind), name_of(tensor.type), tensor.name);
    if (tensor.alias_of) {
      aliases += fmt::format("{}\t{}\n", tensor.name, graph.tensor(*tensor.alias_of).name);
    }
  }
  const auto add = [&](const char* key, const std::string& value) {
    auto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("monet.tensors", tensors);
  if (!aliases.empty())
    add("monet.aliases", aliases);
}

} // namespace

std::string write_onnx(const Graph& graph) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("monet");
  std::set<std::string> domains{""};
  onnx::GraphProto& proto = *model.mutable_graph();
  proto.set_name(graph.name.empty() ? "graph" : graph.name);
  write_tensors(graph, proto);
  for (const Operator& op : graph.operators()) {
    write_node(graph, op, *proto.add_node());
    domains.insert(domain_of(graph, op));
  }
  for (const std::string& domain : domains) {
    auto& opset = *model.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(domain.empty() ? kOpset : 1);
  }
  write_metadata(graph, model);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    internal_check(model.SerializeToCodedStream(&coded), "the graph does not fit an ONNX file");
  }
  return bytes;
}

} // namespace monet
