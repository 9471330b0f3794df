// Finds the stored tensors of a step and the owner of every byte.
#include "training_graph/memory/storage.hpp"

#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace monet {

namespace {

bool made_before_backward(const std::vector<bool>& backward, const Tensor& tensor) {
  if (is_state(tensor.kind))
    return false;
  if (!tensor.producer)
    return tensor.kind == TensorKind::input || tensor.kind == TensorKind::label;
  return !backward[tensor.producer->index()];
}

} // namespace

std::vector<bool> in_backward_part(const Graph& graph) {
  const std::size_t count = graph.operators().size();
  std::vector<bool> backward(count);
  bool part = true; // of what follows
  for (std::size_t i = count; i-- > 0;) {
    const Phase phase = graph.operators()[i].phase;
    if (phase != Phase::recompute)
      part = phase == Phase::backward || phase == Phase::update;
    backward[i] = part;
  }
  return backward;
}

std::vector<TensorId> tensors_read_by_backward(const Graph& graph) {
  std::set<TensorId> stored;
  const std::vector<bool> backward = in_backward_part(graph);
  for (std::size_t i = 0; i < backward.size(); ++i) {
    const Operator& op = graph.operators()[i];
    if (!backward[i] || op.phase == Phase::update)
      continue;
    for (const TensorId input : present(op.inputs)) {
      const TensorId root = storage_root(graph, input);
      if (made_before_backward(backward, graph.tensor(root)))
        stored.insert(root);
    }
  }
  return {stored.begin(), stored.end()};
}

StoredActivations find_stored(const Graph& graph, StorePolicy policy,
                              const std::vector<bool>& requires_grad,
                              const std::vector<TensorId>& losses) {
  StoredActivations stored;
  const auto bytes = [&](TensorId id) { return bytes_of(size_of(graph.tensor(id))); };
  if (policy == StorePolicy::minimal) {
    stored.tensors = tensors_read_by_backward(graph);
    for (const TensorId id : stored.tensors)
      stored.bytes += bytes(id);
    return stored;
  }
  EagerStorage eager = find_eager_storage(graph, requires_grad);
  stored.tensors = std::move(eager.tensors);
  stored.bytes = eager.bytes;
  // The divisor of the mean, a scalar as the loss is; the loss stands for it.
  for (const TensorId loss : losses) {
    const auto producer = graph.tensor(loss).producer;
    if (!producer || graph.op(*producer).op_type != ops::NegativeLogLikelihoodLoss)
      continue;
    stored.tensors.push_back(loss);
    stored.bytes += bytes(loss);
    std::sort(stored.tensors.begin(), stored.tensors.end());
  }
  return stored;
}

std::vector<MemoryOwner> find_owners(const Graph& graph, const std::vector<TensorId>& stored) {
  std::vector<MemoryOwner> owners;
  owners.reserve(graph.tensors().size());
  for (const Tensor& tensor : graph.tensors()) {
    switch (tensor.kind) {
    case TensorKind::parameter:
    case TensorKind::buffer:
    case TensorKind::constant:
      owners.push_back(MemoryOwner::parameters);
      break;
    case TensorKind::parameter_gradient:
      owners.push_back(MemoryOwner::gradients);
      break;
    case TensorKind::optimizer_state:
      owners.push_back(MemoryOwner::optimizer_state);
      break;
    default:
      owners.push_back(MemoryOwner::temporaries);
      break;
    }
  }
  for (const TensorId id : stored) {
    MemoryOwner& owner = owners[id.index()];
    if (owner == MemoryOwner::temporaries)
      owner = MemoryOwner::stored_activations;
  }
  for (const Operator& op : graph.operators()) {
    if (is_offload(op))
      owners[op.outputs[0]->index()] = MemoryOwner::offloaded_activations;
    if (is_fetch(op)) // stored again
      owners[op.outputs[0]->index()] = MemoryOwner::stored_activations;
  }
  return owners;
}

