// Emits the update of one parameter by its optimiser; UpdateEmitter calls it.
#include "base/shared/checked.hpp"
#include "training_graph/update/optimizer.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/update_formula.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace monet {

/// One parameter's update while it is written: its tensors, and the operators made of them.
class ParameterUpdate {
public:
  ParameterUpdate(UpdateEmitter& owner, TensorId weight, TensorId gradient,
                  std::optional<TensorId> rows)
      : owner_(owner), weight_(weight), gradient_(gradient), name_(graph().tensor(weight).name),
        shape_(graph().tensor(weight).shape), gradient_scale_(owner.gradient_scale_),
        clip_value_(owner.options_->clip_value.value_or(0.0)), record_{weight, gradient, {},
                                                                       {},     rows,     {}} {
    const auto& type = owner.builder_->precision().master_weights;
    if (!type)
      return;
    master_ =
        owner.builder_->add_tensor(name_ + ".master", shape_, *type, TensorKind::optimizer_state);
    owner.step_->initial.push_back({*master_, 0.0, weight});
  }

  /// Emits everything and returns what was made.
  ParameterRecord run(const Optimizer& optimizer) {
    const auto update = [&](const auto& o) {
      if (record_.rows)
        check_sparse(o);
      learning_rate_ = o.learning_rate;
      if constexpr (requires { o.weight_decay; })
        weight_decay_ = o.weight_decay;
      emit(o);
    };
    std::visit(update, optimizer);
    if (master_)
      record_.states.push_back(*master_);
    record_.master = master_;
    if (owner_.options_->average_decay)
      emit_average(*owner_.options_->average_decay);
    return record_;
  }

private:
  /// Tensor that holds the weight in full precision: the master copy if there is one.
  TensorId master_or_weight() const { return master_.value_or(weight_); }
  StepBuilder& builder() const { return *owner_.builder_; }
  const Graph& graph() const { return builder().graph(); }
  ElementType state_type() const {
    return builder().precision().state_type(graph().tensor(weight_).type);
  }

  /// Throws InputError for the parameter. `hint`: a remedy.
  [[noreturn]] void refuse(std::string_view what, std::string_view hint) const {
    throw InputError({graph().origin, 0, 0, fmt::format("parameter '{}'", name_)}, what, hint);
  }

  /// Rejects sparse gradients where PyTorch does, and with momentum.
  template <class O>
  void check_sparse(const O& o) const {
    constexpr std::string_view kHint = "sgd without momentum, sparse_adam and adagrad can: use one "
                                       "of them in a group, or a dense gradient";
    if constexpr (std::is_same_v<O, Adam> || std::is_same_v<O, AdamW>)
      refuse("adam does not support sparse gradients", "consider sparse_adam");
    else if constexpr (!std::is_same_v<O, Sgd> && !std::is_same_v<O, Adagrad> &&
                       !std::is_same_v<O, SparseAdam>)
      refuse("the optimiser does not support sparse gradients", kHint);
    if constexpr (std::is_same_v<O, Sgd>) {
      if (o.momentum != 0.0)
        refuse("momentum moves rows that have no gradient, but the gradient is sparse", kHint);
    }
    if constexpr (requires { o.weight_decay; }) {
      if (o.weight_decay != 0.0)
        refuse("weight decay shrinks rows that have no gradient, but the gradient is sparse",
               "set weight_decay: 0 in a separate group, or use a dense gradient");
    }
    if (clip_value_ > 0.0)
      refuse("sparse gradients are not clipped by value", "clip_global_norm clips them, too");
  }

  void emit(const Sgd& o) {
    if (record_.rows)
      return one_operator(ops::SparseSgdUpdate, {}, false);
    if (o.momentum == 0.0)
      return one_operator(ops::SgdUpdate, {}, false);
    one_operator(ops::MomentumUpdate, {"momentum"}, o.dampening != 0.0,
                 {{"momentum", o.momentum},
                  {"dampening", o.dampening},
                  {"nesterov", std::int64_t{o.nesterov}}});
  }

