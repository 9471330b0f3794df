// Expands composite nodes while reading: recurrent layers step by step, and an Einsum of many
// operands pair by pair. Nests, gradients and costs then follow from the parts.
#pragma once

#include "workload/onnx/model.hpp"

#include <string>
#include <vector>

namespace monet::onnx_file {

/// Whether expand_node replaces the operator.
bool expands(const Node& node);
/// Replacement nodes in topological order; the last ones make the node's outputs. All inputs must
/// be in `values`, where new constants are added. Throws InputError at the node on errors.
std::vector<Node> expand_node(const Model& model, const Node& node, Values& values);

/// Unrolls LSTM, GRU and RNN.
std::vector<Node> unroll_recurrent(const Model& model, const Node& node, Values& values);

/// Whether the operator is AffineGrid, CenterCropPad or Col2Im.
bool is_newer_operator(const Node& node);
std::vector<Node> write_newer_operator(const Model& model, const Node& node, Values& values);

/// Appends nodes in the form of opset 17 to a list.
class NodeWriter {
public:
  NodeWriter(const Node& source, Values& values) : source_(source), values_(values) {}

  /// Adds a node with one output, named `<source>/<name>` unless `output` is set; returns the
  /// output's name.
  std::string add(OpType op_type, const std::string& name, std::vector<std::string> inputs,
                  Attributes attributes = {}, const std::string& output = {});
  /// Splits a tensor along an axis; returns the names of the parts.
  std::vector<std::string> split(const std::string& name, const std::string& tensor,
                                 std::int64_t axis, const Integers& sizes);
  std::string squeeze(const std::string& name, const std::string& tensor, std::int64_t axis);
  std::string unsqueeze(const std::string& name, const std::string& tensor, const Integers& axes);
  std::string transpose(const std::string& name, const std::string& tensor, const Integers& order,
                        const std::string& output = {});
  std::string concat(const std::string& name, const std::vector<std::string>& tensors,
                     std::int64_t axis, const std::string& output = {});
  /// Adds an int64 vector constant.
  std::string integers(const Integers& list);
  std::string zeros(const std::string& name, const Integers& shape, ElementType type);

  std::vector<Node> take() { return std::move(nodes_); }

private:
  const Node& source_;
  Values& values_;
  std::vector<Node> nodes_;
};

} // namespace monet::onnx_file
