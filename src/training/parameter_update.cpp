#include "training/parameter_update.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"
#include "monet/workload/update_formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace monet {

ParameterUpdate::ParameterUpdate(UpdateEmitter& owner, const OptimizerOptions& options,
                                 TensorId weight, TensorId gradient)
    : owner_(owner), options_(options), weight_(weight), gradient_(gradient),
      name_(graph().tensor(weight).name),
      shape_(graph().tensor(weight).shape), record_{weight, gradient, {}, {}} {
  const auto& type = owner.builder_->precision().master_weights;
  if (!type)
    return;
  master_ =
      owner.builder_->add_tensor(name_ + ".master", shape_, *type, TensorKind::optimizer_state);
  owner.step_->initial.push_back({*master_, 0.0, weight});
}

ParameterRecord ParameterUpdate::run() {
  const OptimizerOptions& o = options_;
  switch (o.kind) {
  case OptimizerKind::sgd:
  case OptimizerKind::momentum:
    if (o.momentum == 0.0)
      one_operator("SgdUpdate", {}, false);
    else
      one_operator("MomentumUpdate", {"momentum"}, o.dampening != 0.0);
    break;
  case OptimizerKind::adam:
    one_operator("AdamUpdate", {"first_moment", "second_moment"}, true);
    break;
  case OptimizerKind::adamw:
    one_operator("AdamWUpdate", {"first_moment", "second_moment"}, true);
    break;
  case OptimizerKind::rmsprop: {
    std::vector<std::string_view> states{"second_moment"};
    if (o.centered)
      states.emplace_back("mean");
    if (o.momentum > 0.0)
      states.emplace_back("momentum");
    one_operator("RmspropUpdate", states, false);
    break;
  }
  case OptimizerKind::adagrad:
    one_operator("AdagradUpdate", {"sum"}, o.learning_rate_decay != 0.0);
    if (o.initial_accumulator != 0.0)
      owner_.step_->initial.push_back({record_.states.front(), o.initial_accumulator, {}});
    break;
  case OptimizerKind::lion:
    one_operator("LionUpdate", {"momentum"}, false);
    break;
  case OptimizerKind::lamb:
    lamb();
    break;
  case OptimizerKind::adafactor:
    adafactor();
    break;
  case OptimizerKind::muon:
    muon();
    break;
  }
  if (master_)
    record_.states.push_back(*master_);
  return record_;
}

NewOperator ParameterUpdate::named(std::string_view op_type) const {
  NewOperator op;
  op.name = fmt::format("{}.{}", name_, op_type);
  op.op_type = op_type;
  op.domain = kMonetDomain;
  op.phase = Phase::update;
  return op;
}

TensorId ParameterUpdate::add_state(std::string_view name, std::vector<std::int64_t> shape) {
  const TensorId state =
      owner_.builder_->add_tensor(fmt::format("{}.{}", name_, name), std::move(shape), state_type(),
                                  TensorKind::optimizer_state);
  record_.states.push_back(state);
  return state;
}

TensorId ParameterUpdate::add_temporary(std::string_view name, std::vector<std::int64_t> shape) {
  return owner_.builder_->add_tensor(fmt::format("{}.{}", name_, name), std::move(shape),
                                     state_type(), TensorKind::gradient);
}

TensorId ParameterUpdate::updated(TensorId before, TensorKind kind) {
  const Tensor source = graph().tensor(before);
  const TensorId after =
      owner_.builder_->add_tensor(source.name + ".updated", source.shape, source.type, kind);
  owner_.builder_->graph().tensor(after).alias_of = before;
  return after;
}

void ParameterUpdate::write_weight(NewOperator& op, TensorId gradient,
                                   const std::vector<TensorId>& states) {
  // With a master copy the low-precision weight is only written.
  op.inputs = {master_ ? std::nullopt : std::optional(weight_),
               gradient,
               owner_.learning_rate(options_),
               std::nullopt,
               std::nullopt,
               owner_.skip_};
  // A buffer, not a parameter: it is the weight's own memory, to be counted once.
  record_.updated = updated(weight_, TensorKind::buffer);
  op.outputs = {record_.updated};
  for (const TensorId state : states) {
    op.inputs.emplace_back(state);
    op.outputs.emplace_back(updated(state, TensorKind::optimizer_state));
  }
  op.attributes.set("weight_decay", *options_.weight_decay);
  op.attributes.set("master_weights", std::int64_t{master_ ? 1 : 0});
}

