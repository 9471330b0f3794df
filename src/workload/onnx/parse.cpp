// Converts a ModelProto to a Model, the first step of onnx_reader.cpp. Checks form only: sizes,
// types, counts.
#include "base/shared/checked.hpp"
#include "workload/onnx/model.hpp"
#include "workload/onnx/proto.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace monet::onnx_file {

namespace {

std::size_t count_of(const ConstantValues& values) {
  return std::visit([](const auto& list) { return list.size(); }, values);
}

/// Shape and type of a tensor, and its numbers if the file has them and they are few.
Value read_tensor(const onnx::TensorProto& tensor, const SourceLoc& where) {
  Value value;
  value.is_constant = true;
  const auto type = element_type(tensor.data_type());
  if (!type) {
    throw InputError(where, fmt::format("element type {} is not supported", tensor.data_type()));
  }
  value.type = *type;
  value.shape.assign(tensor.dims().begin(), tensor.dims().end());
  for (const std::int64_t size : value.shape) {
    if (size < 0)
      throw InputError(where, fmt::format("an axis has {} elements", size));
  }
  std::int64_t count = 0;
  try {
    count = checked_product(value.shape);
  } catch (const InputError&) {
    throw InputError(where, "the number of elements overflows 64 bits");
  }
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL || count > kMaxFoldedElements) {
    return value;
  }
  auto numbers = stored_numbers(tensor, *type);
  if (!numbers)
    return value;
  const std::size_t expected = static_cast<std::size_t>(count);
  if (count_of(*numbers) == expected) {
    if (*type == ElementType::fp32 && expected == 1) {
      double& number = std::get<std::vector<double>>(*numbers).front();
      number = as_written(static_cast<float>(number));
    }
    value.values = std::move(numbers);
  } else if (count_of(*numbers) != 0) { // no data: weights were stripped
    throw InputError(
        where, fmt::format("{} values are stored for {} elements", count_of(*numbers), count));
  }
  return value;
}

Declared read_declared(const onnx::ValueInfoProto& info) {
  Declared declared;
  declared.name = info.name();
  if (!info.type().has_tensor_type())
    return declared;
  const auto& tensor = info.type().tensor_type();
  declared.type = element_type(tensor.elem_type());
  if (!tensor.has_shape())
    return declared;
  auto& shape = declared.shape.emplace();
  for (const auto& dim : tensor.shape().dim()) {
    Dimension& dimension = shape.emplace_back();
    if (dim.has_dim_value())
      dimension.size = dim.dim_value();
    if (dim.has_dim_param())
      dimension.symbol = dim.dim_param();
  }
  return declared;
}

void read_attribute(const onnx::AttributeProto& attribute, Node& node, const SourceLoc& where) {
  const std::string& name = attribute.name();
  if (!attribute.ref_attr_name().empty()) {
    node.attribute_references[name] = attribute.ref_attr_name();
    return;
  }
  switch (attribute.type()) {
  case onnx::AttributeProto::FLOAT:
    node.attributes.set(name, as_written(attribute.f()));
    break;
  case onnx::AttributeProto::INT:
    node.attributes.set(name, attribute.i());
    break;
  case onnx::AttributeProto::STRING:
    node.attributes.set(name, attribute.s());
    break;
  case onnx::AttributeProto::FLOATS: {
    std::vector<double> numbers;
    for (const float value : attribute.floats())
      numbers.push_back(as_written(value));
    node.attributes.set(name, std::move(numbers));
    break;
  }
  case onnx::AttributeProto::INTS:
    node.attributes.set(name, from_field<std::int64_t>(attribute.ints()));
    break;
  case onnx::AttributeProto::STRINGS:
    node.attributes.set(
        name, std::vector<std::string>(attribute.strings().begin(), attribute.strings().end()));
    break;
  case onnx::AttributeProto::TENSOR:
    node.tensors[name] = read_tensor(attribute.t(), where);
    break;
  default:
    node.unsupported_attribute = name;
    node.has_subgraph = node.has_subgraph || attribute.has_g() || attribute.graphs_size() > 0;
  }
}

