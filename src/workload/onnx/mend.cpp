// Corrects known exporter errors whose intended meaning is certain; parse.cpp calls it on loop
// bodies.
#include "workload/onnx/model.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>

namespace monet::onnx_file {

namespace {

/// Nodes of a graph by the values that they produce.
class Makers {
public:
  explicit Makers(const InnerGraph& graph) {
    for (const Node& node : graph.nodes) {
      if (node.domain.empty() && node.outputs.size() == 1)
        nodes_.emplace(node.outputs[0], &node);
    }
  }

  /// Producer of a node's input if it has that type, otherwise null.
  const Node* input(const Node* node, std::size_t i, OpType op_type) const {
    if (node == nullptr || i >= node->inputs.size())
      return nullptr;
    const auto found = nodes_.find(node->inputs[i]);
    return found == nodes_.end() || found->second->op_type != op_type ? nullptr : found->second;
  }
  /// Integers of a Constant that is a node's input.
  Integers integers(const Node* node, std::size_t i) const {
    const Node* constant = input(node, i, ops::Constant);
    if (constant == nullptr)
      return {};
    const auto tensor = constant->tensors.find("value");
    const auto* list =
        tensor == constant->tensors.end() ? nullptr : integers_of(tensor->second.values);
    return list == nullptr ? Integers{} : *list;
  }

private:
  std::unordered_map<std::string_view, const Node*> nodes_;
};

/// Axis of a Reshape by [0, .., -1, 0, ..] after a repeat along a new axis that follows it. The
/// zeros after the -1 refer to the axes before the new axis was added.
std::optional<std::int64_t> repeated_axis(const Makers& makers, const Node& node) {
  const Node* repeated = makers.input(&node, 0, ops::Expand);
  const Node* unsqueeze = makers.input(repeated, 0, ops::Unsqueeze);
  if (node.op_type != ops::Reshape || makers.input(unsqueeze, 0, ops::SequenceAt) == nullptr)
    return std::nullopt;
  const Integers shape = makers.integers(&node, 1);
  const auto open = std::ranges::find(shape, -1);
  const std::int64_t axis = open - shape.begin();
  const Integers axes = unsqueeze->inputs.size() > 1 ? makers.integers(unsqueeze, 1)
                                                     : unsqueeze->attributes.integers("axes");
  const bool meant = std::count(open, shape.end(), 0) > 0 && axes == std::vector{axis + 1};
  return meant ? std::optional(axis) : std::nullopt;
}

} // namespace

void mend_repeat_interleave(InnerGraph& body) {
  const Makers makers(body);
  for (Node& node : body.nodes) {
    const auto axis = repeated_axis(makers, node);
    if (!axis)
      continue;
    const std::string axes = node.outputs.at(0) + "/axis";
    body.initializers[axes] = integer_constant({*axis});
    node.op_type = ops::Squeeze;
    node.opset = 13;
    node.attributes = {};
    node.inputs[1] = axes;
  }
}

} // namespace monet::onnx_file
