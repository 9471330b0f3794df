// Nodes that stand for several others: recurrent layers step by step, an Einsum of many operands
// pair by pair. They are replaced while reading, so that nests, gradients and costs follow from
// their parts.
#pragma once

#include "workload/onnx/model.hpp"

#include <string>
#include <vector>

namespace monet::onnx_file {

/// The operator is one that expand_node replaces.
bool expands(const Node& node);
/// The nodes that replace it, in topological order; the last ones make its outputs. All inputs are
/// in `values`; constants made on the way are added there. Throws InputError located at the node.
std::vector<Node> expand_node(const Model& model, const Node& node, Values& values);

/// LSTM, GRU and RNN.
std::vector<Node> unroll_recurrent(const Model& model, const Node& node, Values& values);

/// AffineGrid, CenterCropPad, Col2Im.
bool is_newer_operator(const Node& node);
std::vector<Node> write_newer_operator(const Model& model, const Node& node, Values& values);

/// Writes nodes in the form of opset 17 into a list.
class NodeWriter {
public:
  NodeWriter(const Node& source, Values& values) : source_(source), values_(values) {}

  /// A node with one output, which is named `<source>/<name>` unless `output` is given; returns the
  /// output's name.
  std::string add(const std::string& op_type, const std::string& name,
                  std::vector<std::string> inputs, Attributes attributes = {},
                  const std::string& output = {});
  /// The parts of a tensor along an axis.
  std::vector<std::string> split(const std::string& name, const std::string& tensor,
                                 std::int64_t axis, const Integers& sizes);
  std::string squeeze(const std::string& name, const std::string& tensor, std::int64_t axis);
  std::string unsqueeze(const std::string& name, const std::string& tensor, const Integers& axes);
  std::string transpose(const std::string& name, const std::string& tensor, const Integers& order,
                        const std::string& output = {});
  std::string concat(const std::string& name, const std::vector<std::string>& tensors,
                     std::int64_t axis, const std::string& output = {});
  /// int64 vector.
  std::string integers(const Integers& list);
  std::string zeros(const std::string& name, const Integers& shape, ElementType type);

  std::vector<Node> take() { return std::move(nodes_); }

private:
  const Node& source_;
  Values& values_;
  std::vector<Node> nodes_;
};

} // namespace monet::onnx_file
