// One parameter of initialisers that have the same numbers because a network reads it twice.
#include "workload/onnx/model.hpp"

#include "monet/base/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

namespace monet::onnx_file {

namespace {

/// "/encoder/f/MatMul_1" -> "/encoder/f": the module in whose code PyTorch met an operator.
std::string_view scope_of(std::string_view node) {
  const std::size_t slash = node.rfind('/');
  return slash == node.npos ? std::string_view() : node.substr(0, slash);
}

class Tying {
public:
  Tying(Model& model, const OnnxReadOptions& options) : model_(model), options_(options) {
    for (const Node& node : model.nodes) {
      for (const std::string& input : node.inputs)
        readers_.try_emplace(input, &node);
    }
    for (const Declared& input : model.inputs)
      fixed_.insert(input.name);
    for (const Declared& output : model.outputs)
      fixed_.insert(output.name);
  }

  void run() {
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
  bool is_one_parameter(const EqualWeights& pair) const {
    if (fixed_.count(pair.name) != 0)
      return false;
    if (options_.ties) {
      return std::ranges::any_of(*options_.ties, [&](const std::string& pattern) {
        return glob_match(pattern, pair.name);
      });
    }
    return model_.producer == "pytorch" && is_folded_name(pair.name) && is_same_module(pair);
  }

  /// PyTorch's exporter computes with weights and gives the results names of its own
  /// ("onnx::MatMul_12"). Such a copy is a second use of its weight if that still has its name, or
  /// is read in the same module. Layers that were copied begin with equal numbers, too, but not
  /// with transposed ones.
  bool is_same_module(const EqualWeights& pair) const {
    if (pair.is_transposed || !is_folded_name(pair.of))
      return true;
    const auto own = readers_.find(pair.name);
    const auto other = readers_.find(pair.of);
    return own != readers_.end() && other != readers_.end() &&
           scope_of(own->second->name) == scope_of(other->second->name);
  }

  Node transpose(const EqualWeights& pair) const {
    Node node;
    node.name = fmt::format("{}/tied", pair.name);
    node.op_type = "Transpose";
    node.opset = model_.opsets.at("");
    node.inputs = {pair.of};
    node.outputs = {pair.name};
    node.attributes.set("perm", Integers{1, 0});
    return node;
  }

  Model& model_;
  const OnnxReadOptions& options_;
  std::unordered_map<std::string_view, const Node*> readers_;
  std::unordered_set<std::string_view> fixed_; ///< names of graph inputs and outputs
};

} // namespace

bool is_folded_name(std::string_view name) {
  return name.find("::") != name.npos;
}

void tie_weights(Model& model, const OnnxReadOptions& options, ProblemList& problems) {
  const bool is_known = model.metadata.count(std::string(kParameterList)) != 0 ||
                        model.metadata.count("monet.tensors") != 0;
  if (is_known && !options.ties)
    model.equal_weights.clear(); // the file's names are those of its parameters
  for (const std::string& pattern : options.ties.value_or(std::vector<std::string>())) {
    if (pattern != "*" && std::ranges::none_of(model.equal_weights, [&](const EqualWeights& pair) {
          return glob_match(pattern, pair.name);
        }))
      problems.add({model.origin, 0, 0, {}},
                   fmt::format("no initialiser that equals another matches the pattern '{}' of "
                               "'ties'",
                               pattern));
  }
  if (!model.equal_weights.empty())
    Tying(model, options).run();
}

} // namespace monet::onnx_file
