#include "training/memory/recompute.hpp"

#include "training/memory/run_sequence.hpp"
#include "training/memory/storage.hpp"

#include "monet/base/text.hpp"
#include "monet/training/insert_recompute.hpp"
#include "monet/workload/operators.hpp"
#include "monet/workload/views.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

namespace monet {

namespace {

bool is_forward(const Graph& graph, TensorId id) {
  const auto producer = graph.tensor(id).producer;
  return producer && graph.op(*producer).phase == Phase::forward;
}

class Recomputing {
public:
  Recomputing(const Graph& graph, std::set<TensorId> chosen)
      : graph_(graph), chosen_(std::move(chosen)), before_(graph.operators().size()),
        position_(graph.operators().size()) {}

  Graph run() {
    find_readers();
    place_clones();
    RunSequence sequence(graph_);
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      for (const OpId again : before_[i])
        sequence.run(again);
      sequence.run(OpId(i));
    }
    return sequence.release();
  }

private:
  /// The first backward operator that reads each storage.
  void find_readers() {
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.op(OpId(i));
      if (op.phase != Phase::backward)
        continue;
      for (const TensorId input : present(op.inputs)) {
        const TensorId root = storage_root(graph_, input);
        if (chosen_.count(root) > 0)
          want(*graph_.tensor(root).producer, i);
      }
    }
  }

  void want(OpId op, std::size_t at) {
    auto& position = position_[op.index()];
    position = std::min(position.value_or(at), at);
  }

  /// Later operators first: what a clone reads may be recomputed as well, before it.
  void place_clones() {
    for (std::size_t i = graph_.operators().size(); i-- > 0;) {
      if (!position_[i])
        continue;
      before_[*position_[i]].insert(before_[*position_[i]].begin(), OpId(i));
      for (const TensorId input : present(graph_.op(OpId(i)).inputs)) {
        const TensorId root = storage_root(graph_, input);
        if (chosen_.count(root) > 0)
          want(*graph_.tensor(root).producer, *position_[i]);
      }
    }
  }

  const Graph& graph_;
  std::set<TensorId> chosen_;             ///< storages
  std::vector<std::vector<OpId>> before_; ///< forward operators to run again before this one
  std::vector<std::optional<std::size_t>> position_; ///< per forward operator
};

} // namespace

std::vector<TensorId> forward_tensors_matching(const Graph& graph,
                                               const std::vector<std::string>& patterns,
                                               std::string_view what, ProblemList& problems) {
  std::set<TensorId> found;
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
      const TensorId root = storage_root(graph, TensorId(t));
      if (!glob_match(pattern, graph.tensors()[t].name) || !is_forward(graph, root))
        continue;
      any = true;
      found.insert(root);
    }
    if (!any)
      problems.add({graph.origin, 0, 0, ""},
                   fmt::format("no tensor to {} matches the pattern '{}'", what, pattern));
  }
  return {found.begin(), found.end()};
}

namespace {

/// The one operand that is no number, of an operator that only scales or shifts.
std::optional<TensorId> scaled_operand(const Graph& graph, const Operator& op) {
  if (!op.domain.empty() || (op.op_type != "Mul" && op.op_type != "Div" && op.op_type != "Add" &&
                             op.op_type != "Sub" && op.op_type != "Neg"))
    return std::nullopt;
  std::optional<TensorId> operand;
  for (const auto& input : op.inputs) {
    const bool number = input && graph.tensor(*input).kind == TensorKind::constant &&
                        element_count(graph.tensor(*input)) == 1;
    if (number)
      continue;
    if (!input || operand)
      return std::nullopt;
    operand = input;
  }
  return operand;
}

} // namespace

