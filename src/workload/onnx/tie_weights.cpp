// Merges initialisers with equal numbers that are one parameter, which a network reads twice.
// onnx_reader.cpp calls it after parsing.
#include "base/shared/text.hpp"
#include "workload/onnx/model.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <unordered_set>

namespace monet::onnx_file {

namespace {

/// Module whose code contains an operator of PyTorch: "/encoder/f/MatMul_1" -> "/encoder/f".
std::string_view scope_of(std::string_view node) {
  const std::size_t slash = node.rfind('/');
  return slash == node.npos ? std::string_view() : node.substr(0, slash);
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Whether `run` is the module "f" or a later run of it, which PyTorch names "f_1".
bool is_run_of(std::string_view run, std::string_view module) {
  return run == module || (run.starts_with(module) && run.size() > module.size() + 1 &&
                           run[module.size()] == '_' && is_number(run.substr(module.size() + 1)));
}

bool is_same_scope(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const std::size_t end_a = std::min(a.find('/', 1), a.size());
    const std::size_t end_b = std::min(b.find('/', 1), b.size());
    if (!is_run_of(a.substr(0, end_a), b.substr(0, end_b)) &&
        !is_run_of(b.substr(0, end_b), a.substr(0, end_a)))
      return false;
    a.remove_prefix(end_a);
    b.remove_prefix(end_b);
  }
  return a.empty() && b.empty();
}

bool is_filled_with_one_number(const Value& value) {
  const auto* numbers = reals_of(value.values);
  return numbers != nullptr &&
         std::ranges::adjacent_find(*numbers, std::ranges::not_equal_to{}) == numbers->end();
}

class WeightTying {
public:
  WeightTying(Model& model, const std::optional<std::vector<std::string>>& ties)
      : model_(model), ties_(ties) {
    for (const Node& node : model.nodes) {
      for (const std::string& input : node.inputs) {
        if (node.op_type != ops::Identity)
          readers_.try_emplace(input, scope_of(node.name));
      }
    }
    for (const Declared& input : model.inputs)
      fixed_.insert(input.name);
    for (const Declared& output : model.outputs)
      fixed_.insert(output.name);
  }

  /// Separates parameters that PyTorch's exporter merged. For networks not in training it writes
  /// equal parameters once, and an Identity named after each of the others.
  void separate_copies() {
    std::erase_if(model_.nodes, [&](const Node& node) {
      if (!is_copy(node))
        return false;
      const std::string& name = node.outputs[0];
      const Value& value = model_.initializers.at(node.inputs[0]);
      model_.initializers.emplace(name, value);
      model_.initializer_order.push_back(name);
      model_.copies.insert(name);
      if (!is_filled_with_one_number(value))
        model_.equal_weights.push_back({name, node.inputs[0]});
      return true;
    });
  }

  void tie() {
    std::vector<Node> views;
    std::unordered_map<std::string, std::string> same;
    for (EqualWeights& pair : model_.equal_weights) {
      pair.is_tied = is_one_parameter(pair);
      if (!pair.is_tied)
        continue;
      if (pair.is_transposed)
        views.push_back(transpose(pair));
      else
        same[pair.name] = pair.of;
      model_.initializers.erase(pair.name);
      std::erase(model_.initializer_order, pair.name);
    }
    for (Node& node : model_.nodes) {
      for (std::string& input : node.inputs) {
        const auto found = same.find(input);
        if (found != same.end())
          input = found->second;
      }
    }
    model_.nodes.insert(model_.nodes.end(), views.begin(), views.end());
  }

private:
  bool is_asked_for(const std::string& name) const {
    return std::ranges::any_of(
        *ties_, [&](const std::string& pattern) { return glob_match(pattern, name); });
  }

  bool is_copy(const Node& node) const {
    if (model_.producer != "pytorch" || node.op_type != ops::Identity || !node.domain.empty() ||
        node.inputs.size() != 1 || node.outputs.size() != 1)
      return false;
    const std::string& name = node.outputs[0];
    const auto original = model_.initializers.find(node.inputs[0]);
    if (original == model_.initializers.end() || !is_floating(original->second.type) ||
        fixed_.count(name) != 0 || fixed_.count(node.inputs[0]) != 0 || name.find('/') != name.npos)
      return false;
    return !is_folded_name(name) || is_filled_with_one_number(original->second) ||
           !is_same_module({name, node.inputs[0]});
  }

  bool is_one_parameter(const EqualWeights& pair) const {
    if (fixed_.count(pair.name) != 0)
      return false;
    if (ties_)
      return is_asked_for(pair.name);
    return model_.producer == "pytorch" && is_folded_name(pair.name) && is_same_module(pair);
  }

  /// Whether both names denote one weight. PyTorch's exporter computes with weights and generates
  /// names for the results ("onnx::MatMul_12"). Such a copy is a second use if its weight keeps a
  /// name, or both are read in one module. Copied layers may start with equal numbers, but not with
  /// transposed ones.
  bool is_same_module(const EqualWeights& pair) const {
    if (pair.is_transposed || !is_folded_name(pair.of))
      return true;
    const auto own = readers_.find(pair.name);
    const auto other = readers_.find(pair.of);
    return own != readers_.end() && other != readers_.end() &&
           is_same_scope(own->second, other->second);
  }

  Node transpose(const EqualWeights& pair) const {
    Node node;
    node.name = fmt::format("{}/tied", pair.name);
    node.op_type = ops::Transpose;
    node.opset = model_.opsets.at("");
    node.inputs = {pair.of};
    node.outputs = {pair.name};
    node.attributes.set("perm", Integers{1, 0});
    return node;
  }

  Model& model_;
  const std::optional<std::vector<std::string>>& ties_;
  std::unordered_map<std::string, std::string> readers_; ///< scope of the first reader
  std::unordered_set<std::string_view> fixed_;           ///< names of graph inputs and outputs
};

} // namespace

bool is_folded_name(std::string_view name) {
  return name.find("::") != name.npos || is_number(name);
}

void tie_weights(NetworkDraft& draft, const std::optional<std::vector<std::string>>& ties) {
  Model& model = draft.model;
  const bool is_known = model.metadata.count(std::string(kParameterList)) != 0 || draft.is_own();
  if (is_known && !ties)
    model.equal_weights.clear(); // the file's names are those of its parameters
  WeightTying tying(model, ties);
  if (!is_known)
    tying.separate_copies();
  for (const std::string& pattern : ties.value_or(std::vector<std::string>())) {
    if (pattern != "*" && std::ranges::none_of(model.equal_weights, [&](const EqualWeights& pair) {
          return glob_match(pattern, pair.name);
        }))
      draft.problems.add(
          {model.origin, 0, 0, {}},
          fmt::format("no initialiser that equals another matches the pattern '{}' of "
                      "'ties'",
                      pattern));
  }
  tying.tie();
}

} // namespace monet::onnx_file