std::string plain_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

/// Maximum nesting depth of graphs.
constexpr int kMaxGraphDepth = 8;

using Opsets = std::map<std::string, std::int64_t>;
void read_inner_graphs(const onnx::NodeProto& proto, const Model& model, const Opsets& opsets,
                       int depth, Node& node);

/// Reads a node at nesting depth `depth`.
Node read_node(const onnx::NodeProto& proto, const Model& model, const Opsets& opsets,
               int depth = 0) {
  Node node;
  node.name = proto.name();
  node.op_type = proto.op_type();
  node.domain = plain_domain(proto.domain());
  const auto opset = opsets.find(node.domain);
  node.opset = opset == opsets.end() ? 0 : opset->second;
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  node.documentation = proto.doc_string();
  if (node.name.empty() && !node.outputs.empty())
    node.name = node.outputs.front();
  for (const auto& attribute : proto.attribute()) {
    read_attribute(attribute, node,
                   at_node(model, node, fmt::format("attribute '{}'", attribute.name())));
  }
  if (node.domain.empty() && node.has_subgraph && depth < kMaxGraphDepth)
    read_inner_graphs(proto, model, opsets, depth, node);
  return node;
}

/// Adds names that a graph reads but does not produce, except those already in `listed`.
void add_captured(const InnerGraph& graph, std::unordered_set<std::string_view>& listed,
                  std::vector<std::string>& names) {
  std::unordered_set<std::string_view> own(graph.inputs.begin(), graph.inputs.end());
  for (const auto& [name, value] : graph.initializers)
    own.insert(name);
  const auto read = [&](const std::string& name) {
    if (!name.empty() && own.count(name) == 0 && listed.insert(name).second)
      names.push_back(name);
  };
  for (const Node& node : graph.nodes) {
    std::ranges::for_each(node.inputs, read);
    own.insert(node.outputs.begin(), node.outputs.end());
  }
  std::ranges::for_each(graph.outputs, read);
}

/// Attribute names of an operator's graphs, in the order of InnerGraphs.
std::vector<std::string_view> graph_attributes(OpType op_type) {
  if (op_type == ops::If)
    return {"else_branch", "then_branch"};
  if (op_type == ops::Loop || op_type == ops::Scan)
    return {"body"};
  return {};
}

InnerGraph read_inner_graph(const onnx::GraphProto& proto, const Model& model, const Opsets& opsets,
                            int depth) {
  InnerGraph graph;
  for (const auto& input : proto.input())
    graph.inputs.push_back(input.name());
  for (const auto& tensor : proto.initializer())
    graph.initializers[tensor.name()] = read_tensor(tensor, at_tensor(model, tensor.name()));
  for (const auto& node : proto.node())
    graph.nodes.push_back(read_node(node, model, opsets, depth + 1));
  for (const auto& output : proto.output())
    graph.outputs.push_back(output.name());
  if (model.producer == "pytorch")
    mend_repeat_interleave(graph);
  return graph;
}

void read_inner_graphs(const onnx::NodeProto& proto, const Model& model, const Opsets& opsets,
                       int depth, Node& node) {
  const std::vector<std::string_view> wanted = graph_attributes(node.op_type);
  if (wanted.empty())
    return;
  auto inner = std::make_shared<InnerGraphs>();
  inner->own_inputs = node.inputs.size();
  for (const std::string_view name : wanted) {
    const auto& all = proto.attribute();
    const auto found = std::ranges::find_if(
        all, [&](const auto& attribute) { return attribute.name() == name && attribute.has_g(); });
    if (found == all.end())
      return;
    inner->graphs.push_back(read_inner_graph(found->g(), model, opsets, depth));
  }
  std::unordered_set<std::string_view> listed;
  for (const InnerGraph& graph : inner->graphs)
    add_captured(graph, listed, inner->captured);
  node.inputs.insert(node.inputs.end(), inner->captured.begin(), inner->captured.end());
  node.inner = std::move(inner);
}

