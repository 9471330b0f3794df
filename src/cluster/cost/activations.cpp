// Bytes of each block's activations: stored for the backward pass, read by weight gradients,
// temporary, and handed on to the next block. Called by blocks.cpp.
#include "cluster/cost/costs.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace monet::cluster_cost {

namespace {

class ActivationSums {
public:
  ActivationSums(const RankLayout& layout, bool in_place_loss, std::vector<Block>& blocks)
      : layout_(layout), in_place_loss_(in_place_loss), blocks_(blocks) {}

  void run() {
    add_stored();
    add_waiting();
    add_temporaries();
    add_outputs();
  }

private:
  const TrainingGraph& step() const { return layout_.ranks.step; }
  const Graph& graph() const { return layout_.ranks.step.graph; }
  const Operator& op(std::size_t i) const { return graph().operators()[i]; }
  Block& block_of(std::size_t i) {
    return blocks_.at(static_cast<std::size_t>(layout_.places[i].part));
  }

  void add_stored() {
    for (const TensorId id : step().stored_activations) {
      if (const Tensor& tensor = graph().tensor(id); tensor.producer || !tensor.consumers.empty())
        block_of((tensor.producer ? *tensor.producer : tensor.consumers.front()).index())
            .stored_bytes += bytes_of(size_of(tensor));
    }
  }

  /// Adds the bytes that the weight gradients of a block read. Each tensor counts once; weights and
  /// results of the weight pass do not count.
  void add_waiting() {
    std::set<std::pair<std::int64_t, TensorId>> read;
    for (std::size_t i = 0; i < graph().operators().size(); ++i) {
      const OperatorPlace& place = layout_.places[i];
      if (op(i).phase == Phase::update || place.pass != PipelinePass::weight)
        continue;
      for (const TensorId id : present(op(i).inputs)) {
        const Tensor& tensor = graph().tensor(id);
        const bool made_with_it =
            tensor.producer &&
            layout_.places[tensor.producer->index()].pass == PipelinePass::weight;
        if (tensor.producer && !made_with_it && read.emplace(place.part, id).second)
          block_of(i).weight_bytes += bytes_of(size_of(tensor));
      }
    }
  }

  bool passes_by(TensorId id) const {
    const MemoryOwner owner = step().owner[id.index()];
    const Tensor& tensor = graph().tensor(id);
    return owner == MemoryOwner::temporaries && !tensor.alias_of &&
           tensor.kind != TensorKind::input && tensor.kind != TensorKind::label &&
           tensor.producer && graph().op(*tensor.producer).phase != Phase::update;
  }

  /// Sets each block's maximum of live bytes beyond its stored activations. Stored activations that
  /// are not computed yet, or no longer needed, leave room for temporaries.
  void add_temporaries() {
    const std::size_t count = graph().operators().size();
    std::vector<std::vector<TensorId>> ends(count);
    std::vector<std::int64_t> begins_stored(count, 0), ends_stored(count, 0);
    const std::vector<std::size_t> last = last_of_blocks();
    for (const TensorId id : step().stored_activations) {
      const Tensor& tensor = graph().tensor(id);
      if (!tensor.producer)
        continue;
      const std::size_t made = tensor.producer->index();
      begins_stored[made] += bytes_of(size_of(tensor));
      ends_stored[last_reader(id, last)] += bytes_of(size_of(tensor));
    }
    std::vector<std::int64_t> missing(blocks_.size()); // stored bytes that are not live, by block
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      missing[i] = blocks_[i].stored_bytes;
    std::int64_t live = 0;
    for (std::size_t i = 0; i < count && op(i).phase != Phase::update; ++i) {
      for (const TensorId id : present(op(i).outputs)) {
        if (!passes_by(id))
          continue;
        live += bytes_of(size_of(graph().tensor(id)));
        const auto& readers = graph().tensor(id).consumers;
        ends[readers.empty() ? i : readers.back().index()].push_back(id);
      }
      std::int64_t& room = missing.at(static_cast<std::size_t>(layout_.places[i].part));
      room -= begins_stored[i];
      Block& of = block_of(i);
      of.temporary_bytes = std::max(of.temporary_bytes, live + loss_bytes(i) - room);
      room += ends_stored[i];
      for (const TensorId id : ends[i])
        live -= bytes_of(size_of(graph().tensor(id)));
    }
  }

  /// Bytes of the gradient of log-probabilities, unless it is computed in place.
  std::int64_t loss_bytes(std::size_t i) const {
    const bool of_labels = op(i).op_type == ops::SoftmaxCrossEntropyGrad;
    return of_labels && !in_place_loss_ ? bytes_of(size_of(graph().tensor(*op(i).outputs[0]))) : 0;
  }

  /// The last operator of each block before the update.
  std::vector<std::size_t> last_of_blocks() const {
    std::vector<std::size_t> last(blocks_.size(), 0);
    for (std::size_t i = 0; i < graph().operators().size(); ++i) {
      if (op(i).phase != Phase::update)
        last.at(static_cast<std::size_t>(layout_.places[i].part)) = i;
    }
    return last;
  }

  /// The last operator of a stored tensor's block that reads it. A tensor that is stored without a
  /// reader lives until the end of the block.
  std::size_t last_reader(TensorId id, const std::vector<std::size_t>& last) const {
    const Tensor& tensor = graph().tensor(id);
    const auto part = static_cast<std::size_t>(layout_.places[tensor.producer->index()].part);
    std::optional<std::size_t> found;
    for (const OpId reader : tensor.consumers) {
      const bool here = layout_.places[reader.index()].part == static_cast<std::int64_t>(part);
      if (here && graph().op(reader).phase != Phase::forward &&
          graph().op(reader).phase != Phase::update)
        found = std::max(found.value_or(0), reader.index());
    }
    return found.value_or(last.at(part));
  }

  /// Per tensor: whether it depends on the samples, and not only on parameters.
  std::vector<bool> depends_on_samples() const {
    std::vector<bool> depends(graph().tensors().size());
    for (const TensorId id : graph().inputs)
      depends[id.index()] = graph().tensor(id).kind == TensorKind::input;
    for (const Operator& one : graph().operators()) {
      const bool any = std::ranges::any_of(present(one.inputs),
                                           [&](TensorId id) { return depends[id.index()]; });
      for (const TensorId id : present(one.outputs))
        depends[id.index()] = any;
    }
    return depends;
  }

  /// Sets the output of each block: its largest result that a later block reads. Gathered
  /// parameters that a later block shares, such as a tied table, are no results.
  void add_outputs() {
    const std::vector<bool> depends = depends_on_samples();
    for (std::size_t i = 0; i < graph().operators().size(); ++i) {
      if (op(i).phase != Phase::forward)
        continue;
      for (const TensorId id : present(op(i).outputs)) {
        const Tensor& tensor = graph().tensor(id);
        const bool handed_on = std::ranges::any_of(tensor.consumers, [&](OpId reader) {
          return graph().op(reader).phase == Phase::forward &&
                 layout_.places[reader.index()].part > layout_.places[i].part;
        });
        std::int64_t& bytes = block_of(i).output_bytes;
        if (handed_on && depends[id.index()] && tensor.kind == TensorKind::activation)
          bytes = std::max(bytes, bytes_of(size_of(tensor)));
      }
    }
  }

  const RankLayout& layout_;
  bool in_place_loss_;
  std::vector<Block>& blocks_;
};

} // namespace

void add_activations(const RankLayout& layout, bool in_place_loss, std::vector<Block>& blocks) {
  ActivationSums(layout, in_place_loss, blocks).run();
}

} // namespace monet::cluster_cost
