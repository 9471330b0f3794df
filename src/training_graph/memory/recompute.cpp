// Recomputes stored tensors in the backward part, chosen by pattern or by cost.
#include "base/shared/text.hpp"
#include "training_graph/memory/run_sequence.hpp"
#include "training_graph/memory/storage.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include "monet/training_graph/training.hpp"

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
  if (!op.domain.empty() ||
      (op.op_type != ops::Mul && op.op_type != ops::Div && op.op_type != ops::Add &&
       op.op_type != ops::Sub && op.op_type != ops::Neg))
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

/// A cast from a narrower type (a mask, indices, half precision): what it was made of is kept.
bool widens(const Graph& graph, TensorId id) {
  const Operator& op = graph.op(*graph.tensor(id).producer);
  return op.op_type == ops::Cast && op.inputs.size() == 1 && op.inputs[0] &&
         bits_of(graph.tensor(*op.inputs[0]).type) < bits_of(graph.tensor(id).type);
}

} // namespace

Graph recompute_scaled(const Graph& graph) {
  const std::vector<TensorId> stored = tensors_read_by_backward(graph);
  std::set<TensorId> chosen;
  for (const TensorId id : stored) {
    if (!is_forward(graph, id))
      continue;
    if (widens(graph, id)) {
      chosen.insert(id);
      continue;
    }
    const auto operand = scaled_operand(graph, graph.op(*graph.tensor(id).producer));
    if (!operand)
      continue;
    const TensorId root = storage_root(graph, *operand);
    if (std::ranges::binary_search(stored, root) ||
        graph.tensor(root).kind == TensorKind::parameter)
      chosen.insert(id);
  }
  return chosen.empty() ? graph : Recomputing(graph, std::move(chosen)).run();
}

namespace {

/// One number from a row.
bool reduces(const Operator& op) {
  return op.op_type == ops::ReduceSum || op.op_type == ops::ReduceMean ||
         op.op_type == ops::ReduceMax || op.op_type == ops::ReduceMin;
}

/// Element by element, a reduction, or rows of a table, without random numbers and side effects: as
/// good as free compared with their reads.
bool is_cheap(const Graph& graph, const Operator& op) {
  const LoopNest& nest = op.nest;
  const bool looks_up = op.domain.empty() && op.op_type == ops::Gather;
  const bool alone =
      std::ranges::count_if(op.outputs, [](const auto& output) { return output.has_value(); }) == 1;
  if (!alone || op.phase != Phase::forward || (nest.compute != ComputeKind::vector && !looks_up))
    return false;
  const bool sums = reduces(op);
  const TensorId whole = sums ? *op.inputs[0] : *op.outputs[0];
  return std::ranges::none_of(nest.dims, [](const LoopDim& dim) { return dim.coupled; }) &&
         std::ranges::all_of(nest.operands,
                             [&](const Access& access) {
                               return !access.opaque && access.passes == 1 &&
                                      (sums || access.mode != AccessMode::accumulate);
                             }) &&
         element_count(graph.tensor(whole)) == iterations(nest) &&
         recompute_obstacle(graph, op).empty();
}

/// Finds stored tensors that cheap operators can compute again, and the tensors in between. The
/// sources are stored tensors, and those without a producer except inputs and labels.
class CheapAgain {
public:
  explicit CheapAgain(const Graph& graph)
      : graph_(graph), stored_(tensors_read_by_backward(graph)) {}

  std::set<TensorId> find() {
    for (const TensorId id : stored_) { // as operators make them
      std::set<TensorId> between;
      if (follows(id, kDepth, between)) {
        chosen_.insert(id);
        chosen_.merge(between);
      }
    }
    return std::move(chosen_);
  }

private:
  static constexpr int kDepth = 6; ///< operators in a row

  /// A cheap operator makes it of what is there, or of what such operators make: `between`.
  bool follows(TensorId id, int depth, std::set<TensorId>& between) const {
    if (depth == 0 || !is_forward(graph_, id))
      return false;
    const Operator& op = graph_.op(*graph_.tensor(id).producer);
    if (!is_cheap(graph_, op))
      return false;
    for (const TensorId input : present(op.inputs)) {
      const TensorId root = storage_root(graph_, input);
      const Tensor& tensor = graph_.tensor(root);
      const bool data = tensor.kind == TensorKind::input || tensor.kind == TensorKind::label;
      if ((!tensor.producer && !data) || between.count(root) != 0 ||
          std::ranges::binary_search(stored_, root))
        continue;
      if (!follows(root, depth - 1, between))
        return false;
      between.insert(root);
    }
    return true;
  }

  const Graph& graph_;
  std::vector<TensorId> stored_; ///< sorted
  std::set<TensorId> chosen_;
};

} // namespace

Graph recompute_cheap(const Graph& graph) {
  std::set<TensorId> chosen = CheapAgain(graph).find();
  return chosen.empty() ? graph : Recomputing(graph, std::move(chosen)).run();
}

Graph recompute_copies(const Graph& graph) {
  const std::vector<TensorId> stored = tensors_read_by_backward(graph);
  std::set<TensorId> chosen;
  for (const TensorId id : stored) {
    if (!is_forward(graph, id) || graph.op(*graph.tensor(id).producer).op_type != ops::Copy)
      continue;
    const TensorId source = *graph.op(*graph.tensor(id).producer).inputs.at(0);
    if (!graph.tensor(source).producer || std::ranges::binary_search(stored, source))
      chosen.insert(id);
  }
  return chosen.empty() ? graph : Recomputing(graph, std::move(chosen)).run();
}

namespace {

/// A Dropout draws by its result's name, so that it can draw the same numbers again.
std::string obstacle_to_patterns(const Graph& graph, const Operator& op) {
  return op.op_type == ops::Dropout ? "" : recompute_obstacle(graph, op);
}

/// Adds what is not stored but has to be there to make the chosen ones again, as far as it is named
/// as well.
void choose_between(const Graph& graph, const std::set<TensorId>& named,
                    const std::vector<TensorId>& stored, std::set<TensorId>& chosen) {
  std::vector<TensorId> open(chosen.begin(), chosen.end());
  while (!open.empty()) {
    const Operator& op = graph.op(*graph.tensor(open.back()).producer);
    open.pop_back();
    for (const TensorId input : present(op.inputs)) {
      const TensorId root = storage_root(graph, input);
      const bool between = named.count(root) != 0 && !std::ranges::binary_search(stored, root);
      if (between && chosen.insert(root).second)
        open.push_back(root);
    }
  }
}

} // namespace

Graph recompute(const Graph& graph, const std::vector<std::string>& patterns,
                ProblemList& problems) {
  std::set<TensorId> named;
  std::set<TensorId> chosen;
  const std::vector<TensorId> stored = tensors_read_by_backward(graph);
  for (const TensorId id : forward_tensors_matching(graph, patterns, "recompute", problems)) {
    const Operator& producer = graph.op(*graph.tensor(id).producer);
    const std::string why = obstacle_to_patterns(graph, producer);
    const bool is_stored = std::ranges::binary_search(stored, id);
    if (why.empty()) {
      named.insert(id);
      if (is_stored)
        chosen.insert(id);
    } else if (is_stored) {
      problems.add(
          location_of(graph, producer),
          fmt::format("'{}' cannot be recomputed: the operator {}", graph.tensor(id).name, why));
    }
  }
  choose_between(graph, named, stored, chosen);
  return chosen.empty() ? graph : Recomputing(graph, std::move(chosen)).run();
}

} // namespace monet
