// Edges, operators, subgraphs, versions.
#include "structured/onnx_parts.hpp"
#include "structured/words.hpp"

namespace monet::fuzz {

namespace {

using onnx::NodeProto;

NodeProto* some_node(const Place& place) {
  return some(*place.graph.mutable_node(), place.random);
}

/// The operand reads another tensor: of before, of later (a cycle), of nowhere.
bool rewire(const Place& place) {
  NodeProto* node = some_node(place);
  if (node == nullptr || node->input_size() == 0)
    return false;
  node->set_input(place.random.index(node->input_size()), some_tensor(place));
  return true;
}

bool change_operands(const Place& place) {
  Random& random = place.random;
  NodeProto* node = some_node(place);
  if (node == nullptr)
    return false;
  auto& inputs = *node->mutable_input();
  switch (random.below(4)) {
  case 0:
    *inputs.Add() = some_tensor(place);
    return true;
  case 1:
    return remove_some(inputs, random);
  case 2:
    if (!inputs.empty())
      inputs.Mutable(random.index(inputs.size()))->clear();
    return !inputs.empty();
  default:
    if (inputs.size() > 1)
      inputs.SwapElements(random.index(inputs.size()), random.index(inputs.size()));
    return inputs.size() > 1;
  }
}

bool change_results(const Place& place) {
  Random& random = place.random;
  NodeProto* node = some_node(place);
  if (node == nullptr)
    return false;
  if (random.one_in(3))
    return remove_some(*node->mutable_output(), random);
  if (random.one_in(2) || node->output_size() == 0)
    node->add_output("made" + std::to_string(random.below(4)));
  else
    node->set_output(random.index(node->output_size()), some_tensor(place));
  return true;
}

bool change_operator(const Place& place) {
  NodeProto* node = some_node(place);
  if (node == nullptr)
    return false;
  const OperatorName& name = place.random.pick(operator_names());
  node->set_op_type(name.op_type);
  node->set_domain(name.domain);
  if (place.random.one_in(4))
    node->clear_attribute();
  return true;
}

bool remove_or_copy(const Place& place) {
  Random& random = place.random;
  auto& nodes = *place.graph.mutable_node();
  NodeProto* node = some_node(place);
  if (node == nullptr)
    return false;
  if (random.one_in(3))
    return remove_some(nodes, random);
  const NodeProto copy = *node;
  NodeProto& added = *nodes.Add();
  added = copy;
  const std::string suffix = "_" + std::to_string(nodes.size());
  added.set_name(copy.name() + suffix);
  for (std::string& output : *added.mutable_output())
    output += suffix;
  if (added.input_size() > 0 && random.one_in(2)) // one after the other
    added.set_input(0, copy.output_size() > 0 ? copy.output(0) : some_tensor(place));
  if (added.output_size() > 0 && random.one_in(2))
    place.graph.add_output()->set_name(added.output(0));
  return true;
}

/// An operator between a tensor and one of its readers, or at the end.
bool insert_operator(const Place& place) {
  Random& random = place.random;
  const std::string made = "inserted" + std::to_string(place.graph.node_size());
  NodeProto* reader = some_node(place);
  const bool between = reader != nullptr && reader->input_size() > 0 && !random.one_in(4);
  const int operand = between ? random.index(reader->input_size()) : 0;
  const std::string read = between ? reader->input(operand) : some_tensor(place);
  if (between)
    reader->set_input(operand, made);
  else
    place.graph.add_output()->set_name(made);
  const OperatorName& name = random.pick(operator_names());
  NodeProto& node = *place.graph.add_node(); // `reader` may have moved
  node.set_name(made);
  node.set_op_type(name.op_type);
  node.set_domain(name.domain);
  node.add_input(read);
  for (std::size_t i = random.below(3); i > 0; --i)
    node.add_input(random.one_in(3) ? read : some_tensor(place));
  node.add_output(made);
  return true;
}

bool reorder(const Place& place) {
  auto& nodes = *place.graph.mutable_node();
  if (nodes.size() < 2)
    return false;
  nodes.SwapElements(place.random.index(nodes.size()), place.random.index(nodes.size()));
  return true;
}

bool change_ends(const Place& place) {
  Random& random = place.random;
  onnx::GraphProto& graph = place.graph;
  switch (random.below(4)) {
  case 0:
    graph.add_output()->set_name(some_tensor(place));
    return true;
  case 1:
    return remove_some(*graph.mutable_output(), random);
  case 2:
    return remove_some(*graph.mutable_input(), random);
  default: {
    auto& info = *graph.add_input();
    info.set_name(some_tensor(place));
    info.mutable_type()->mutable_tensor_type()->set_elem_type(some_type(random));
    info.mutable_type()->mutable_tensor_type()->mutable_shape();
    return true;
  }
  }
}

bool change_version(const Place& place) {
  Random& random = place.random;
  onnx::ModelProto& model = place.model;
  if (random.one_in(3)) { // the targets' options, see variation()
    model.set_model_version(static_cast<std::int64_t>(random.below(64)));
  } else if (random.one_in(3)) {
    const OperatorName& name = random.pick(operator_names());
    auto& import = *model.add_opset_import();
    import.set_domain(name.domain);
    import.set_version(1 + random.index(3));
  } else if (auto* import = some(*model.mutable_opset_import(), random); import != nullptr) {
    import->set_version(random.one_in(8) ? random.integer() : 7 + random.index(16));
  } else {
    model.set_ir_version(random.integer());
  }
  return true;
}

/// A graph in an attribute: a copy of this graph, or the body of another node.
bool change_subgraph(const Place& place) {
  Random& random = place.random;
  NodeProto* node = some_node(place);
  constexpr std::size_t kMaxBytes = 4096; // copies of copies double
  if (node == nullptr || place.graph.ByteSizeLong() > kMaxBytes)
    return false;
  const onnx::GraphProto copy = place.graph;
  constexpr const char* kNames[]{"body", "then_branch", "else_branch"};
  for (auto& attribute : *node->mutable_attribute()) {
    if (attribute.has_g() && random.one_in(2)) {
      *attribute.mutable_g() = copy;
      return true;
    }
  }
  if (random.one_in(2))
    node->set_op_type(random.one_in(2) ? "Loop" : random.one_in(2) ? "If" : "Scan");
  auto& attribute = *node->add_attribute();
  attribute.set_name(random.pick(kNames));
  attribute.set_type(onnx::AttributeProto::GRAPH);
  *attribute.mutable_g() = copy;
  return true;
}

bool change_notes(const Place& place) {
  Random& random = place.random;
  auto& entry = *place.model.add_metadata_props();
  entry.set_key("monet.parameters");
  for (std::size_t i = random.below(3); i > 0; --i)
    entry.mutable_value()->append(some_tensor(place) + "\n");
  return true;
}

} // namespace

const std::vector<Mutation>& node_mutations() {
  static const std::vector<Mutation> mutations{
      rewire,          rewire,          rewire,         change_operands, change_results,
      change_operator, change_operator, remove_or_copy, reorder,         insert_operator,
      insert_operator, insert_operator, change_ends,    change_version,  change_version,
      change_subgraph, change_notes};
  return mutations;
}

} // namespace monet::fuzz