void ParameterUpdate::one_operator(std::string_view op_type,
                                   const std::vector<std::string_view>& names, bool reads_step) {
  NewOperator op = named(op_type);
  std::vector<TensorId> states;
  for (const std::string_view name : names)
    states.push_back(add_state(name, shape_));
  if (master_)
    states.push_back(*master_);
  write_weight(op, gradient_, states);
  if (reads_step)
    op.inputs[kUpdateStep] = owner_.step_number();
  op.inputs[kUpdateGradientScale] = owner_.gradient_scale_;
  const OptimizerOptions& o = options_;
  const auto number = [&](const char* name, double value) { op.attributes.set(name, value); };
  const auto flag = [&](const char* name, bool value) {
    op.attributes.set(name, std::int64_t{value ? 1 : 0});
  };
  if (o.kind == OptimizerKind::rmsprop) {
    number("alpha", o.alpha);
    flag("centered", o.centered);
  }
  if (o.kind == OptimizerKind::adagrad)
    number("learning_rate_decay", o.learning_rate_decay);
  if (op_type == "MomentumUpdate") {
    number("dampening", o.dampening);
    flag("nesterov", *o.nesterov);
  }
  if (op_type == "MomentumUpdate" || op_type == "RmspropUpdate")
    number("momentum", *o.momentum);
  if (op_type == "AdamUpdate" || op_type == "AdamWUpdate" || op_type == "LionUpdate") {
    number("beta1", *o.beta1);
    number("beta2", *o.beta2);
  }
  if (op_type != "SgdUpdate" && op_type != "MomentumUpdate" && op_type != "LionUpdate")
    number("epsilon", *o.epsilon);
  owner_.emit(std::move(op));
}

TensorId ParameterUpdate::reduce(std::string_view op_type, std::string_view name, TensorId of,
                                 std::vector<std::int64_t> axes, bool keep) {
  std::vector<std::int64_t> result;
  const std::vector<std::int64_t> from = graph().tensor(of).shape;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool reduced = axes.empty() || std::find(axes.begin(), axes.end(),
                                                   static_cast<std::int64_t>(i)) != axes.end();
    if (!reduced)
      result.push_back(from[i]);
    else if (keep)
      result.push_back(1);
  }
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{keep ? 1 : 0});
  if (!axes.empty())
    attributes.set("axes", std::move(axes));
  return update_value(*owner_.builder_, op_type, fmt::format("{}.{}", name_, name), {of},
                      std::move(result), state_type(), std::move(attributes));
}

void ParameterUpdate::lamb() {
  const TensorId first = add_state("first_moment", shape_);
  const TensorId second = add_state("second_moment", shape_);
  const TensorId direction = add_temporary("direction", shape_);
  NewOperator op = named("LambDirection");
  op.inputs = {*options_.weight_decay != 0.0 ? std::optional(master_or_weight()) : std::nullopt,
               gradient_,
               std::nullopt,
               owner_.step_number(),
               owner_.gradient_scale_,
               owner_.skip_,
               first,
               second};
  op.outputs = {direction, updated(first, TensorKind::optimizer_state),
                updated(second, TensorKind::optimizer_state)};
  op.attributes.set("weight_decay", *options_.weight_decay);
  op.attributes.set("beta1", *options_.beta1);
  op.attributes.set("beta2", *options_.beta2);
  op.attributes.set("epsilon", *options_.epsilon);
  owner_.emit(std::move(op));

  const TensorId of_weight = reduce("ReduceL2", "norm", master_or_weight(), {}, false);
  const TensorId of_move = reduce("ReduceL2", "direction_norm", direction, {}, false);
  NewOperator apply = named("LambUpdate");
  write_weight(apply, direction, {});
  apply.inputs.emplace_back(of_weight);
  apply.inputs.emplace_back(of_move);
  if (master_) {
    apply.inputs.emplace_back(*master_);
    apply.outputs.emplace_back(updated(*master_, TensorKind::optimizer_state));
  }
  owner_.emit(std::move(apply));
}

