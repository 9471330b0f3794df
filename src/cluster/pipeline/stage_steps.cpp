#include "monet/base/errors.hpp"
#include "monet/cluster/stages.hpp"
#include "monet/training/stored.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace monet {

namespace {

/// The operators of each stage, in the order of its schedule, updates last.
class StageOrders {
public:
  StageOrders(const TrainingGraph& step, std::span<const OperatorPlace> places, PipelineKind kind,
              std::int64_t stages, std::int64_t chunks)
      : step_(step), places_(places), kind_(kind), stages_(stages), chunks_(chunks) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (step.graph.operators()[i].phase != Phase::update)
        tasks_[key(places[i])].emplace_back(i);
    }
  }

  std::vector<OpId> order(std::int64_t stage) const {
    std::vector<OpId> ops;
    for (const PipelineTask& task : stage_order(kind_, stages_, chunks_, step_.passes, stage)) {
      const Key wanted{part_of(kind_, stages_, stage, task.chunk), task.micro_batch, task.pass};
      const auto found = tasks_.find(wanted);
      if (found != tasks_.end())
        ops.insert(ops.end(), found->second.begin(), found->second.end());
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const bool own = std::ranges::any_of(places_[i].updates, [&](std::int64_t part) {
        return stage_of_part(kind_, stages_, part) == stage;
      });
      if (own)
        ops.emplace_back(i);
    }
    return ops;
  }

private:
  using Key = std::tuple<std::int64_t, std::int64_t, PipelinePass>;
  static Key key(const OperatorPlace& place) { return {place.part, place.micro_batch, place.pass}; }

  const TrainingGraph& step_;
  std::span<const OperatorPlace> places_;
  PipelineKind kind_;
  std::int64_t stages_, chunks_;
  std::map<Key, std::vector<OpId>> tasks_;
};

/// The step of some operators of another.
class Extractor {
public:
  Extractor(const TrainingGraph& step, std::span<const OperatorPlace> places)
      : step_(step), places_(places) {}

  StageStep run(const std::vector<OpId>& ops) {
    made_.step = step_;
    made_.step.graph = Graph();
    graph().name = step_.graph.name;
    graph().origin = step_.graph.origin;
    for (const OpId id : ops)
      append(id);
    follow_records();
    made_.step.stored_activations = tensors_read_by_backward(graph());
    made_.step.owner = find_owners(graph(), made_.step.stored_activations);
    return std::move(made_);
  }

private:
  Graph& graph() { return made_.step.graph; }

  TensorId tensor(TensorId id) {
    const auto found = made_.made.find(id);
    if (found != made_.made.end())
      return found->second;
    Tensor copy = step_.graph.tensor(id);
    copy.producer.reset();
    copy.consumers.clear();
    if (copy.alias_of)
      copy.alias_of = tensor(*copy.alias_of);
    const TensorId added = graph().add_tensor(std::move(copy));
    made_.of.push_back(id);
    made_.made.emplace(id, added);
    return added;
  }

  /// Of what another part makes again, what it has made in the forward pass.
  TensorId before_repetition(TensorId id, OpId reader) const {
    const auto producer = step_.graph.tensor(id).producer;
    if (!producer || !is_repeated(step_.graph.op(*producer)) ||
        places_[producer->index()].part == places_[reader.index()].part)
      return id;
    const Operator& again = step_.graph.op(*producer);
    const auto at = std::ranges::find(again.outputs, std::optional(id)) - again.outputs.begin();
    return step_.graph.op(*again.forward_op).outputs.at(static_cast<std::size_t>(at)).value();
  }

  void append(OpId id) {
    Operator op = step_.graph.op(id);
    for (auto* list : {&op.inputs, &op.outputs}) {
      for (auto& operand : *list) {
        if (operand)
          operand = tensor(before_repetition(*operand, id));
      }
    }
    for (Access& access : op.nest.operands)
      access.tensor = tensor(before_repetition(access.tensor, id));
    if (op.forward_op) {
      const auto found = ops_.find(*op.forward_op);
      op.forward_op = found == ops_.end() ? std::nullopt : std::optional(found->second);
    }
    ops_.emplace(id, graph().add_operator(std::move(op)));
    made_.part.push_back(places_[id.index()].part);
    made_.pass.push_back(places_[id.index()].pass);
  }

