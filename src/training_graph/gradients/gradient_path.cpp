// Describes the path of a gradient through a network, for error messages.
#include "training_graph/gradients/gradient_path.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monet {

namespace {

/// Number of operators that a long path names on each side of the one in question; the others are
/// only counted.
constexpr std::size_t kNamed = 3;

std::string name_of(const Operator& op) {
  return fmt::format("{} ({})", op.name, op.op_type);
}

/// Names nearest to the operator in question come first.
std::vector<std::string> shortened(std::vector<std::string> names) {
  if (names.size() <= kNamed + 1)
    return names;
  const std::string last = names.back();
  const std::size_t left_out = names.size() - kNamed;
  names.resize(kNamed - 1);
  names.push_back(fmt::format("... {} more ...", left_out));
  names.push_back(last);
  return names;
}

} // namespace

GradientPaths::GradientPaths(const Graph& graph, const std::vector<bool>& depends,
                             const std::vector<bool>& reaches, const std::vector<TensorId>& outputs)
    : graph_(&graph), origin_(graph.tensors().size()), goal_(graph.tensors().size()) {
  find_origins(depends);
  find_goals(reaches, outputs);
}

std::optional<TensorId> GradientPaths::nearest(const std::vector<Step>& steps,
                                               std::span<const std::optional<TensorId>> among) {
  std::optional<TensorId> best;
  for (const auto& id : among) {
    if (id && steps[id->index()].known &&
        (!best || steps[id->index()].length < steps[best->index()].length))
      best = id;
  }
  return best;
}

void GradientPaths::find_origins(const std::vector<bool>& depends) {
  for (std::size_t i = 0; i < origin_.size(); ++i) {
    if (depends[i] && !graph_->tensors()[i].producer)
      origin_[i].known = true;
  }
  for (std::size_t i = 0; i < graph_->operators().size(); ++i) {
    const Operator& op = graph_->operators()[i];
    const auto best = nearest(origin_, op.inputs);
    for (const auto& output : op.outputs) {
      if (best && output && depends[output->index()])
        origin_[output->index()] = {origin_[best->index()].length + 1, OpId(i), *best, true};
    }
  }
}

void GradientPaths::find_goals(const std::vector<bool>& reaches,
                               const std::vector<TensorId>& outputs) {
  for (const TensorId id : outputs)
    goal_[id.index()].known = true;
  for (std::size_t i = graph_->operators().size(); i-- > 0;) {
    const Operator& op = graph_->operators()[i];
    const auto best = nearest(goal_, op.outputs);
    for (const auto& input : op.inputs) {
      if (!best || !input || !reaches[input->index()])
        continue;
      Step& step = goal_[input->index()];
      if (!step.known || step.length > goal_[best->index()].length + 1)
        step = {goal_[best->index()].length + 1, OpId(i), *best, true};
    }
  }
}

std::string GradientPaths::through(const Operator& op) const {
  const auto walk = [&](const std::vector<Step>& steps, const auto& ends,
                        std::vector<std::string>& names) -> std::optional<TensorId> {
    std::optional<TensorId> at = nearest(steps, ends);
    while (at && steps[at->index()].next) {
      names.push_back(name_of(graph_->op(*steps[at->index()].next)));
      at = steps[at->index()].tensor;
    }
    return at;
  };
  std::vector<std::string> before;
  std::vector<std::string> after;
  const auto from = walk(origin_, op.inputs, before);
  const auto to = walk(goal_, op.outputs, after);
  if (!from || !to)
    return {};
  std::vector<std::string> path{fmt::format("'{}'", graph_->tensor(*from).name)};
  before = shortened(std::move(before));
  path.insert(path.end(), before.rbegin(), before.rend());
  path.push_back(name_of(op));
  after = shortened(std::move(after));
  path.insert(path.end(), after.begin(), after.end());
  path.push_back(fmt::format("'{}' -> loss", graph_->tensor(*to).name));
  return fmt::format("{}", fmt::join(path, " -> "));
}

} // namespace monet
