// Replaces a node by several simpler ones; onnx_reader.cpp calls it for composite nodes.
#include "workload/onnx/expand.hpp"

#include "base/shared/checked.hpp"
#include "workload/shared/einsum_equation.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/format.h>

namespace monet::onnx_file {

namespace {

bool is_recurrent(const Node& node) {
  return node.domain.empty() &&
         (node.op_type == ops::LSTM || node.op_type == ops::GRU || node.op_type == ops::RNN);
}
bool is_long_einsum(const Node& node) {
  return node.domain.empty() && node.op_type == ops::Einsum && node.inputs.size() > 2;
}

/// Letters of `left` and `right` that later operands or the result need, in order of appearance.
std::string kept_letters(const std::string& left, const std::string& right,
                         const std::string& needed) {
  std::string kept;
  for (const char letter : left + right) {
    if (needed.find(letter) != std::string::npos && kept.find(letter) == std::string::npos)
      kept += letter;
  }
  return kept;
}

/// Contracts from the left, as torch.einsum does: ((a b) c) d. Each product sums over letters
/// that neither a later operand nor the result needs.
std::vector<Node> contract_in_pairs(const Model& model, const Node& node, Values& values) {
  std::vector<std::size_t> ranks;
  for (const std::string& input : node.inputs) {
    if (input.empty() || node.outputs.empty())
      throw InputError(at_node(model, node), "an operand or the result is left out");
    ranks.push_back(values.at(input).shape.size());
  }
  EinsumEquation equation;
  const std::string wrong = parse_einsum(node.attributes.text("equation", ""), ranks, equation);
  if (!wrong.empty())
    throw InputError(at_node(model, node, "attribute 'equation'"), wrong);
  NodeWriter writer(node, values);
  std::string left = node.inputs[0];
  std::string left_letters = equation.operands[0];
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const bool last = i + 1 == node.inputs.size();
    std::string needed = equation.result;
    for (std::size_t k = i + 1; k < node.inputs.size(); ++k)
      needed += equation.operands[k];
    const std::string kept =
        last ? equation.result : kept_letters(left_letters, equation.operands[i], needed);
    const std::string pair = fmt::format("{},{}->{}", left_letters, equation.operands[i], kept);
    left = writer.add(ops::Einsum, fmt::format("pair{}", i), {left, node.inputs[i]},
                      {{"equation", pair}}, last ? node.outputs[0] : "");
    left_letters = kept;
  }
  return writer.take();
}

/// Whether the node is a cross-entropy loss without the output of log-probabilities, as in a
/// network. Training steps may use that output.
bool is_cross_entropy(const Node& node) {
  return node.domain.empty() && node.op_type == ops::SoftmaxCrossEntropyLoss &&
         node.inputs.size() >= 2 && !node.outputs.empty() &&
         (node.outputs.size() < 2 || node.outputs[1].empty());
}

/// Splits the loss into the logarithm of the softmax and the negative log-likelihood of the labels.
std::vector<Node> split_cross_entropy(const Node& node, Values& values) {
  NodeWriter writer(node, values);
  std::vector<std::string> inputs = node.inputs;
  inputs[0] = writer.add(ops::LogSoftmax, "log_probabilities", {node.inputs[0]},
                         {{"axis", std::int64_t{1}}});
  writer.add(ops::NegativeLogLikelihoodLoss, "likelihood", std::move(inputs), node.attributes,
             node.outputs[0]);
  return writer.take();
}

} // namespace

bool expands(const Node& node) {
  return is_recurrent(node) || is_cross_entropy(node) || is_long_einsum(node) ||
         is_newer_operator(node);
}

std::vector<Node> expand_node(const Model& model, const Node& node, Values& values) {
  if (is_newer_operator(node))
    return write_newer_operator(model, node, values);
  if (is_cross_entropy(node))
    return split_cross_entropy(node, values);
  return is_recurrent(node) ? unroll_recurrent(model, node, values)
                            : contract_in_pairs(model, node, values);
}

std::string NodeWriter::add(OpType op_type, const std::string& name,
                            std::vector<std::string> inputs, Attributes attributes,
                            const std::string& output) {
  const std::string full = fmt::format("{}/{}", source_.name, name);
  nodes_.push_back({.name = full,
                    .op_type = op_type,
                    .opset = 17,
                    .inputs = std::move(inputs),
                    .outputs = {output.empty() ? full : output},
                    .attributes = std::move(attributes)});
  return nodes_.back().outputs[0];
}

std::vector<std::string> NodeWriter::split(const std::string& name, const std::string& tensor,
                                           std::int64_t axis, const Integers& sizes) {
  add(ops::Split, name, {tensor, integers(sizes)}, {{"axis", axis}});
  std::vector<std::string>& outputs = nodes_.back().outputs;
  outputs.clear();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    outputs.push_back(fmt::format("{}/{}", nodes_.back().name, i));
  return outputs;
}

std::string NodeWriter::squeeze(const std::string& name, const std::string& tensor,
                                std::int64_t axis) {
  return add(ops::Squeeze, name, {tensor, integers({axis})});
}
std::string NodeWriter::unsqueeze(const std::string& name, const std::string& tensor,
                                  const Integers& axes) {
  return add(ops::Unsqueeze, name, {tensor, integers(axes)});
}

std::string NodeWriter::transpose(const std::string& name, const std::string& tensor,
                                  const Integers& order, const std::string& output) {
  return add(ops::Transpose, name, {tensor}, {{"perm", order}}, output);
}

std::string NodeWriter::concat(const std::string& name, const std::vector<std::string>& tensors,
                               std::int64_t axis, const std::string& output) {
  return add(ops::Concat, name, tensors, {{"axis", axis}}, output);
}

std::string NodeWriter::integers(const Integers& list) {
  const std::string name = fmt::format("{}/ints_{}", source_.name, fmt::join(list, "_"));
  values_.emplace(name, integer_constant(list));
  return name;
}

std::string NodeWriter::zeros(const std::string& name, const Integers& shape, ElementType type) {
  std::string full = fmt::format("{}/{}", source_.name, name);
  Value value{.type = type, .shape = shape, .is_constant = true};
  const std::int64_t count = checked_product(shape);
  if (count <= kMaxFoldedElements)
    value.values = std::vector<double>(static_cast<std::size_t>(count), 0.0);
  values_.emplace(full, std::move(value));
  return full;
}

} // namespace monet::onnx_file