namespace {

/// Tensors of a folded graph by the names they had before.
class FoldedTensors {
public:
  FoldedTensors(const Graph& before, const Graph& after) : before_(&before) {
    for (std::size_t i = 0; i < after.tensors().size(); ++i)
      by_name_.emplace(after.tensors()[i].name, TensorId(i));
  }

  TensorId operator()(TensorId old) const {
    TensorId at = old;
    while (true) {
      if (const auto found = by_name_.find(before_->tensor(at).name); found != by_name_.end())
        return found->second;
      const TensorId viewed = step_back(at);
      internal_check(viewed != at,
                     "tensor '" + before_->tensor(old).name + "' was lost in folding views");
      at = viewed;
    }
  }

private:
  TensorId step_back(TensorId tensor) const {
    const auto producer = before_->tensor(tensor).producer;
    if (!producer)
      return tensor;
    const Operator& op = before_->op(*producer);
    return is_view(*before_, op) ? *op.inputs[0] : tensor;
  }

  const Graph* before_;
  std::map<std::string_view, TensorId> by_name_;
};

/// Bytes that a folded step reads in its backward part.
std::int64_t bytes_read(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const TensorId id : tensors_read_by_backward(graph))
    bytes += bytes_of(size_of(graph.tensor(id)));
  return bytes;
}

/// Where views had to become copies, both may be stored. If that is more than PyTorch would keep,
/// the copies are made again.
Graph fold_step(const TrainingGraph& step) {
  Graph folded = fold_views(step.graph);
  const bool least = step.training && step.store == StorePolicy::minimal && step.passes == 1;
  return least && bytes_read(folded) > step.eager_bytes ? recompute_copies(folded) : folded;
}

} // namespace

TrainingGraph fold_views(const TrainingGraph& step) {
  TrainingGraph folded;
  folded.graph = fold_step(step);
  folded.eager_bytes = step.eager_bytes;
  folded.training = step.training;
  folded.accumulate = step.accumulate;
  const FoldedTensors map(step.graph, folded.graph);
  const auto map_any = [&](std::optional<TensorId> id) {
    return id ? std::optional(map(*id)) : std::nullopt;
  };
  folded.loss = map_any(step.loss);
  for (const ParameterRecord& record : step.parameters) {
    ParameterRecord mapped{map(record.weight),    map(record.gradient), {},
                           map(record.updated),   map_any(record.rows), map_any(record.average),
                           map_any(record.master)};
    for (const TensorId state : record.states)
      mapped.states.push_back(map(state));
    folded.parameters.push_back(std::move(mapped));
  }
  for (const StepInput& rate : step.learning_rates)
    folded.learning_rates.push_back({map(rate.tensor), rate.value});
  folded.step_number = map_any(step.step_number);
  folded.micro_batches = step.micro_batches;
  folded.passes = step.passes;
  folded.loss_scale = map_any(step.loss_scale);
  folded.found_inf = map_any(step.found_inf);
  folded.gradient_norm = map_any(step.gradient_norm);
  for (const InitialState& state : step.initial)
    folded.initial.push_back({map(state.state), state.value, map_any(state.copy_of)});
  folded.parts = step.parts;
  folded.paired = step.paired;
  folded.store = step.store;
  const std::vector<TensorId> read = tensors_read_by_backward(step.graph);
  std::set<TensorId> stored; // in a folded graph a copy may be read instead of what it copies
  if (step.store == StorePolicy::minimal) {
    const std::vector<TensorId> now = tensors_read_by_backward(folded.graph);
    stored.insert(now.begin(), now.end());
  }
  for (const TensorId id : step.stored_activations) {
    if (step.store == StorePolicy::pytorch_eager || !std::ranges::binary_search(read, id))
      stored.insert(map(id));
  }
  folded.stored_activations.assign(stored.begin(), stored.end());
  folded.stored_bytes = step.stored_bytes;
  if (step.store == StorePolicy::minimal && step.passes == 1) {
    folded.stored_bytes = 0;
    for (const TensorId id : stored)
      folded.stored_bytes += bytes_of(size_of(folded.graph.tensor(id)));
  }
  folded.owner = find_owners(folded.graph, folded.stored_activations);
  return folded;
}

} // namespace monet
