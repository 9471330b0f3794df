// Extracts some operators of a training step as a step, with other operators' results as inputs.
// Used by the costs of chips (cost/chip_costs.cpp).
#include "cluster/shared/stages.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/training.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace monet {

namespace {

/// Builds the step of some operators of another step.
class Extractor {
public:
  Extractor(const TrainingGraph& step, const StandIn& stand_in)
      : step_(step), stand_in_(stand_in) {}

  StepPart run(std::span<const OpId> ops) {
    made_.step = step_;
    made_.step.graph = Graph();
    graph().name = step_.graph.name;
    graph().origin = step_.graph.origin;
    for (const OpId id : ops)
      append(id);
    follow_records();
    made_.step.stored_activations = tensors_read_by_backward(graph());
    made_.step.owner = find_owners(graph(), made_.step.stored_activations);
    name_ends();
    return std::move(made_);
  }

private:
  Graph& graph() { return made_.step.graph; }

  TensorId tensor(TensorId id) {
    if (const auto found = made_.made.find(id); found != made_.made.end())
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

  TensorId read(TensorId id, OpId reader) const { return stand_in_ ? stand_in_(id, reader) : id; }

  void append(OpId id) {
    Operator op = step_.graph.op(id);
    for (auto* list : {&op.inputs, &op.outputs}) {
      for (auto& operand : *list) {
        if (operand)
          operand = tensor(read(*operand, id));
      }
    }
    for (Access& access : op.nest.operands)
      access.tensor = tensor(read(access.tensor, id));
    if (op.forward_op) {
      const auto found = ops_.find(*op.forward_op);
      op.forward_op = found == ops_.end() ? std::nullopt : std::optional(found->second);
    }
    ops_.emplace(id, graph().add_operator(std::move(op)));
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

  void name_ends() {
    const auto& outputs = step_.graph.outputs;
    for (std::size_t i = 0; i < graph().tensors().size(); ++i) {
      const Tensor& tensor = graph().tensors()[i];
      if (tensor.producer && std::ranges::find(outputs, made_.of[i]) != outputs.end())
        graph().outputs.emplace_back(i);
      const bool kept = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer ||
                        tensor.kind == TensorKind::constant ||
                        tensor.kind == TensorKind::optimizer_state;
      if (!tensor.producer && !kept)
        graph().inputs.emplace_back(i);
    }
  }

  const TrainingGraph& step_;
  const StandIn& stand_in_;
  StepPart made_;
  std::map<OpId, OpId> ops_;
};

} // namespace

StepPart part_of_step(const TrainingGraph& step, std::span<const OpId> ops,
                      const StandIn& stand_in) {
  return Extractor(step, stand_in).run(ops);
}

} // namespace monet