// Matrices keep one moment per row and one per column. Of tensors with more axes the last two are
// taken, as published implementations do; the others are batches.
void ParameterUpdate::adafactor() {
  adafactor_apply(shape_.size() >= 2 ? adafactor_matrix_direction() : adafactor_vector_direction());
}

TensorId ParameterUpdate::adafactor_moment(std::string_view name, std::int64_t axis) {
  const TensorId sums =
      reduce("ReduceSumSquare", fmt::format("{}_squares", name), gradient_, {axis}, false);
  const TensorId moment = add_state(name, graph().tensor(sums).shape);
  const TensorId after = updated(moment, TensorKind::optimizer_state);
  NewOperator op = named("AdafactorMoment");
  op.inputs = {std::nullopt,           sums,         std::nullopt, owner_.step_number(),
               owner_.gradient_scale_, owner_.skip_, moment};
  op.outputs = {after};
  op.attributes.set("decay_rate", options_.decay_rate);
  op.attributes.set("epsilon", *options_.epsilon);
  op.attributes.set("count", static_cast<double>(shape_[static_cast<std::size_t>(axis)]));
  owner_.emit(std::move(op));
  return after;
}

TensorId ParameterUpdate::adafactor_matrix_direction() {
  const auto rank = static_cast<std::int64_t>(shape_.size());
  const TensorId rows = adafactor_moment("rows", rank - 1);
  const TensorId columns = adafactor_moment("columns", rank - 2);
  const TensorId mean = reduce("ReduceMean", "rows_mean", rows, {rank - 2}, true);
  StepBuilder& builder = *owner_.builder_;
  std::vector<std::int64_t> of_rows = shape_;
  of_rows.back() = 1;
  std::vector<std::int64_t> of_columns = shape_;
  of_columns[shape_.size() - 2] = 1;
  std::vector<std::int64_t> of_mean = of_columns;
  of_mean.back() = 1;
  NewOperator op = named("AdafactorDirection");
  op.inputs = {std::nullopt,
               gradient_,
               std::nullopt,
               std::nullopt,
               owner_.gradient_scale_,
               owner_.skip_,
               builder.reshape(rows, of_rows, named("Rows")),
               builder.reshape(columns, of_columns, named("Columns")),
               builder.reshape(mean, of_mean, named("Mean"))};
  const TensorId direction = add_temporary("direction", shape_);
  op.outputs = {direction};
  owner_.emit(std::move(op));
  return direction;
}

TensorId ParameterUpdate::adafactor_vector_direction() {
  const TensorId moment = add_state("second_moment", shape_);
  const TensorId direction = add_temporary("direction", shape_);
  NewOperator op = named("AdafactorVector");
  op.inputs = {std::nullopt,           gradient_,    std::nullopt, owner_.step_number(),
               owner_.gradient_scale_, owner_.skip_, moment};
  op.outputs = {direction, updated(moment, TensorKind::optimizer_state)};
  op.attributes.set("decay_rate", options_.decay_rate);
  op.attributes.set("epsilon", *options_.epsilon);
  owner_.emit(std::move(op));
  return direction;
}

void ParameterUpdate::adafactor_apply(TensorId direction) {
  const TensorId squares = reduce("ReduceSumSquare", "direction_squares", direction, {}, false);
  std::optional<TensorId> size;
  if (options_.scale_parameter)
    size = reduce("ReduceSumSquare", "squares", master_or_weight(), {}, false);
  NewOperator op = named("AdafactorUpdate");
  write_weight(op, direction, {});
  if (options_.relative_step)
    op.inputs[kUpdateStep] = owner_.step_number();
  op.inputs.emplace_back(squares);
  if (size)
    op.inputs.emplace_back(*size);
  std::vector<TensorId> states;
  if (*options_.beta1 > 0.0)
    states.push_back(add_state("first_moment", shape_));
  if (master_)
    states.push_back(*master_);
  for (const TensorId state : states) {
    op.inputs.emplace_back(state);
    op.outputs.emplace_back(updated(state, TensorKind::optimizer_state));
  }
  op.attributes.set("count", static_cast<double>(checked_product(shape_)));
  op.attributes.set("clip_threshold", options_.clip_threshold);
  op.attributes.set("epsilon2", options_.epsilon2);
  op.attributes.set("beta1", *options_.beta1);
  op.attributes.set("relative_step", std::int64_t{options_.relative_step ? 1 : 0});
  op.attributes.set("scale_parameter", std::int64_t{options_.scale_parameter ? 1 : 0});
  owner_.emit(std::move(op));
}