  void emit(const Adam& o) { emit_adam(ops::AdamUpdate, o); }
  void emit(const AdamW& o) { emit_adam(ops::AdamWUpdate, o); }

  void emit_adam(OpType op_type, const auto& o) {
    std::vector<std::string_view> states{"first_moment", "second_moment"};
    if (o.amsgrad)
      states.emplace_back("largest_second_moment");
    one_operator(op_type, states, true,
                 {{"beta1", o.beta1},
                  {"beta2", o.beta2},
                  {"epsilon", o.epsilon},
                  {"amsgrad", std::int64_t{o.amsgrad}}});
  }

  void emit(const SparseAdam& o) {
    if (!record_.rows)
      refuse("sparse_adam updates the rows that a step has read, but the gradient is dense",
             "train it with adam in a separate group, or name it in 'sparse_gradients'");
    one_operator(ops::SparseAdamUpdate, {"first_moment", "second_moment"}, true,
                 {{"beta1", o.beta1}, {"beta2", o.beta2}, {"epsilon", o.epsilon}});
  }

  void emit(const Rmsprop& o) {
    std::vector<std::string_view> states{"second_moment"};
    if (o.centered)
      states.emplace_back("mean");
    if (o.momentum > 0.0)
      states.emplace_back("momentum");
    one_operator(ops::RmspropUpdate, states, false,
                 {{"alpha", o.alpha},
                  {"momentum", o.momentum},
                  {"epsilon", o.epsilon},
                  {"centered", std::int64_t{o.centered}}});
  }

  void emit(const Adagrad& o) {
    one_operator(record_.rows ? ops::SparseAdagradUpdate : ops::AdagradUpdate, {"sum"},
                 o.learning_rate_decay != 0.0,
                 {{"learning_rate_decay", o.learning_rate_decay}, {"epsilon", o.epsilon}});
    if (o.initial_accumulator != 0.0)
      owner_.step_->initial.push_back({record_.states.front(), o.initial_accumulator, {}});
  }

  void emit(const Lion& o) {
    one_operator(ops::LionUpdate, {"momentum"}, false, {{"beta1", o.beta1}, {"beta2", o.beta2}});
  }

  NewOperator named(OpType op_type) const {
    return {.name = fmt::format("{}.{}", name_, op_type),
            .op_type = op_type,
            .domain = kMonetDomain,
            .phase = Phase::update};
  }

  TensorId add_state(std::string_view name, Integers shape) {
    const TensorId state = builder().add_tensor(fmt::format("{}.{}", name_, name), std::move(shape),
                                                state_type(), TensorKind::optimizer_state);
    record_.states.push_back(state);
    return state;
  }

  TensorId add_temporary(std::string_view name, Integers shape) {
    return builder().add_tensor(fmt::format("{}.{}", name_, name), std::move(shape), state_type(),
                                TensorKind::gradient);
  }

  /// The tensor after the update, in the same memory.
  TensorId updated(TensorId before, TensorKind kind = TensorKind::optimizer_state) {
    const Tensor source = graph().tensor(before);
    const TensorId after =
        builder().add_tensor(source.name + ".updated", source.shape, source.type, kind);
    builder().graph().tensor(after).alias_of = before;
    return after;
  }

  /// Inputs of an operator that takes the gradient, or what was made of it, and no weight.
  std::vector<std::optional<TensorId>> inputs_on(TensorId gradient, std::optional<TensorId> step,
                                                 std::initializer_list<TensorId> more) const {
    std::vector<std::optional<TensorId>> inputs{std::nullopt, gradient,        std::nullopt,
                                                step,         gradient_scale_, owner_.skip_};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return inputs;
  }