template <class Imports>
std::map<std::string, std::int64_t> read_opsets(const Imports& imports) {
  std::map<std::string, std::int64_t> opsets;
  for (const auto& import : imports)
    opsets[plain_domain(import.domain())] = import.version();
  return opsets;
}

void read_functions(const onnx::ModelProto& proto, Model& model) {
  for (const auto& function : proto.functions()) {
    auto opsets = read_opsets(function.opset_import());
    opsets.insert(model.opsets.begin(), model.opsets.end());
    Function& read = model.functions[{plain_domain(function.domain()), function.name()}];
    read.inputs.assign(function.input().begin(), function.input().end());
    read.outputs.assign(function.output().begin(), function.output().end());
    for (const auto& node : function.node())
      read.nodes.push_back(read_node(node, model, opsets, kMaxGraphDepth));
  }
}

void read_graph(const onnx::GraphProto& graph, Model& model) {
  model.name = graph.name();
  for (const auto& tensor : graph.initializer()) {
    const SourceLoc where = at_tensor(model, tensor.name());
    if (!model.initializers.emplace(tensor.name(), read_tensor(tensor, where)).second) {
      throw InputError(where, "two initializers have this name");
    }
    model.initializer_order.push_back(tensor.name());
  }
  model.equal_weights = find_equal_weights(graph);
  for (const auto& tensor : graph.sparse_initializer()) {
    throw InputError(at_tensor(model, tensor.values().name()),
                     "sparse initializers are not supported");
  }
  for (const auto& info : graph.input())
    model.inputs.push_back(read_declared(info));
  for (const auto& info : graph.output())
    model.outputs.push_back(read_declared(info));
  for (const auto& info : graph.value_info()) {
    model.value_info.emplace(info.name(), read_declared(info));
  }
  for (const auto& info : graph.output()) {
    model.value_info.emplace(info.name(), read_declared(info));
  }
  for (const auto& node : graph.node()) {
    model.nodes.push_back(read_node(node, model, model.opsets));
  }
}

} // namespace

SourceLoc at_node(const Model& model, const Node& node, std::string_view detail) {
  const std::string domain = node.domain.empty() ? "" : node.domain + ".";
  std::string element = fmt::format("node '{}' ({}{})", node.name, domain, node.op_type);
  if (!detail.empty())
    element += fmt::format(", {}", detail);
  return {model.origin, 0, 0, element};
}

SourceLoc at_tensor(const Model& model, std::string_view name) {
  return {model.origin, 0, 0, fmt::format("tensor '{}'", name)};
}

onnx::ModelProto parse_proto(std::string_view bytes, const std::string& origin) {
  constexpr auto kLimit = std::numeric_limits<int>::max();
  const SourceLoc file{origin, 0, 0, {}};
  if (bytes.size() > static_cast<std::size_t>(kLimit)) {
    throw InputError(file, "the file is larger than 2 GB");
  }
  onnx::ModelProto proto;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(kLimit);
  if (bytes.empty() || !proto.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    report_unreadable(bytes, origin);
  if (!proto.has_graph())
    throw InputError(file, "the model has no graph");
  return proto;
}

void parse_model(NetworkDraft& draft) {
  Model& model = draft.model;
  const onnx::ModelProto proto = parse_proto(draft.bytes, model.origin);
  model.producer = proto.producer_name();
  model.opsets = read_opsets(proto.opset_import());
  if (model.opsets.find("") == model.opsets.end())
    model.opsets[""] = 1; // as in files before IR version 3
  for (const auto& entry : proto.metadata_props())
    model.metadata[entry.key()] = entry.value();
  read_functions(proto, model);
  read_graph(proto.graph(), model);
}

} // namespace monet::onnx_file
