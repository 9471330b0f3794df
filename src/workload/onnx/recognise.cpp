// Navigates and replaces chains of nodes that stand for one function; tries the patterns of
// recognise_*.cpp. The pass is recognise_chains().
#include "workload/onnx/recognise.hpp"

#include "workload/shared/op_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace monet::onnx_file {

namespace {

constexpr int kMaxCopies = 16; ///< consecutive copies; exporters write one or two

} // namespace

Chains::Chains(const Model& model, std::vector<Node>& nodes, Values& values)
    : model_(&model), nodes_(&nodes), values_(&values), gone_(nodes.size(), false) {
  link();
}

void Chains::link() {
  for (std::size_t i = 0; i < nodes_->size(); ++i) {
    for (const std::string& output : node(i).outputs)
      producer_.emplace(output, i);
    for (const std::string& input : node(i).inputs) {
      std::vector<std::size_t>& list = readers_[input];
      if (list.empty() || list.back() != i)
        list.push_back(i);
    }
  }
  for (const Declared& output : model_->outputs)
    readers_[output.name].push_back(nodes_->size());
}

bool Chains::is_copy(const Node& node) const {
  if (!node.domain.empty() || node.inputs.empty() || node.outputs.size() != 1 ||
      values_->count(node.inputs[0]) == 0 || values_->count(node.outputs[0]) == 0) {
    return false;
  }
  if (node.op_type == ops::Identity)
    return true;
  return node.op_type == ops::Cast && value(node.inputs[0]).type == value(node.outputs[0]).type;
}

std::string Chains::source(const std::string& name, Members& members) const {
  std::string at = name;
  for (int i = 0; i < kMaxCopies; ++i) {
    const auto made = producer_.find(at);
    if (made == producer_.end() || !is_copy(node(made->second)))
      break;
    members.insert(made->second);
    at = node(made->second).inputs[0];
  }
  return at;
}

bool Chains::same(const std::string& name, const std::string& of, Members& members) const {
  if (name == of)
    return true;
  Members passed;
  if (source(name, passed) != source(of, passed))
    return false;
  members.insert(passed.begin(), passed.end());
  return true;
}

const Node* Chains::made_by(const std::string& name, OpType op_type, Members& members) const {
  Members passed;
  const auto made = producer_.find(source(name, passed));
  if (made == producer_.end())
    return nullptr;
  const Node& found = node(made->second);
  if (!found.domain.empty() || found.op_type != op_type)
    return nullptr;
  members.insert(passed.begin(), passed.end());
  members.insert(made->second);
  return &found;
}

std::size_t Chains::readers(const std::string& name) const {
  const auto found = readers_.find(name);
  return found == readers_.end() ? 0 : found->second.size();
}

const Node* Chains::only_reader(const std::string& name, Members& members) const {
  std::string at = name;
  Members passed;
  for (int i = 0; i < kMaxCopies; ++i) {
    const auto found = readers_.find(at);
    if (found == readers_.end() || found->second.size() != 1 ||
        found->second[0] >= nodes_->size()) {
      return nullptr;
    }
    const Node& reader = node(found->second[0]);
    if (!is_copy(reader)) {
      members.insert(passed.begin(), passed.end());
      members.insert(found->second[0]);
      return &reader;
    }
    passed.insert(found->second[0]);
    at = reader.outputs[0];
  }
  return nullptr;
}

std::optional<double> Chains::number(const std::string& name) const {
  const auto found = values_->find(name);
  if (found == values_->end() || !found->second.values)
    return std::nullopt;
  return std::visit(
      [](const auto& list) {
        return list.size() == 1 ? std::optional(static_cast<double>(list.front())) : std::nullopt;
      },
      *found->second.values);
}

bool Chains::is_trained(const std::string& name) const {
  const auto found = values_->find(name);
  return found != values_->end() && found->second.values && !found->second.is_constant;
}

bool Chains::filled_with(const std::string& name, double number) const {
  const auto found = values_->find(name);
  if (found == values_->end() || !found->second.values)
    return false;
  return std::visit(
      [&](const auto& list) {
        return std::ranges::all_of(
            list, [&](auto element) { return static_cast<double>(element) == number; });
      },
      *found->second.values);
}

std::optional<std::pair<std::string, double>> Chains::with_number(const Node& node) const {
  if (node.inputs.size() != 2)
    return std::nullopt;
  if (const auto right = number(node.inputs[1]))
    return std::pair(node.inputs[0], *right);
  const bool commutes = node.op_type == ops::Add || node.op_type == ops::Mul;
  if (const auto left = number(node.inputs[0]); left && commutes)
    return std::pair(node.inputs[1], *left);
  return std::nullopt;
}

