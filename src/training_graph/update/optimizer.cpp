// UpdateEmitter: assigns groups and emits the update of every trained parameter.
#include "training_graph/update/optimizer.hpp"

#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

namespace monet {

std::vector<bool> norms_and_biases(const Graph& graph) {
  std::vector<bool> taken(graph.tensors().size(), false);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    const Integers& shape = tensor.shape;
    // [C, 1, 1]: the scale of a group normalisation as it is exported
    const bool per_channel = shape.size() == 3 && shape[1] == 1 && shape[2] == 1;
    taken[i] = tensor.kind == TensorKind::parameter && (shape.size() <= 1 || per_channel);
  }
  for (const Operator& op : graph.operators()) {
    if (!op.op_type.ends_with("Normalization"))
      continue;
    for (std::size_t i = 1; i < op.inputs.size(); ++i) {
      if (op.inputs[i])
        taken[op.inputs[i]->index()] = true;
    }
  }
  return taken;
}

UpdateEmitter::UpdateEmitter(StepBuilder& builder, const UpdateOptions& options,
                             TrainingGraph& step)
    : builder_(&builder), options_(&options), step_(&step),
      norms_and_biases_(norms_and_biases(builder.graph())) {
  for (const ParameterGroup& group : options.groups)
    patterns_.emplace_back(group.match);
  std::visit([&](const auto& o) { learning_rate(o.learning_rate); }, options.optimizer);
}

const Optimizer& UpdateEmitter::optimizer_of(TensorId weight) {
  const std::string& name = builder_->graph().tensor(weight).name;
  for (std::size_t g = 0; g < options_->groups.size(); ++g) {
    const ParameterGroup& group = options_->groups[g];
    const bool by_rule = group.norms_and_biases && norms_and_biases_[weight.index()];
    if (patterns_[g].match(name) || by_rule)
      return group.optimizer;
  }
  return options_->optimizer;
}

void UpdateEmitter::check_groups() const {
  ProblemList problems;
  for (std::size_t g = 0; g < patterns_.size(); ++g)
    patterns_[g].report(
        builder_->graph(),
        fmt::format("no trained parameter matches the pattern '{{}}' of optimiser group {}", g + 1),
        problems);
  problems.throw_if_any();
}

/// One input for every rate among the groups: a schedule then sets few numbers, not one for each
/// parameter.
TensorId UpdateEmitter::learning_rate(double value) {
  for (const StepInput& rate : step_->learning_rates) {
    if (rate.value == value)
      return rate.tensor;
  }
  const TensorId input =
      builder_->add_tensor("learning_rate", {}, ElementType::fp32, TensorKind::input);
  builder_->graph().tensor(input).values = std::vector<double>{value};
  builder_->graph().inputs.push_back(input);
  step_->learning_rates.push_back({input, value});
  return input;
}

TensorId UpdateEmitter::step_number() {
  if (!step_->step_number) {
    step_->step_number = builder_->add_tensor("step", {}, ElementType::fp32, TensorKind::input);
    builder_->graph().tensor(*step_->step_number).values = std::vector<double>{1.0};
    builder_->graph().inputs.push_back(*step_->step_number);
  }
  return *step_->step_number;
}

void UpdateEmitter::emit(NewOperator op) {
  if (options_->fused)
    builder_->add_operator(std::move(op));
  else
    emit_unfused(*builder_, uniform_, std::move(op));
}

TensorId append_update(StepBuilder& builder, NewOperator op) {
  const TensorId output = *op.outputs.front();
  op.name = fmt::format("{}.{}", op.name, op.op_type);
  op.phase = Phase::update;
  builder.add_operator(std::move(op));
  return output;
}

TensorId update_value(StepBuilder& builder, NewOperator op, Integers shape, ElementType type) {
  op.outputs = {builder.add_tensor(op.name, std::move(shape), type, TensorKind::gradient)};
  return append_update(builder, std::move(op));
}

TensorId global_norm(StepBuilder& builder, const std::vector<TensorId>& gradients) {
  const ElementType type = builder.precision().reduction_type();
  std::vector<std::optional<TensorId>> squares;
  for (const TensorId gradient : gradients) {
    squares.emplace_back(update_value(builder,
                                      {.name = builder.graph().tensor(gradient).name + ".squares",
                                       .op_type = ops::ReduceSumSquare,
                                       .inputs = {gradient},
                                       .attributes = {{"keepdims", std::int64_t{0}}}},
                                      {}, type));
  }
  TensorId total = *squares.front();
  if (squares.size() > 1)
    total = update_value(
        builder, {.name = "gradient_squares", .op_type = ops::Sum, .inputs = std::move(squares)},
        {}, type);
  return update_value(builder, {.name = "gradient_norm", .op_type = ops::Sqrt, .inputs = {total}},
                      {}, type);
}

} // namespace monet