  /// Inputs and outputs of an operator that writes the weight; `states` are read and written.
  void write_weight(NewOperator& op, TensorId gradient, const std::vector<TensorId>& states) {
    // With a master copy the low-precision weight is only written.
    op.inputs = {master_ ? std::nullopt : std::optional(weight_),
                 gradient,
                 owner_.learning_rate(learning_rate_),
                 std::nullopt,
                 std::nullopt,
                 owner_.skip_};
    if (record_.rows)
      op.inputs.emplace_back(record_.rows);
    // A buffer, not a parameter: it is the weight's own memory, to be counted once.
    record_.updated = updated(weight_, TensorKind::buffer);
    op.outputs = {record_.updated};
    for (const TensorId state : states)
      write_state(op, state);
    op.attributes.set("weight_decay", weight_decay_);
    op.attributes.set("master_weights", std::int64_t{master_ ? 1 : 0});
  }

  void write_state(NewOperator& op, TensorId state) {
    op.inputs.emplace_back(state);
    const TensorId after = updated(state);
    op.outputs.emplace_back(after);
    if (state == master_)
      updated_master_ = after;
  }

  void one_operator(OpType op_type, const std::vector<std::string_view>& names, bool reads_step,
                    Attributes attributes = {}) {
    NewOperator op = named(op_type);
    op.attributes = std::move(attributes);
    std::vector<TensorId> states;
    for (const std::string_view name : names)
      states.push_back(add_state(name, shape_));
    if (master_)
      states.push_back(*master_);
    write_weight(op, gradient_, states);
    if (reads_step)
      op.inputs[kUpdateStep] = owner_.step_number();
    op.inputs[kUpdateGradientScale] = gradient_scale_;
    clip(op);
    owner_.emit(std::move(op));
  }

  /// The operator clips the gradient that it reads.
  void clip(NewOperator& op) const {
    if (clip_value_ > 0.0)
      op.attributes.set("clip_value", clip_value_);
  }

  /// Clips once, in a separate operator, for updates that read the gradient several times.
  void clip_apart() {
    if (clip_value_ == 0.0)
      return;
    NewOperator op = named(ops::ClippedGradient);
    op.inputs = inputs_on(gradient_, {}, {});
    clip(op);
    gradient_ = add_temporary("clipped_gradient", shape_);
    op.outputs = {gradient_};
    owner_.emit(std::move(op));
    clip_value_ = 0.0;
    gradient_scale_.reset();
  }

  /// Emits the moving average of the updated parameter, in its type.
  void emit_average(double decay) {
    const TensorId of = updated_master_.value_or(record_.updated);
    const TensorId state = builder().add_tensor(name_ + ".average", shape_, graph().tensor(of).type,
                                                TensorKind::optimizer_state);
    owner_.step_->initial.push_back({state, 0.0, weight_});
    NewOperator op = named(ops::AverageUpdate);
    op.inputs = {of,           std::nullopt, std::nullopt, owner_.step_number(),
                 std::nullopt, owner_.skip_, state};
    op.outputs = {updated(state)};
    op.attributes.set("decay", decay);
    owner_.emit(std::move(op));
    record_.states.push_back(state);
    record_.average = state;
  }

