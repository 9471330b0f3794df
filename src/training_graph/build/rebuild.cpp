// GraphRewriter and name patterns, for passes that write a graph anew.
#include "training_graph/build/rebuild.hpp"

#include "base/shared/text.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <utility>

namespace monet {

namespace {

Tensor without_links(Tensor tensor) {
  tensor.producer.reset();
  tensor.consumers.clear();
  return tensor;
}

} // namespace

std::string unique_name(std::unordered_set<std::string>& taken, const std::string& name) {
  std::string candidate = name;
  for (int i = 2; !taken.insert(candidate).second; ++i)
    candidate = fmt::format("{}.{}", name, i);
  return candidate;
}

GraphRewriter::GraphRewriter(const Graph& source)
    : source_(source), first_copy_(source.operators().size()) {
  made_.name = source.name;
  made_.origin = source.origin;
  made_.buffers = source.buffers;
  made_.inputs = source.inputs;
  made_.outputs = source.outputs;
  for (Tensor tensor : source.tensors()) {
    tensor_names_.insert(tensor.name);
    made_.add_tensor(without_links(std::move(tensor)));
  }
  for (const Operator& op : source.operators())
    op_names_.insert(op.name);
}

OpId GraphRewriter::copy(OpId id, Operator op) {
  if (op.forward_op)
    op.forward_op = first_copy_[op.forward_op->index()];
  const OpId made = made_.add_operator(std::move(op));
  if (!first_copy_[id.index()])
    first_copy_[id.index()] = made;
  return made;
}

TensorId GraphRewriter::add_tensor(Tensor tensor) {
  tensor.name = unique_name(tensor_names_, tensor.name);
  return made_.add_tensor(without_links(std::move(tensor)));
}

void GraphRewriter::rename(TensorId id, const std::string& name) {
  std::string& old = made_.tensor(id).name;
  tensor_names_.erase(old);
  old = unique_name(tensor_names_, name);
}

OpId GraphRewriter::add_operator(Operator op) {
  op.name = free_op_name(op.name);
  const OpId id = made_.add_operator(std::move(op));
  build_nest(made_, id);
  return id;
}

Patterns::Patterns(std::vector<std::string> patterns)
    : patterns_(std::move(patterns)), matched_(patterns_.size(), false) {}

bool Patterns::match(std::string_view name) {
  bool any = false;
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!glob_match(patterns_[i], name))
      continue;
    matched_[i] = true;
    any = true;
  }
  return any;
}

std::optional<std::size_t> Patterns::first_match(std::string_view name) {
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!glob_match(patterns_[i], name))
      continue;
    matched_[i] = true;
    return i;
  }
  return std::nullopt;
}

void Patterns::report(const Graph& network, std::string_view words, ProblemList& problems) const {
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!matched_[i])
      problems.add({network.origin, 0, 0, ""}, fmt::format(fmt::runtime(words), patterns_[i]));
  }
}

} // namespace monet
