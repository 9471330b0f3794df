// Assigns each operator of a training step to a part of the model, a pass and a micro-batch. Called
// by cost/layout.cpp, whose layout the cost models read.
#include "cluster/shared/stages.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace monet {

namespace {

/// An operator's name without its micro-batch: "h.0.mlp.micro_2.tensor.AllReduce" becomes
/// "h.0.mlp.tensor.AllReduce".
std::string without_micro_batch(const std::string& name) {
  constexpr std::string_view kMark = ".micro_";
  const std::size_t at = name.find(kMark);
  if (at == std::string::npos)
    return name;
  std::size_t end = at + kMark.size();
  while (end < name.size() && name[end] >= '0' && name[end] <= '9')
    ++end;
  return name.substr(0, at) + name.substr(end);
}

class Placer {
public:
  Placer(const TrainingGraph& step, std::span<const std::int64_t> begins)
      : step_(step), begins_(begins), places_(step.graph.operators().size()) {
    internal_check(!begins.empty() && begins.front() == 0 &&
                       std::ranges::is_sorted(begins, std::less_equal{}),
                   "parts begin in no order");
  }

  std::vector<OperatorPlace> run() {
    place_passes();
    find_weights();
    place_updates();
    return std::move(places_);
  }

private:
  const Graph& graph() const { return step_.graph; }
  const Operator& op(std::size_t i) const { return graph().operators()[i]; }
  std::int64_t last_part() const { return static_cast<std::int64_t>(begins_.size()) - 1; }

  void place_passes() {
    std::int64_t micro_batch = 0;
    bool backward = false;
    std::int64_t index = 0; // counts the operators of the first forward pass
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Phase phase = op(i).phase;
      if (phase == Phase::update)
        continue;
      const bool now = is_backward(op(i));
      micro_batch += backward && !now ? 1 : 0;
      backward = now;
      OperatorPlace& place = places_[i];
      place.micro_batch = micro_batch;
      if (backward) {
        place.part = backward_part(i);
        place.pass = PipelinePass::backward;
      } else {
        place.part = phase == Phase::loss ? last_part() : forward_part(i, micro_batch, index);
      }
    }
    place_with_readers();
    find_weight_passes();
  }

  /// Moves operators that only prepare an operand to the part of their first reader. Examples are a
  /// gather of a weight's shards, or of activations that the forward pass stored in shards.
  void place_with_readers() {
    const std::vector<bool> prepares = find_preparing();
    for (std::size_t i = places_.size(); i-- > 0;) {
      if (!prepares[i])
        continue;
      const auto& readers = graph().tensor(*op(i).outputs[0]).consumers;
      const auto first = std::ranges::find_if(readers, [&](OpId reader) {
        return is_backward(op(reader.index())) == is_backward(op(i)) &&
               op(reader.index()).phase != Phase::update;
      });
      if (first != readers.end())
        places_[i].part = places_[first->index()].part;
    }
  }