TensorId ParameterUpdate::transpose(TensorId matrix) {
  const Tensor source = graph().tensor(matrix);
  const TensorId result = owner_.builder_->add_tensor(
      source.name + ".transposed", {source.shape[1], source.shape[0]}, source.type, source.kind);
  NewOperator op = named("Transpose");
  op.domain = "";
  op.inputs = {matrix};
  op.outputs = {result};
  op.attributes.set("perm", std::vector<std::int64_t>{1, 0});
  owner_.builder_->add_operator(std::move(op));
  return result;
}

TensorId ParameterUpdate::polynomial(std::string_view name, double alpha, TensorId a, double beta,
                                     TensorId b) {
  NewOperator op = named("WeightedSum");
  const TensorId result = add_temporary(name, graph().tensor(a).shape);
  op.inputs = {a, b};
  op.outputs = {result};
  op.attributes.set("alpha", alpha);
  op.attributes.set("beta", beta);
  owner_.emit(std::move(op));
  return result;
}

/// Newton-Schulz iteration towards the nearest matrix with orthogonal rows:
/// X <- a*X + (b*A + c*A*A)*X with A = X*X^T.
TensorId ParameterUpdate::orthogonalise(TensorId x) {
  constexpr double kA = 3.4445;
  constexpr double kB = -4.7750;
  constexpr double kC = 2.0315;
  const std::int64_t rows = graph().tensor(x).shape[0];
  const std::int64_t columns = graph().tensor(x).shape[1];
  StepBuilder& builder = *owner_.builder_;
  const auto product = [&](std::string_view name, TensorId a, TensorId b, std::int64_t n) {
    return update_value(builder, "MatMul", fmt::format("{}.{}", name_, name), {a, b}, {rows, n},
                        state_type());
  };
  for (std::int64_t i = 0; i < options_.newton_schulz_steps; ++i) {
    const TensorId gram = product("gram", x, transpose(x), rows);
    const TensorId square = product("gram_squared", gram, gram, rows);
    const TensorId sum = polynomial("polynomial", kB, gram, kC, square);
    x = polynomial("orthogonal", kA, x, 1.0, product("correction", sum, x, columns));
  }
  return x;
}

void ParameterUpdate::muon() {
  StepBuilder& builder = *owner_.builder_;
  const TensorId buffer = add_state("momentum", shape_);
  const TensorId move = add_temporary("move", shape_);
  NewOperator op = named("MuonMomentum");
  op.inputs = {std::nullopt,           gradient_,    std::nullopt, std::nullopt,
               owner_.gradient_scale_, owner_.skip_, buffer};
  op.outputs = {move, updated(buffer, TensorKind::optimizer_state)};
  op.attributes.set("momentum", *options_.momentum);
  op.attributes.set("nesterov", std::int64_t{*options_.nesterov ? 1 : 0});
  owner_.emit(std::move(op));

  NewOperator normalise = named("MuonNormalise");
  const TensorId norm = reduce("ReduceL2", "move_norm", move, {}, false);
  const TensorId normalised = add_temporary("normalised", shape_);
  normalise.inputs = {std::nullopt, move,         std::nullopt, std::nullopt,
                      std::nullopt, std::nullopt, norm};
  normalise.outputs = {normalised};
  normalise.attributes.set("epsilon", *options_.epsilon);
  owner_.emit(std::move(normalise));

  const std::int64_t rows = shape_[0];
  const std::int64_t columns = checked_product(shape_) / rows;
  TensorId matrix = builder.reshape(normalised, {rows, columns}, named("Matrix"));
  matrix = rows > columns ? transpose(orthogonalise(transpose(matrix))) : orthogonalise(matrix);
  const TensorId direction = builder.reshape(matrix, shape_, named("Direction"));
  NewOperator apply = named("MuonUpdate");
  write_weight(apply, direction, master_ ? std::vector{*master_} : std::vector<TensorId>{});
  apply.attributes.set(
      "scale", std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns))));
  owner_.emit(std::move(apply));
}

} // namespace monet
