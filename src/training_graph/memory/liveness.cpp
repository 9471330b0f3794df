// Lifetimes of tensors in memory; the static allocator places the resulting buffers.
#include "monet/training_graph/liveness.hpp"

#include "training_graph/memory/storage.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <map>

namespace monet {

namespace {

bool is_permanent(const Tensor& tensor) {
  const bool summed_over_steps = tensor.kind == TensorKind::parameter_gradient && !tensor.producer;
  return is_state(tensor.kind) || summed_over_steps;
}

/// The tensor whose memory this one lies in: what it views or overwrites.
TensorId memory_of(const Graph& graph, TensorId tensor) {
  for (std::size_t hops = 0; hops <= graph.tensors().size(); ++hops) {
    const TensorId root = storage_root(graph, tensor);
    const auto alias = graph.tensor(root).alias_of;
    if (!alias && root == tensor)
      return tensor;
    tensor = alias.value_or(root);
  }
  throw InternalError("storage is shared in a circle");
}

/// Loops and operands over which an operator computes element by element.
bool overwrites(const Operator& op, TensorId output, TensorId input) {
  const LoopNest& nest = op.nest;
  if (nest.compute != ComputeKind::vector)
    return false;
  const Access* written = nullptr;
  for (const Access& access : nest.operands) {
    if (access.tensor == output)
      written = &access;
  }
  if (!written || written->mode != AccessMode::write || written->opaque || written->passes != 1)
    return false;
  for (std::size_t dim = 0; dim < nest.dims.size(); ++dim) {
    const bool used = std::ranges::any_of(written->axes, [&](const AxisExpr& axis) {
      return axis.terms.size() == 1 && axis.terms[0].dim == dim;
    });
    if (nest.dims[dim].coupled || (!used && nest.dims[dim].size > 1))
      return false;
  }
  return std::ranges::all_of(nest.operands, [&](const Access& access) {
    return access.tensor != input || (access.axes == written->axes && !access.opaque &&
                                      access.passes == 1 && access.mode == AccessMode::read);
  });
}

class LivenessFinder {
public:
  LivenessFinder(const TrainingGraph& step, const LivenessOptions& options)
      : step_(step), graph_(step.graph),
        operators_(static_cast<std::int64_t>(step.graph.operators().size())),
        memory_(graph_.tensors().size()), first_(graph_.tensors().size(), -1),
        last_(graph_.tensors().size(), -1) {
    for (std::size_t t = 0; t < memory_.size(); ++t)
      memory_[t] = memory_of(graph_, TensorId(t));
    find_lives();
    if (options.reuse_operands)
      find_reuse();
  }

  Liveness run() {
    Liveness result;
    result.buffer_of.resize(memory_.size());
    result.live.assign(graph_.operators().size(), LiveBytes{});
    std::vector<LiveBytes> change(graph_.operators().size() + 1, LiveBytes{});
    for (const std::size_t t : by_beginning()) { // operands before what reuses them
      add_buffer(result, t);
      const auto owner = static_cast<std::size_t>(step_.owner.at(t));
      const std::int64_t bytes = bytes_of(size_of(graph_.tensors()[t]));
      // While an operator overwrites its operand, the operand's owner has the bytes.
      const std::int64_t from = first_[t] + (reuses_.count(TensorId(t)) > 0 ? 1 : 0);
      change[static_cast<std::size_t>(from)][owner] += bytes;
      change[static_cast<std::size_t>(last_[t]) + 1][owner] -= bytes;
    }
    for (std::size_t t = 0; t < memory_.size(); ++t)
      result.buffer_of[t] = result.buffer_of[memory_[t].index()];
    LiveBytes now{};
    for (std::size_t i = 0; i < result.live.size(); ++i) {
      for (std::size_t owner = 0; owner < now.size(); ++owner)
        now[owner] += change[i][owner];
      result.live[i] = now;
      if (total(now) > total(result.live[result.peak]))
        result.peak = i;
    }
    return result;
  }

private:
  void touch(TensorId tensor, std::int64_t from, std::int64_t to) {
    const std::size_t t = memory_[tensor.index()].index();
    first_[t] = first_[t] < 0 ? from : std::min(first_[t], from);
    last_[t] = std::max(last_[t], to);
  }

  void find_lives() {
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.op(OpId(i));
      const auto now = static_cast<std::int64_t>(i);
      for (const TensorId output : present(op.outputs))
        touch(output, now, now);
      for (const TensorId input : present(op.inputs))
        touch(input, graph_.tensor(memory_[input.index()]).producer ? now : 0, now);
    }
    for (std::size_t t = 0; t < memory_.size(); ++t) {
      if (first_[t] >= 0 && is_permanent(graph_.tensors()[t]))
        touch(TensorId(t), 0, operators_ - 1);
    }
    for (const TensorId output : graph_.outputs) {
      if (operators_ > 0 && first_[memory_[output.index()].index()] >= 0)
        touch(output, operators_ - 1, operators_ - 1);
    }
    hold_stored();
  }

  /// Extends the lives of stored tensors that no gradient reads, or that PyTorch stores: they end
  /// when the gradients of their readers and their producer have run. Tensors that are computed
  /// again, and those from which they are computed, end after the last reader.
  void hold_stored() {
    Integers last_gradient(graph_.operators().size(), -1);
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.op(OpId(i));
      if (op.phase == Phase::backward && op.forward_op)
        last_gradient[op.forward_op->index()] = static_cast<std::int64_t>(i);
    }
    const std::vector<TensorId> read = tensors_read_by_backward(graph_);
    for (const TensorId stored : step_.stored_activations) {
      const auto [made, held] = ends_of(stored);
      const bool is_read = held == stored ? std::ranges::binary_search(read, stored)
                                          : !graph_.tensor(held).consumers.empty();
      if (step_.store == StorePolicy::minimal && is_read)
        continue;
      const Tensor& tensor = graph_.tensor(made);
      std::int64_t until = tensor.producer ? last_gradient[tensor.producer->index()] : -1;
      for (const OpId reader : tensor.consumers)
        until = std::max(until, last_gradient[original_of(reader).index()]);
      const bool touched = first_[memory_[held.index()].index()] >= 0;
      if (until >= 0 && touched && !is_for_recomputing(made, until))
        touch(held, until, until);
    }
  }