  std::vector<bool> find_preparing() const {
    std::vector<bool> prepares(places_.size(), false);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto is_there = [&](TensorId id) {
        const auto producer = graph().tensor(id).producer;
        if (!producer || !is_collective(op(i)))
          return !producer && graph().tensor(id).kind != TensorKind::input;
        const std::size_t at = producer->index();
        return (prepares[at] && is_collective(op(at))) ||
               (is_backward(op(i)) && !is_backward(op(at)));
      };
      prepares[i] = op(i).phase != Phase::update && !op(i).forward_op &&
                    std::ranges::all_of(present(op(i).inputs), is_there);
    }
    return prepares;
  }

  static bool is_backward(const Operator& op) {
    return op.phase == Phase::backward || op.phase == Phase::recompute;
  }

  /// The part of a forward operator. In the first micro-batch it follows from the operator's index;
  /// later micro-batches find the operator of the first one by name.
  std::int64_t forward_part(std::size_t i, std::int64_t micro_batch, std::int64_t& index) {
    const std::string name = without_micro_batch(op(i).name);
    if (micro_batch == 0) {
      const auto after = std::ranges::upper_bound(begins_, index++);
      const std::int64_t part = after - begins_.begin() - 1;
      parts_.emplace(name, part);
      return part;
    }
    const auto known = parts_.find(name);
    return known != parts_.end() ? known->second : producers_part(i, true).value_or(0);
  }

  /// The last part among the producers of an operator's inputs or, if not `last`, the first part
  /// among its backward producers.
  std::optional<std::int64_t> producers_part(std::size_t i, bool last) const {
    std::optional<std::int64_t> found;
    for (const TensorId input : present(op(i).inputs)) {
      const auto producer = graph().tensor(input).producer;
      if (!producer || (!last && !is_backward(op(producer->index()))))
        continue;
      const std::int64_t part = places_[producer->index()].part;
      if (!found || (last ? part > *found : part < *found))
        found = part;
    }
    return found;
  }

  std::int64_t backward_part(std::size_t i) const {
    const auto from = producers_part(i, false);
    if (op(i).forward_op) {
      const std::int64_t own = places_[op(i).forward_op->index()].part;
      return from && !is_repeated(op(i)) ? std::min(own, *from) : own;
    }
    return from.value_or(last_part());
  }

  /// Moves backward operators that lead only to gradients of parameters to the weight pass. The
  /// loop runs in reverse, so that readers are classified before their producers.
  void find_weight_passes() {
    for (std::size_t i = places_.size(); i-- > 0;) {
      if (op(i).phase != Phase::backward)
        continue;
      const bool only_weights = std::ranges::all_of(present(op(i).outputs), [&](TensorId id) {
        const Tensor& tensor = graph().tensor(id);
        const bool of_parameter = tensor.kind == TensorKind::parameter_gradient;
        return (of_parameter || !tensor.consumers.empty()) &&
               std::ranges::all_of(tensor.consumers, [&](OpId reader) {
                 const OperatorPlace& theirs = places_[reader.index()];
                 return graph().op(reader).phase == Phase::update ||
                        (theirs.pass == PipelinePass::weight &&
                         (theirs.part == places_[i].part || sums_gradients(graph().op(reader))));
               });
      });
      if (only_weights)
        places_[i].pass = PipelinePass::weight;
    }
  }

  /// Whether the operator adds up the gradients of one weight that several parts read.
  bool sums_gradients(const Operator& op) const {
    return op.domain.empty() && op.outputs.size() == 1 &&
           graph().tensor(*op.outputs[0]).kind == TensorKind::parameter_gradient;
  }

  void find_weights() {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (op(i).phase == Phase::update)
        continue;
      for (const TensorId input : present(op(i).inputs)) {
        if (graph().tensor(input).kind == TensorKind::parameter)
          readers_[input].insert(places_[i].part);
      }
    }
    for (const ParameterRecord& record : step_.parameters) {
      const auto found = readers_.find(record.weight);
      if (found == readers_.end())
        continue;
      const std::set<std::int64_t> parts = found->second;
      for (const TensorId state : record.states)
        readers_.emplace(state, parts);
      for (const std::optional<TensorId>& state : {record.average, record.master}) {
        if (state)
          readers_.emplace(*state, parts);
      }
    }
  }

  /// Places the operators of the update. An operator runs in the parts that keep the weight it
  /// reads, else in the part that made its operands. If its operands come from several parts, as
  /// the norm of all gradients, it runs in the first part, as do operators that read only its
  /// result.
  void place_updates() {
    std::vector<Owned> owned(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (op(i).phase != Phase::update)
        continue;
      std::set<std::int64_t> parts = parts_of_weights(i, owned);
      owned[i] = parts.empty() ? Owned::by_one : Owned::by_weight;
      if (parts.empty())
        parts = parts_of_operands(i, owned);
      if (parts.empty()) {
        owned[i] = Owned::by_all;
        parts = {0};
      }
      places_[i].updates.assign(parts.begin(), parts.end());
      places_[i].part = places_[i].updates.front();
      places_[i].micro_batch = step_.passes - 1;
    }
  }

  /// The reason for the place of an update operator: a weight, the single part of its operands, or
  /// operands of several parts.
  enum class Owned { by_weight, by_one, by_all };

  /// The tensor behind a chain of collectives outside the update: the weight behind its shard or
  /// its gathered copy.
  TensorId weight_behind(TensorId id) const {
    auto producer = graph().tensor(id).producer;
    while (producer && is_collective(graph().op(*producer)) &&
           graph().op(*producer).phase != Phase::update) {
      id = *graph().op(*producer).inputs[0];
      producer = graph().tensor(id).producer;
    }
    return id;
  }

  std::set<std::int64_t> parts_of_weights(std::size_t i, const std::vector<Owned>& owned) const {
    std::set<std::int64_t> parts;
    for (const TensorId input : present(op(i).inputs)) {
      if (const auto found = readers_.find(weight_behind(input)); found != readers_.end())
        parts.insert(found->second.begin(), found->second.end());
      const auto producer = graph().tensor(input).producer;
      if (producer && op(producer->index()).phase == Phase::update &&
          owned[producer->index()] == Owned::by_weight)
        parts.insert(places_[producer->index()].updates.begin(),
                     places_[producer->index()].updates.end());
    }
    return parts;
  }

  /// The parts that made an operator's operands, or empty if the operands come from different
  /// parts.
  std::set<std::int64_t> parts_of_operands(std::size_t i, const std::vector<Owned>& owned) const {
    std::set<std::int64_t> same;
    for (const TensorId input : present(op(i).inputs)) {
      const auto producer = graph().tensor(input).producer;
      if (!producer)
        continue;
      const OperatorPlace& place = places_[producer->index()];
      if (!place.updates.empty() && owned[producer->index()] == Owned::by_all)
        continue;
      const std::set<std::int64_t> parts =
          place.updates.empty() ? std::set{place.part}
                                : std::set(place.updates.begin(), place.updates.end());
      if (!same.empty() && same != parts)
        return {};
      same = parts;
    }
    return same;
  }

  const TrainingGraph& step_;
  std::span<const std::int64_t> begins_;
  std::vector<OperatorPlace> places_;
  std::map<std::string, std::int64_t> parts_;          ///< by operator name, first forward pass
  std::map<TensorId, std::set<std::int64_t>> readers_; ///< parts that read a weight or state
};

} // namespace

bool is_repeated(const Operator& op) {
  return op.forward_op && (op.phase == Phase::recompute || is_collective(op));
}

std::int64_t forward_operators(const TrainingGraph& step) {
  std::int64_t count = 0;
  for (const Operator& op : step.graph.operators()) {
    if (op.phase == Phase::backward)
      break;
    count += op.phase == Phase::forward ? 1 : 0;
  }
  return count;
}

std::vector<OperatorPlace> place_operators(const TrainingGraph& step,
                                           std::span<const std::int64_t> begins) {
  return Placer(step, begins).run();
}

} // namespace monet
