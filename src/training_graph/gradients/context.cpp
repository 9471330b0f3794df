// GradientContext: the access of gradient rules to operators, gradients and the builder.
#include "training_graph/gradients/differentiate.hpp"
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

namespace monet {

GradientContext::GradientContext(Differentiator& owner, OpId forward)
    : owner_(&owner), forward_(forward) {}

const Operator& GradientContext::op() const {
  return graph().op(forward_);
}
StepBuilder& GradientContext::builder() {
  return *owner_->builder_;
}
const Graph& GradientContext::graph() const {
  return owner_->builder_->graph();
}

bool GradientContext::has_input(std::size_t i) const {
  return i < op().inputs.size() && op().inputs[i].has_value();
}
bool GradientContext::wants(std::size_t input) const {
  return has_input(input) && owner_->wants(*op().inputs[input]);
}
std::optional<TensorId> GradientContext::gradient_of_output(std::size_t output) const {
  if (output >= op().outputs.size() || !op().outputs[output])
    return std::nullopt;
  return owner_->gradient(*op().outputs[output]);
}
ProductOperands GradientContext::product_operands() {
  return backward_operands(builder(), dy(), forward_, wants(0), wants(1));
}
TensorId GradientContext::input(std::size_t i) const {
  internal_check(has_input(i), fmt::format("'{}' lacks input {}", op().name, i));
  return *op().inputs[i];
}
TensorId GradientContext::output(std::size_t i) const {
  internal_check(i < op().outputs.size() && op().outputs[i],
                 fmt::format("'{}' lacks output {}", op().name, i));
  return *op().outputs[i];
}
std::optional<TensorId> GradientContext::optional_input(std::size_t i) const {
  return has_input(i) ? op().inputs[i] : std::nullopt;
}
GradientOf GradientContext::kind_of(std::size_t i) const {
  return owner_->needs_.weight_view[input(i).index()] ? GradientOf::weight : GradientOf::input;
}

void GradientContext::give_to(TensorId tensor, TensorId gradient) {
  owner_->give(tensor, gradient);
}
bool GradientContext::wants_tensor(TensorId tensor) const {
  return owner_->wants(tensor);
}
void GradientContext::give(std::size_t i, TensorId gradient) {
  owner_->give(input(i), gradient);
}

bool GradientContext::takes_rows(std::size_t i) const {
  const std::size_t at = input(i).index();
  return at < owner_->tables_.size() && owner_->tables_[at];
}
void GradientContext::give_rows(std::size_t i, TensorId values, TensorId rows) {
  owner_->row_gradients_[input(i)].push_back({values, rows});
}

NewOperator GradientContext::base(OpType op_type) const {
  return {
      .name = fmt::format("{}.{}", op().name, op_type), .op_type = op_type, .forward_op = forward_};
}

/// `what` has to outlive it: it keeps the type.
NewOperator GradientContext::begin(Emit& what) const {
  NewOperator made = base(what.op_type);
  made.domain = what.op_type.name().find("Grad") != std::string_view::npos ? kMonetDomain : "";
  made.inputs = std::move(what.inputs);
  made.attributes = std::move(what.attributes);
  made.gradient_of = what.gradient_of;
  return made;
}

void GradientContext::emit(Emit what, const Targets& targets) {
  NewOperator made = begin(what);
  for (const auto& target : targets) {
    if (!target) {
      made.outputs.emplace_back();
      continue;
    }
    const Tensor source = graph().tensor(input(*target));
    made.outputs.emplace_back(builder().add_tensor(source.name + ".grad", source.shape,
                                                   builder().gradient_type(input(*target)),
                                                   TensorKind::gradient));
  }
  const std::vector<std::optional<TensorId>> outputs = made.outputs;
  builder().add_operator(std::move(made));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i])
      give(*targets[i], *outputs[i]);
  }
}

GradientContext::Targets GradientContext::wanted(std::initializer_list<std::size_t> inputs) const {
  Targets targets;
  for (const std::size_t i : inputs)
    targets.push_back(wants(i) ? std::optional(i) : std::nullopt);
  while (!targets.empty() && !targets.back())
    targets.pop_back();
  return targets;
}

GradientContext::Targets GradientContext::only(std::size_t input) {
  Targets targets(input + 1);
  targets[input] = input;
  return targets;
}

ElementType GradientContext::value_type() const {
  for (const auto* list : {&op().outputs, &op().inputs}) {
    for (const TensorId id : present(*list)) {
      if (is_floating(graph().tensor(id).type))
        return owner_->builder_->precision().gradient_type(graph().tensor(id).type);
    }
  }
  return owner_->builder_->precision().gradient_type(ElementType::fp32);
}

TensorId GradientContext::emit_value(Emit what, Integers shape) {
  NewOperator made = begin(what);
  const TensorId result = builder().add_tensor(made.name + ".out", std::move(shape), value_type(),
                                               TensorKind::gradient);
  made.outputs = {result};
  builder().add_operator(std::move(made));
  return result;
}

TensorId GradientContext::reduce_to(TensorId gradient, Integers shape) {
  const Integers from = graph().tensor(gradient).shape;
  if (from == shape)
    return gradient;
  internal_check(from.size() >= shape.size(),
                 "an operand has more axes than the result it was broadcast to");
  const std::size_t dropped = from.size() - shape.size();
  Integers axes;
  Integers kept = from;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i >= dropped && shape[i - dropped] == from[i])
      continue;
    axes.push_back(static_cast<std::int64_t>(i));
    kept[i] = 1;
  }
  const bool only_dropped =
      axes.size() == dropped && (dropped == 0 || axes.back() < static_cast<std::int64_t>(dropped));
  const Attributes keep{{"keepdims", std::int64_t{only_dropped ? 0 : 1}}};
  return reshape(
      emit_value({ops::ReduceSum, {gradient, integers(axes)}, keep}, only_dropped ? shape : kept),
      shape);
}

TensorId GradientContext::reshape(TensorId tensor, Integers shape) {
  return builder().reshape(tensor, std::move(shape), base(ops::Reshape));
}
TensorId GradientContext::expand(TensorId tensor, Integers shape) {
  return builder().expand(tensor, std::move(shape), base(ops::Expand));
}
TensorId GradientContext::scalar(double value) {
  return builder().scalar(value, value_type());
}

bool GradientContext::as_pytorch() const {
  return owner_->store_ == StorePolicy::pytorch_eager;
}

} // namespace monet