  /// Scalar or smaller: a reduction of a tensor.
  TensorId reduce(OpType op_type, std::string_view name, TensorId of, Integers axes, bool keep) {
    Integers result;
    const Integers from = graph().tensor(of).shape;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const bool reduced =
          axes.empty() || std::ranges::count(axes, static_cast<std::int64_t>(i)) > 0;
      if (!reduced)
        result.push_back(from[i]);
      else if (keep)
        result.push_back(1);
    }
    Attributes attributes;
    attributes.set("keepdims", std::int64_t{keep ? 1 : 0});
    if (!axes.empty())
      attributes.set("axes", std::move(axes));
    return update_value(builder(),
                        {.name = fmt::format("{}.{}", name_, name),
                         .op_type = op_type,
                         .inputs = {of},
                         .attributes = std::move(attributes)},
                        std::move(result), state_type());
  }

  void emit(const Lamb& o) {
    const TensorId first = add_state("first_moment", shape_);
    const TensorId second = add_state("second_moment", shape_);
    const TensorId direction = add_temporary("direction", shape_);
    NewOperator op = named(ops::LambDirection);
    op.inputs = inputs_on(gradient_, owner_.step_number(), {first, second});
    if (o.weight_decay != 0.0)
      op.inputs.front() = master_or_weight();
    op.outputs = {direction, updated(first), updated(second)};
    op.attributes = {{"weight_decay", o.weight_decay},
                     {"beta1", o.beta1},
                     {"beta2", o.beta2},
                     {"epsilon", o.epsilon}};
    clip(op);
    owner_.emit(std::move(op));

    const TensorId of_weight = reduce(ops::ReduceL2, "norm", master_or_weight(), {}, false);
    const TensorId of_move = reduce(ops::ReduceL2, "direction_norm", direction, {}, false);
    NewOperator apply = named(ops::LambUpdate);
    write_weight(apply, direction, {});
    apply.inputs.emplace_back(of_weight);
    apply.inputs.emplace_back(of_move);
    if (master_)
      write_state(apply, *master_);
    owner_.emit(std::move(apply));
  }

  TensorId adafactor_moment(const Adafactor& o, std::string_view name, std::int64_t axis) {
    const TensorId sums =
        reduce(ops::ReduceSumSquare, fmt::format("{}_squares", name), gradient_, {axis}, false);
    const TensorId moment = add_state(name, graph().tensor(sums).shape);
    const TensorId after = updated(moment);
    NewOperator op = named(ops::AdafactorMoment);
    op.inputs = inputs_on(sums, owner_.step_number(), {moment});
    op.outputs = {after};
    op.attributes = {{"decay_rate", o.decay_rate},
                     {"epsilon", o.epsilon},
                     {"count", static_cast<double>(shape_[static_cast<std::size_t>(axis)])}};
    owner_.emit(std::move(op));
    return after;
  }

  TensorId adafactor_matrix_direction(const Adafactor& o) {
    const auto rank = static_cast<std::int64_t>(shape_.size());
    const TensorId rows = adafactor_moment(o, "rows", rank - 1);
    const TensorId columns = adafactor_moment(o, "columns", rank - 2);
    const TensorId mean = reduce(ops::ReduceMean, "rows_mean", rows, {rank - 2}, true);
    Integers of_rows = shape_;
    of_rows.back() = 1;
    Integers of_columns = shape_;
    of_columns[shape_.size() - 2] = 1;
    Integers of_mean = of_columns;
    of_mean.back() = 1;
    NewOperator op = named(ops::AdafactorDirection);
    op.inputs = inputs_on(gradient_, {},
                          {builder().reshape(rows, of_rows, named("Rows")),
                           builder().reshape(columns, of_columns, named("Columns")),
                           builder().reshape(mean, of_mean, named(ops::Mean))});
    const TensorId direction = add_temporary("direction", shape_);
    op.outputs = {direction};
    owner_.emit(std::move(op));
    return direction;
  }

  TensorId adafactor_vector_direction(const Adafactor& o) {
    const TensorId moment = add_state("second_moment", shape_);
    const TensorId direction = add_temporary("direction", shape_);
    NewOperator op = named(ops::AdafactorVector);
    op.inputs = inputs_on(gradient_, owner_.step_number(), {moment});
    op.outputs = {direction, updated(moment)};
    op.attributes = {{"decay_rate", o.decay_rate}, {"epsilon", o.epsilon}};
    owner_.emit(std::move(op));
    return direction;
  }

  /// Matrices keep one moment per row and one per column. Of tensors with more axes the last two
  /// are taken, as published implementations do; the others are batches.
  void emit(const Adafactor& o) {
    clip_apart();
    const TensorId direction =
        shape_.size() >= 2 ? adafactor_matrix_direction(o) : adafactor_vector_direction(o);
    const TensorId squares =
        reduce(ops::ReduceSumSquare, "direction_squares", direction, {}, false);
    std::optional<TensorId> size;
    if (o.scale_parameter)
      size = reduce(ops::ReduceSumSquare, "squares", master_or_weight(), {}, false);
    NewOperator op = named(ops::AdafactorUpdate);
    op.attributes = {{"count", static_cast<double>(checked_product(shape_))},
                     {"clip_threshold", o.clip_threshold},
                     {"epsilon2", o.epsilon2},
                     {"beta1", o.beta1},
                     {"relative_step", std::int64_t{o.relative_step}},
                     {"scale_parameter", std::int64_t{o.scale_parameter}}};
    write_weight(op, direction, {});
    if (o.relative_step)
      op.inputs[kUpdateStep] = owner_.step_number();
    op.inputs.emplace_back(squares);
    if (size)
      op.inputs.emplace_back(*size);
    if (o.beta1 > 0.0)
      write_state(op, add_state("first_moment", shape_));
    if (master_)
      write_state(op, *master_);
    owner_.emit(std::move(op));
  }

  void emit(const Muon& o) {
    const TensorId buffer = add_state("momentum", shape_);
    const TensorId move = add_temporary("move", shape_);
    NewOperator op = named(ops::MuonMomentum);
    op.inputs = inputs_on(gradient_, {}, {buffer});
    op.outputs = {move, updated(buffer)};
    op.attributes = {{"momentum", o.momentum}, {"nesterov", std::int64_t{o.nesterov}}};
    clip(op);
    owner_.emit(std::move(op));

    NewOperator normalise = named(ops::MuonNormalise);
    const TensorId norm = reduce(ops::ReduceL2, "move_norm", move, {}, false);
    const TensorId normalised = add_temporary("normalised", shape_);
    normalise.inputs = {{}, move, {}, {}, {}, {}, norm};
    normalise.outputs = {normalised};
    normalise.attributes.set("epsilon", o.epsilon);
    owner_.emit(std::move(normalise));

    const std::int64_t rows = shape_[0];
    const std::int64_t columns = checked_product(shape_) / rows;
    const TensorId matrix = builder().reshape(normalised, {rows, columns}, named("Matrix"));
    const TensorId orthogonal =
        orthogonalise(builder(), owner_, matrix, {name_, state_type(), o.newton_schulz_steps});
    const TensorId direction = builder().reshape(orthogonal, shape_, named("Direction"));
    NewOperator apply = named(ops::MuonUpdate);
    write_weight(apply, direction, master_ ? std::vector{*master_} : std::vector<TensorId>{});
    apply.attributes.set("scale", std::sqrt(std::max(1.0, static_cast<double>(rows) /
                                                              static_cast<double>(columns))));
    owner_.emit(std::move(apply));
  }

  UpdateEmitter& owner_;
  double learning_rate_ = 0.0;
  double weight_decay_ = 0.0;
  TensorId weight_;
  TensorId gradient_;
  std::string name_;
  Integers shape_;
  std::optional<TensorId> gradient_scale_;
  double clip_value_ = 0.0; ///< 0: not clipped by value
  std::optional<TensorId> master_;
  std::optional<TensorId> updated_master_;
  ParameterRecord record_;
};

void UpdateEmitter::add(TensorId weight, TensorId gradient, std::optional<TensorId> rows) {
  const Integers& shape = builder_->graph().tensor(weight).shape;
  const bool matrix = shape.size() >= 2 && std::ranges::find(shape, 0) == shape.end();
  const Optimizer& optimizer = optimizer_of(weight);
  const auto* muon = std::get_if<Muon>(&optimizer);
  step_->parameters.push_back(ParameterUpdate(*this, weight, gradient, rows)
                                  .run(muon && !matrix ? muon->others : optimizer));
}

} // namespace monet