  std::optional<TensorId> here(std::optional<TensorId> id) const {
    const auto found = id ? made_.made.find(*id) : made_.made.end();
    return found == made_.made.end() ? std::nullopt : std::optional(found->second);
  }

  void follow_records() {
    TrainingGraph& step = made_.step;
    step.loss = here(step_.loss);
    step.parameters.clear();
    for (ParameterRecord record : step_.parameters) {
      if (!here(record.weight) || !here(record.updated) || !here(record.gradient))
        continue;
      record.weight = *here(record.weight);
      record.gradient = *here(record.gradient);
      record.updated = *here(record.updated);
      for (TensorId& state : record.states)
        state = *here(state);
      for (auto* state : {&record.rows, &record.average, &record.master})
        *state = here(*state);
      step.parameters.push_back(record);
    }
    std::erase_if(step.learning_rates, [&](const StepInput& input) { return !here(input.tensor); });
    for (StepInput& input : step.learning_rates)
      input.tensor = *here(input.tensor);
    step.step_number = here(step_.step_number);
    std::erase_if(step.initial, [&](const InitialState& state) { return !here(state.state); });
    for (InitialState& state : step.initial) {
      state.state = *here(state.state);
      state.copy_of = here(state.copy_of);
    }
    step.loss_scale = here(step_.loss_scale);
    step.found_inf = here(step_.found_inf);
    step.gradient_norm = here(step_.gradient_norm);
  }

  const TrainingGraph& step_;
  std::span<const OperatorPlace> places_;
  StageStep made_;
  std::map<OpId, OpId> ops_;
};

} // namespace

namespace {

/// What is fed into a stage's step, and what it gives away.
void name_ends(StageStep& stage, const TrainingGraph& whole) {
  Graph& graph = stage.step.graph;
  std::set<TensorId> given;
  for (const StageTransfer& send : stage.sends)
    given.insert(send.tensor);
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    const auto& outputs = whole.graph.outputs;
    const bool output = std::ranges::find(outputs, stage.of[i]) != outputs.end();
    if (tensor.producer && (output || given.contains(TensorId(i))))
      graph.outputs.emplace_back(i);
    const bool kept = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer ||
                      tensor.kind == TensorKind::constant ||
                      tensor.kind == TensorKind::optimizer_state;
    if (!tensor.producer && !kept)
      graph.inputs.emplace_back(i);
  }
}

bool makes(const StageStep& stage, TensorId of) {
  const auto found = stage.made.find(of);
  return found != stage.made.end() && stage.step.graph.tensor(found->second).producer.has_value();
}

/// Whoever makes a tensor, the first of several, sends it to who reads it and does not make it.
void connect(std::vector<StageStep>& stages, std::size_t from, TensorId own) {
  const TensorId of = stages[from].of[own.index()];
  const auto before = std::span(stages).first(from);
  if (std::ranges::any_of(before, [&](const StageStep& stage) { return makes(stage, of); }))
    return;
  for (std::size_t to = 0; to < stages.size(); ++to) {
    const auto found = stages[to].made.find(of);
    if (to == from || found == stages[to].made.end() || makes(stages[to], of))
      continue;
    stages[from].sends.push_back({own, static_cast<std::int64_t>(to)});
    stages[to].receives.push_back({found->second, static_cast<std::int64_t>(from)});
  }
}

} // namespace

TrainingGraph step_of(const TrainingGraph& step, std::span<const OpId> ops) {
  const std::vector<OperatorPlace> nowhere(step.graph.operators().size());
  StageStep made = Extractor(step, nowhere).run(std::vector<OpId>(ops.begin(), ops.end()));
  name_ends(made, step);
  return std::move(made.step);
}

std::vector<StageStep> stage_steps(const TrainingGraph& step, std::span<const OperatorPlace> places,
                                   PipelineKind kind, std::int64_t stages, std::int64_t chunks) {
  const StageOrders orders(step, places, kind, stages, chunks);
  std::vector<StageStep> made;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    made.push_back(Extractor(step, places).run(orders.order(stage)));
  for (std::size_t from = 0; from < made.size(); ++from) {
    for (std::size_t i = 0; i < made[from].of.size(); ++i) {
      if (made[from].step.graph.tensors()[i].producer)
        connect(made, from, TensorId(i));
    }
  }
  for (StageStep& stage : made)
    name_ends(stage, step);
  return made;
}

} // namespace monet