Graph recompute_scaled(const Graph& graph) {
  const std::vector<TensorId> stored = tensors_read_by_backward(graph);
  std::set<TensorId> chosen;
  for (const TensorId id : stored) {
    if (!is_forward(graph, id))
      continue;
    const auto operand = scaled_operand(graph, graph.op(*graph.tensor(id).producer));
    if (!operand)
      continue;
    const TensorId root = storage_root(graph, *operand);
    if (std::binary_search(stored.begin(), stored.end(), root) ||
        graph.tensor(root).kind == TensorKind::parameter)
      chosen.insert(id);
  }
  return chosen.empty() ? graph : Recomputing(graph, std::move(chosen)).run();
}

namespace {

/// Element by element, or rows of a table, without random numbers and side effects: as good as free
/// beside what is read.
bool is_cheap(const Graph& graph, const Operator& op) {
  const LoopNest& nest = op.nest;
  const bool looks_up = op.domain.empty() && op.op_type == "Gather";
  const bool alone = std::count_if(op.outputs.begin(), op.outputs.end(),
                                   [](const auto& output) { return output.has_value(); }) == 1;
  return alone && op.phase == Phase::forward && (nest.compute == ComputeKind::vector || looks_up) &&
         std::none_of(nest.dims.begin(), nest.dims.end(),
                      [](const LoopDim& dim) { return dim.coupled; }) &&
         std::all_of(nest.operands.begin(), nest.operands.end(),
                     [](const Access& access) {
                       return !access.opaque && access.passes == 1 &&
                              access.mode != AccessMode::accumulate;
                     }) &&
         element_count(graph.tensor(*op.outputs[0])) == iterations(nest) &&
         recompute_obstacle(graph, op).empty();
}

} // namespace

Graph recompute_cheap(const Graph& graph) {
  const std::vector<TensorId> stored = tensors_read_by_backward(graph);
  std::set<TensorId> chosen;
  for (const TensorId id : stored) { // as operators make them
    if (!is_forward(graph, id) || !is_cheap(graph, graph.op(*graph.tensor(id).producer)))
      continue;
    bool there = true;
    for (const TensorId input : present(graph.op(*graph.tensor(id).producer).inputs)) {
      const TensorId root = storage_root(graph, input);
      const Tensor& tensor = graph.tensor(root);
      const bool data = tensor.kind == TensorKind::input || tensor.kind == TensorKind::label;
      there = there && ((!tensor.producer && !data) ||
                        std::binary_search(stored.begin(), stored.end(), root));
    }
    if (there)
      chosen.insert(id);
  }
  return chosen.empty() ? graph : Recomputing(graph, std::move(chosen)).run();
}

Graph recompute_copies(const Graph& graph) {
  const std::vector<TensorId> stored = tensors_read_by_backward(graph);
  std::set<TensorId> chosen;
  for (const TensorId id : stored) {
    if (!is_forward(graph, id) || graph.op(*graph.tensor(id).producer).op_type != "Copy")
      continue;
    const TensorId source = *graph.op(*graph.tensor(id).producer).inputs.at(0);
    if (!graph.tensor(source).producer || std::binary_search(stored.begin(), stored.end(), source))
      chosen.insert(id);
  }
  return chosen.empty() ? graph : Recomputing(graph, std::move(chosen)).run();
}

Graph recompute(const Graph& graph, const std::vector<std::string>& patterns,
                ProblemList& problems) {
  std::set<TensorId> chosen;
  const std::vector<TensorId> stored = tensors_read_by_backward(graph);
  for (const TensorId id : forward_tensors_matching(graph, patterns, "recompute", problems)) {
    if (!std::binary_search(stored.begin(), stored.end(), id))
      continue;
    const Operator& producer = graph.op(*graph.tensor(id).producer);
    const std::string why = recompute_obstacle(graph, producer);
    if (why.empty())
      chosen.insert(id);
    else
      problems.add(
          location_of(graph, producer),
          fmt::format("'{}' cannot be recomputed: the operator {}", graph.tensor(id).name, why));
  }
  return chosen.empty() ? graph : Recomputing(graph, std::move(chosen)).run();
}

} // namespace monet