bool Chains::closed(const Members& members, std::size_t result) const {
  return std::ranges::all_of(members, [&](std::size_t member) {
    if (member == result)
      return true;
    const auto& outputs = node(member).outputs;
    return std::ranges::all_of(outputs, [&](const std::string& output) {
      const auto found = readers_.find(output);
      return found == readers_.end() || std::ranges::all_of(found->second, [&](std::size_t reader) {
               return members.count(reader) != 0;
             });
    });
  });
}

void Chains::unlink(std::size_t at) {
  for (const std::string& input : node(at).inputs)
    std::erase(readers_[input], at);
}

void Chains::replace(std::size_t result, const Members& members, Replacement by) {
  for (const std::size_t member : members) {
    unlink(member);
    gone_[member] = member != result;
  }
  unlink(result);
  Node& node = (*nodes_)[result];
  for (const std::string& input : by.inputs) {
    if (!input.empty())
      readers_[input].push_back(result);
  }
  node.op_type = by.op_type;
  node.domain = by.domain;
  node.inputs = std::move(by.inputs);
  node.attributes = std::move(by.attributes);
  node.tensors.clear();
}

std::string Chains::reshaped(const std::string& from, const Integers& shape, std::size_t at) {
  Value result = value(from);
  result.shape = shape;
  const std::string sizes = integers(shape, at);
  return inserted(ops::Reshape, {from, sizes}, {}, std::move(result), at);
}

std::string Chains::inserted(OpType op_type, std::vector<std::string> inputs, Attributes attributes,
                             Value result, std::size_t at) {
  const std::string base = fmt::format("{}/{}", node(at).name, inserted_.size());
  Node made{.name = fmt::format("{}/{}", base, op_type),
            .op_type = std::string(op_type),
            .opset = node(at).opset,
            .inputs = std::move(inputs),
            .outputs = {base + "/made"},
            .attributes = std::move(attributes)};
  (*values_)[made.outputs[0]] = std::move(result);
  inserted_.emplace_back(at, made);
  return made.outputs[0];
}

std::string Chains::integers(Integers list, std::size_t at) {
  const std::string name =
      fmt::format("{}/{}/ints_{}", node(at).name, inserted_.size(), fmt::join(list, "_"));
  (*values_)[name] = integer_constant(std::move(list));
  return name;
}

std::string Chains::filled(const std::string& like, std::int64_t count, double number,
                           std::size_t at) {
  const std::string name = fmt::format("{}/filled_with_{}", node(at).name, number);
  (*values_)[name] = {.type = value(like).type,
                      .shape = {count},
                      .values = std::vector<double>(static_cast<std::size_t>(count), number),
                      .is_constant = true};
  return name;
}

void Chains::finish() {
  std::stable_sort(inserted_.begin(), inserted_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Node> all;
  auto next = inserted_.begin();
  for (std::size_t i = 0; i < nodes_->size(); ++i) {
    for (; next != inserted_.end() && next->first == i; ++next)
      all.push_back(std::move(next->second));
    if (!gone_[i])
      all.push_back(std::move((*nodes_)[i]));
  }
  *nodes_ = std::move(all);
}

bool is_near(double value, double wanted) {
  constexpr double kTolerance = 1e-3; // half precision rounds by 2^-11
  return std::abs(value - wanted) <= kTolerance * std::abs(wanted);
}

namespace {

/// Corrects the slope of PyTorch's hard sigmoid, clip(x/6 + 1/2, 0, 1), which exporters write as
/// 1/6 in single precision.
void restore_slope(Node& node) {
  constexpr double kSixth = 1.0 / 6;
  if (!node.domain.empty() || node.op_type != ops::HardSigmoid)
    return;
  const auto slope = static_cast<float>(node.attributes.number("alpha", 0.2));
  if (slope == static_cast<float>(kSixth))
    node.attributes.set("alpha", kSixth);
}

} // namespace

bool recognise_chains(NetworkDraft& draft, bool recognise) {
  if (!recognise || draft.is_own())
    return false;
  for (Node& node : draft.model.nodes)
    restore_slope(node);
  Chains chains(draft.model, draft.model.nodes, draft.values);
  // Goes from the last node to the first, so that the longest chain with a given result is tried
  // first.
  for (std::size_t i = chains.size(); i-- > 0;) {
    const bool found = recognise_fake_quantization(chains, i) || recognise_activation(chains, i) ||
                       recognise_row_normalization(chains, i) ||
                       recognise_group_normalization(chains, i) ||
                       recognise_embedding_bags(chains, i);
    static_cast<void>(found);
  }
  chains.finish();
  return true;
}

} // namespace monet::onnx_file