  /// For a copy in the host, its source and the copy back; otherwise the tensor twice.
  std::pair<TensorId, TensorId> ends_of(TensorId stored) const {
    if (!lies_in_host(graph_, stored))
      return {stored, stored};
    const Tensor& copy = graph_.tensor(stored);
    return {*graph_.op(*copy.producer).inputs[0], *graph_.op(copy.consumers.front()).outputs[0]};
  }

  OpId original_of(OpId id) const {
    const Operator& op = graph_.op(id);
    return op.phase == Phase::recompute ? op.forward_op.value_or(id) : id;
  }

  /// Its producer has run again by then, so that this result is not needed; or it is there to
  /// compute something again rather than for a gradient.
  bool is_for_recomputing(TensorId tensor, std::int64_t until) const {
    const auto runs_again = [&](OpId id) { return graph_.op(id).phase == Phase::recompute; };
    const auto& consumers = graph_.tensor(tensor).consumers;
    if (std::ranges::any_of(consumers, runs_again))
      return true;
    const auto producer = graph_.tensor(tensor).producer;
    const auto end = static_cast<std::size_t>(until);
    for (std::size_t i = producer ? producer->index() + 1 : end; i < end; ++i) {
      const Operator& op = graph_.op(OpId(i));
      if (op.phase == Phase::recompute && op.forward_op == producer)
        return true;
    }
    return false;
  }

  void find_reuse() {
    std::vector<bool> taken(memory_.size(), false);
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.op(OpId(i));
      for (const auto& output : op.outputs) {
        if (!output || memory_[output->index()] != *output)
          continue;
        for (const auto& input : op.inputs) {
          if (!input || !may_reuse(op, static_cast<std::int64_t>(i), *output, *input))
            continue;
          const TensorId operand = memory_[input->index()];
          if (taken[operand.index()])
            continue;
          taken[operand.index()] = true;
          reuses_.emplace(*output, operand);
          break;
        }
      }
    }
  }

  bool may_reuse(const Operator& op, std::int64_t now, TensorId output, TensorId input) const {
    const TensorId operand = memory_[input.index()];
    return last_[operand.index()] == now && first_[operand.index()] < now &&
           first_[output.index()] == now && last_[output.index()] > now &&
           !is_permanent(graph_.tensor(operand)) && !is_permanent(graph_.tensor(output)) &&
           operand == input && size_of(graph_.tensor(operand)) == size_of(graph_.tensor(output)) &&
           overwrites(op, output, input);
  }

  /// Tensors that own memory, in the order in which they begin to live.
  std::vector<std::size_t> by_beginning() const {
    std::vector<std::size_t> order;
    for (std::size_t t = 0; t < memory_.size(); ++t) {
      if (memory_[t] == TensorId(t) && first_[t] >= 0)
        order.push_back(t);
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t t) { return first_[t]; });
    return order;
  }

  void add_buffer(Liveness& result, std::size_t t) const {
    const auto reused = reuses_.find(TensorId(t));
    if (reused != reuses_.end()) {
      const auto buffer = result.buffer_of[reused->second.index()];
      internal_check(buffer.has_value(), "a buffer is reused before it is there");
      result.buffer_of[t] = buffer;
      result.buffers[*buffer].end = last_[t] + 1;
      return;
    }
    const Tensor& tensor = graph_.tensors()[t];
    result.buffer_of[t] = result.buffers.size();
    result.buffers.push_back({TensorId(t), first_[t], last_[t] + 1, bytes_of(size_of(tensor)),
                              step_.owner.at(t), is_permanent(tensor)});
  }

  const TrainingGraph& step_;
  const Graph& graph_;
  std::int64_t operators_;
  std::vector<TensorId> memory_;        ///< per tensor
  Integers first_, last_;               ///< per tensor that is its own memory; -1 = never
  std::map<TensorId, TensorId> reuses_; ///< output -> operand it is written over
};

} // namespace

Liveness find_liveness(const TrainingGraph& step, const LivenessOptions& options) {
  return LivenessFinder(step, options).run();
}

AddressPlan plan_addresses(const Liveness& liveness, std::int64_t granule,
                           const AllocationOptions& options) {
  internal_check(granule >= 1, "offsets are multiples of at least one byte");
  std::vector<BufferRequest> requests;
  std::vector<std::size_t> buffer;
  for (std::size_t i = 0; i < liveness.buffers.size(); ++i) {
    const LiveBuffer& live = liveness.buffers[i];
    if (live.permanent || live.owner == MemoryOwner::offloaded_activations)
      continue;
    requests.push_back({live.start, live.end, ceil_div(live.bytes, granule) * granule, 1, {}});
    buffer.push_back(i);
  }
  const Allocation allocation = allocate(requests, options);
  verify(requests, allocation);
  AddressPlan plan;
  plan.offsets.assign(liveness.buffers.size(), -1);
  for (std::size_t k = 0; k < buffer.size(); ++k)
    plan.offsets[buffer[k]] = allocation.offsets[k];
  plan.arena_bytes = allocation.height;
  plan.bound_bytes = allocation.lower_bound;
  plan.proven = allocation.proven;
  return plan;
}

} // namespace monet
