#include "training/optimizer.hpp"

#include "training/parameter_update.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace monet {

namespace {

struct Defaults {
  OptimizerKind kind;
  double learning_rate;
  double momentum;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
  bool nesterov;
};

/// PyTorch's where it has the optimiser (an sgd without rate takes 1e-3 there from version 2 on),
/// those of the published code otherwise.
constexpr Defaults kDefaults[]{
    {OptimizerKind::sgd, 1e-3, 0.0, 0.0, 0.0, 0.0, 0.0, false},
    {OptimizerKind::momentum, 1e-3, 0.9, 0.0, 0.0, 0.0, 0.0, false},
    {OptimizerKind::adam, 1e-3, 0.0, 0.9, 0.999, 1e-8, 0.0, false},
    {OptimizerKind::adamw, 1e-3, 0.0, 0.9, 0.999, 1e-8, 1e-2, false},
    {OptimizerKind::rmsprop, 1e-2, 0.0, 0.0, 0.0, 1e-8, 0.0, false},
    {OptimizerKind::adagrad, 1e-2, 0.0, 0.0, 0.0, 1e-10, 0.0, false},
    {OptimizerKind::lion, 1e-4, 0.0, 0.9, 0.99, 0.0, 0.0, false},
    {OptimizerKind::adafactor, 1e-3, 0.0, 0.0, 0.0, 1e-30, 0.0, false},
    {OptimizerKind::lamb, 1e-3, 0.0, 0.9, 0.999, 1e-6, 0.0, false},
    {OptimizerKind::muon, 2e-2, 0.95, 0.9, 0.999, 1e-7, 0.0, true},
};

/// Muon is for matrices; the rest is trained by AdamW.
OptimizerOptions for_shape(OptimizerOptions options, const std::vector<std::int64_t>& shape) {
  const bool matrix = shape.size() >= 2 && std::find(shape.begin(), shape.end(), 0) == shape.end();
  if (options.kind == OptimizerKind::muon && !matrix) {
    options.weight_decay = with_defaults(options).weight_decay;
    options.kind = OptimizerKind::adamw;
    options.epsilon.reset();
  }
  return with_defaults(options);
}

bool is_normalisation(std::string_view op_type) {
  return op_type.ends_with("Normalization");
}

} // namespace

OptimizerOptions with_defaults(OptimizerOptions options) {
  const auto* found = std::find_if(std::begin(kDefaults), std::end(kDefaults),
                                   [&](const Defaults& d) { return d.kind == options.kind; });
  internal_check(found != std::end(kDefaults), "optimiser without defaults");
  const auto fill = [](auto& field, auto value) {
    if (!field)
      field = value;
  };
  fill(options.learning_rate, found->learning_rate);
  fill(options.momentum, found->momentum);
  fill(options.beta1, found->beta1);
  fill(options.beta2, found->beta2);
  fill(options.epsilon, found->epsilon);
  fill(options.weight_decay, found->weight_decay);
  fill(options.nesterov, found->nesterov);
  return options;
}

std::vector<bool> norms_and_biases(const Graph& graph) {
  std::vector<bool> taken(graph.tensors().size(), false);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    const std::vector<std::int64_t>& shape = tensor.shape;
    // [C, 1, 1]: the scale of a group normalisation as it is exported
    const bool per_channel = shape.size() == 3 && shape[1] == 1 && shape[2] == 1;
    taken[i] = tensor.kind == TensorKind::parameter && (shape.size() <= 1 || per_channel);
  }
  for (const Operator& op : graph.operators()) {
    if (!is_normalisation(op.op_type))
      continue;
    for (std::size_t i = 1; i < op.inputs.size(); ++i) {
      if (op.inputs[i])
        taken[op.inputs[i]->index()] = true;
    }
  }
  return taken;
}

UpdateEmitter::UpdateEmitter(StepBuilder& builder, const TrainingOptions& options,
                             TrainingGraph& step)
    : builder_(&builder), options_(&options), step_(&step),
      norms_and_biases_(norms_and_biases(builder.graph())) {
  resolved_.push_back(options.optimizer);
  for (const ParameterGroup& group : options.groups) {
    resolved_.push_back(group.optimizer);
    matched_.emplace_back(group.match.size(), false);
  }
  static_cast<void>(learning_rate(with_defaults(options.optimizer)));
}

std::size_t UpdateEmitter::group_of(TensorId weight) {
  const std::string& name = builder_->graph().tensor(weight).name;
  for (std::size_t g = 0; g < options_->groups.size(); ++g) {
    const ParameterGroup& group = options_->groups[g];
    bool taken = group.norms_and_biases && norms_and_biases_[weight.index()];
    for (std::size_t p = 0; p < group.match.size(); ++p) {
      if (!glob_match(group.match[p], name))
        continue;
      matched_[g][p] = true;
      taken = true;
    }
    if (taken)
      return 1 + g;
  }
  return 0;
}

void UpdateEmitter::check_groups() const {
  ProblemList problems;
  for (std::size_t g = 0; g < matched_.size(); ++g) {
    for (std::size_t p = 0; p < matched_[g].size(); ++p) {
      if (matched_[g][p])
        continue;
      problems.add({builder_->graph().origin, 0, 0, ""},
                   fmt::format("no trained parameter is taken by the pattern '{}' of optimiser "
                               "group {}",
                               options_->groups[g].match[p], g + 1));
    }
  }
  problems.throw_if_any();
}

/// One input for every rate among the groups: a schedule then sets few numbers, not one for each
/// parameter.
TensorId UpdateEmitter::learning_rate(const OptimizerOptions& options) {
  const double value = *options.learning_rate;
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
  if (options_->fused_update)
    builder_->add_operator(std::move(op));
  else
    emit_unfused(*builder_, uniform_, std::move(op));
}

void UpdateEmitter::add(TensorId weight, TensorId gradient) {
  const OptimizerOptions options =
      for_shape(resolved_[group_of(weight)], builder_->graph().tensor(weight).shape);
  step_->parameters.push_back(ParameterUpdate(*this, options, weight, gradient).run());
}

TensorId update_value(StepBuilder& builder, std::string_view op_type, std::string name,
                      std::vector<std::optional<TensorId>> inputs, std::vector<std::int64_t> shape,
                      ElementType type, Attributes attributes) {
  const TensorId result = builder.add_tensor(name, std::move(shape), type, TensorKind::gradient);
  NewOperator op;
  op.name = fmt::format("{}.{}", name, op_type);
  op.op_type = op_type;
  op.inputs = std::move(inputs);
  op.outputs = {result};
  op.attributes = std::move(attributes);
  op.phase = Phase::update;
  builder.add_operator(std::move(op));
  return result;
}

TensorId global_norm(StepBuilder& builder, const std::vector<TensorId>& gradients) {
  const ElementType type = builder.precision().reduction_type();
  std::vector<std::optional<TensorId>> squares;
  for (const TensorId gradient : gradients) {
    Attributes attributes;
    attributes.set("keepdims", std::int64_t{0});
    squares.emplace_back(update_value(builder, "ReduceSumSquare",
                                      builder.graph().tensor(gradient).name + ".squares",
                                      {gradient}, {}, type, std::move(attributes)));
  }
  TensorId total = *squares.front();
  if (squares.size() > 1)
    total = update_value(builder, "Sum", "gradient_squares", std::move(squares), {}, type);
  return update_value(builder, "Sqrt", "gradient_norm", {total}, {}, type);
}

} // namespace monet
