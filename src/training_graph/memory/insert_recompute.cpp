// Runs chosen forward operators again in the backward part of a finished step.
#include "base/shared/checked.hpp"
#include "training_graph/memory/run_sequence.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/training.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace monet {

namespace {

using Tensors = std::vector<TensorId>; // sorted

Tensors without(const Tensors& from, const Tensors& what) {
  Tensors rest;
  std::set_difference(from.begin(), from.end(), what.begin(), what.end(), std::back_inserter(rest));
  return rest;
}

/// Per operator: which micro-batch it belongs to.
std::vector<std::size_t> micro_batch_of(const Graph& graph) {
  std::vector<std::size_t> micro;
  std::size_t now = 0;
  bool backward = false;
  for (const Operator& op : graph.operators()) {
    if (op.phase == Phase::forward && backward)
      ++now;
    backward = op.phase == Phase::backward || (backward && op.phase != Phase::forward);
    micro.push_back(now);
  }
  return micro;
}

/// Bytes that the micro-batch with the most of them stores.
std::int64_t largest_sum(const Graph& graph, const Tensors& stored) {
  const std::vector<std::size_t> micro = micro_batch_of(graph);
  std::map<std::size_t, std::int64_t> bytes;
  for (const TensorId id : stored) {
    const Tensor& tensor = graph.tensor(id);
    std::size_t of = 0;
    if (tensor.producer)
      of = micro[tensor.producer->index()];
    else if (!tensor.consumers.empty())
      of = micro[tensor.consumers.back().index()];
    std::int64_t& sum = bytes[of];
    sum = checked_add(sum, bytes_of(size_of(tensor)));
  }
  std::int64_t largest = 0;
  for (const auto& [of, sum] : bytes)
    largest = std::max(largest, sum);
  return largest;
}

/// Updates the stored activations of the step. Tensors stored for other reasons than reads of the
/// backward part (by PyTorch or the user) stay stored.
void renew_stored(const Graph& before, TrainingGraph& step) {
  const Tensors read_before = tensors_read_by_backward(before);
  const Tensors read = tensors_read_by_backward(step.graph);
  const Tensors dropped = without(read_before, read);
  const Tensors kept = without(step.stored_activations, dropped);
  const Tensors added = without(without(read, read_before), kept);
  if (step.store == StorePolicy::minimal) {
    step.stored_activations = kept;
  } else { // as autograd counts them, views that were copied included
    const Tensors gone = without(step.stored_activations, kept);
    step.stored_bytes += largest_sum(step.graph, added) - largest_sum(before, gone);
    step.stored_activations = kept;
  }
  step.stored_activations.insert(step.stored_activations.end(), added.begin(), added.end());
  std::sort(step.stored_activations.begin(), step.stored_activations.end());
  if (step.store == StorePolicy::minimal)
    step.stored_bytes = largest_sum(step.graph, step.stored_activations);
  step.owner = find_owners(step.graph, step.stored_activations);
}

void check_runs(const Graph& graph, const std::vector<OpId>& runs) {
  std::size_t next = 0;
  ProblemList problems;
  std::vector<bool> told(graph.operators().size(), false);
  for (const OpId id : runs) {
    internal_check(id.index() <= next && id.index() < told.size(), "a run before its turn");
    if (id.index() == next) {
      ++next;
      continue;
    }
    const Operator& op = graph.op(id);
    const std::string why = recompute_obstacle(graph, op);
    if (!why.empty() && !told[id.index()])
      problems.add(location_of(graph, op), "cannot run again: the operator " + why);
    told[id.index()] = true;
  }
  internal_check(next == graph.operators().size(), "not every operator runs");
  problems.throw_if_any();
}

TrainingGraph finished(const TrainingGraph& step, Graph graph) {
  TrainingGraph result = step;
  result.graph = std::move(graph);
  renew_stored(step.graph, result);
  return result;
}

} // namespace

std::string recompute_obstacle(const Graph& graph, const Operator& op) {
  if (op.phase == Phase::backward || op.phase == Phase::update)
    return "belongs to the backward part";
  if (is_offload(op))
    return "has moved its operand out of the device";
  if (op.op_type == ops::Dropout || op.op_type == ops::Multinomial ||
      op.op_type == ops::Bernoulli || op.op_type.starts_with("Random"))
    return "draws random numbers, which are not drawn twice";
  const bool running = op.domain == kMonetDomain && op.op_type == ops::BatchNormalization;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const bool statistics = running && (i == 1 || i == 2);
    if (op.outputs[i] && graph.tensor(*op.outputs[i]).alias_of && !statistics)
      return "overwrites a tensor in place and cannot run twice";
  }
  return "";
}

TrainingGraph with_recomputation(const TrainingGraph& step, const std::vector<OpId>& runs) {
  check_runs(step.graph, runs);
  RunSequence sequence(step.graph);
  for (const OpId id : runs)
    sequence.run(id);
  return finished(step, sequence.release());
}

TrainingGraph with_recomputation(const TrainingGraph& step, const TrainingGraph& folded,
                                 const std::vector<OpId>& folded_runs) {
  check_runs(folded.graph, folded_runs);
  const Unfolded unfolded(step.graph, folded.graph);
  RunSequence sequence(step.graph, &folded.graph);
  std::vector<bool> ran(folded.graph.operators().size(), false);
  std::size_t next = 0;
  const auto run_first = [&](std::size_t end) {
    for (; next < end; ++next)
      sequence.run(OpId(next));
  };
  for (const OpId id : folded_runs) {
    const Unfolded::Run own = unfolded[id];
    if (ran[id.index()] || own.again)
      sequence.run(own.op);
    else
      run_first(own.op.index() + 1);
    ran[id.index()] = true;
  }
  run_first(step.graph.operators().size());
  return finished(step, sequence.release());
}

} // namespace monet
