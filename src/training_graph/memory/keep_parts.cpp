// Copies the part of a forward result that the backward part reads, to store less.
#include "training_graph/build/rebuild.hpp"
#include "training_graph/memory/storage.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include <map>
#include <set>

namespace monet {

namespace {

/// From what it is a view of, the first tensor with the fewest elements on the way to `tensor`.
TensorId smallest_view(const Graph& graph, TensorId tensor) {
  TensorId best = tensor;
  TensorId at = tensor;
  while (true) {
    if (element_count(graph.tensor(at)) <= element_count(graph.tensor(best)))
      best = at;
    const auto producer = graph.tensor(at).producer;
    if (!producer || !is_view(graph, graph.op(*producer)))
      return best;
    at = *graph.op(*producer).inputs[0];
  }
}

/// Per storage that a forward operator makes, or that is fed in: the parts of it that backward
/// operators read.
std::map<TensorId, std::set<TensorId>> parts_read(const Graph& graph, bool of_inputs) {
  std::map<TensorId, std::set<TensorId>> parts;
  const std::vector<bool> backward = in_backward_part(graph);
  for (std::size_t i = 0; i < backward.size(); ++i) {
    const Operator& op = graph.op(OpId(i));
    if (!backward[i] || op.phase == Phase::update || is_view(graph, op))
      continue;
    for (const TensorId input : present(op.inputs)) {
      const TensorId root = storage_root(graph, input);
      const Tensor& whole = graph.tensor(root);
      const bool fed = whole.kind == TensorKind::input || whole.kind == TensorKind::label;
      if (whole.producer ? !backward[whole.producer->index()] : of_inputs && fed)
        parts[root].insert(smallest_view(graph, input));
    }
  }
  return parts;
}

/// Parts worth a copy. Several of one storage may overlap; then they only seem larger.
std::set<TensorId> parts_to_copy(const Graph& graph, bool any) {
  std::set<TensorId> chosen;
  for (const auto& [root, parts] : parts_read(graph, any)) {
    std::int64_t elements = 0;
    for (const TensorId part : parts)
      elements += element_count(graph.tensor(part));
    if ((any ? 1 : 2) * elements < element_count(graph.tensor(root)))
      chosen.insert(parts.begin(), parts.end());
  }
  return chosen;
}

class PartKeeper {
public:
  PartKeeper(const Graph& graph, const std::set<TensorId>& parts) : made_(graph), parts_(parts) {}

  Graph run() {
    for (std::size_t i = 0; i < made_.source().operators().size(); ++i) {
      Operator op = made_.source().op(OpId(i));
      redirect(op);
      const std::vector<std::optional<TensorId>> outputs = op.outputs;
      const Phase phase = op.phase;
      made_.copy(OpId(i), std::move(op));
      for (const TensorId output : present(outputs)) {
        if (parts_.count(output) != 0)
          add_copy(output, phase);
      }
    }
    return made_.release();
  }

private:
  /// Everybody reads the copy once it is there.
  void redirect(Operator& op) const {
    for (auto& input : op.inputs) {
      const auto copy = input ? copies_.find(*input) : copies_.end();
      if (copy == copies_.end())
        continue;
      for (Access& access : op.nest.operands) {
        if (access.mode == AccessMode::read && access.tensor == *input)
          access.tensor = copy->second;
      }
      input = copy->second;
    }
  }

  void add_copy(TensorId part, Phase phase) {
    Tensor tensor = made_.source().tensor(part);
    const std::string name = tensor.name;
    tensor.name += ".part";
    tensor.producer.reset();
    tensor.consumers.clear();
    const TensorId copy = made_.add_tensor(std::move(tensor));
    made_.add_operator({.name = name + ".Copy",
                        .op_type = ops::Copy,
                        .domain = std::string(kMonetDomain),
                        .attributes = {{"view", std::string(ops::Reshape)}}, // to the same shape
                        .inputs = {part},
                        .outputs = {copy},
                        .phase = phase});
    copies_.emplace(part, copy);
  }

  GraphRewriter made_;
  const std::set<TensorId>& parts_;
  std::map<TensorId, TensorId> copies_;
};

} // namespace

Graph keep_parts(const Graph& graph, bool any) {
  const std::set<TensorId> parts = parts_to_copy(graph, any);
  return parts.empty() ? graph : PartKeeper(graph, parts).run();
}

} // namespace monet
