#include "training/differentiate.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/text.hpp"
#include "monet/workload/operators.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace monet {

namespace {

bool is_view(const Operator& op) {
  const OperatorRule* rule = find_rule(op.domain, op.op_type);
  return rule && rule->is_view;
}

void mark_dependence(const Graph& graph, const Operator& op, GradientNeeds& needs) {
  const GradientRule* rule = find_gradient_rule(op);
  if (rule && !rule->emit)
    return;
  const bool depends = std::any_of(op.inputs.begin(), op.inputs.end(), [&](const auto& input) {
    return input && needs.depends[input->index()];
  });
  if (!depends)
    return;
  const std::size_t outputs =
      rule ? std::min(op.outputs.size(), rule->differentiable_outputs) : op.outputs.size();
  const bool view = is_view(op) && op.inputs[0] && needs.weight_view[op.inputs[0]->index()];
  for (std::size_t i = 0; i < outputs; ++i) {
    if (!op.outputs[i] || !is_floating(graph.tensor(*op.outputs[i]).type))
      continue;
    needs.depends[op.outputs[i]->index()] = true;
    needs.weight_view[op.outputs[i]->index()] = view;
  }
}

void check_rule(const Graph& graph, const Operator& op, ProblemList& problems) {
  const GradientRule* rule = find_gradient_rule(op);
  if (!rule) {
    problems.add(
        location_of(graph, op),
        fmt::format(
            "operator type '{}' of domain '{}' has no gradient rule, but lies between a trained "
            "parameter and the loss",
            op.op_type, op.domain.empty() ? "ai.onnx" : op.domain),
        nearest_name_hint(op.op_type, differentiable_operators()));
    return;
  }
  const std::string refusal = rule->refuse ? rule->refuse(graph, op) : std::string();
  if (!refusal.empty())
    problems.add(location_of(graph, op), refusal);
}

} // namespace

bool is_differentiated(const GradientNeeds& needs, const Operator& op) {
  return std::any_of(op.outputs.begin(), op.outputs.end(),
                     [&](const auto& output) { return output && needs.wanted(*output); });
}

GradientNeeds find_needs(const Graph& forward, const std::vector<bool>& trained,
                         const std::vector<TensorId>& outputs) {
  GradientNeeds needs;
  needs.depends = trained;
  needs.weight_view = trained;
  needs.reaches.assign(forward.tensors().size(), false);
  for (const TensorId output : outputs)
    needs.reaches[output.index()] = true;
  for (const Operator& op : forward.operators())
    mark_dependence(forward, op, needs);
  ProblemList problems;
  for (auto op = forward.operators().rbegin(); op != forward.operators().rend(); ++op) {
    const GradientRule* rule = find_gradient_rule(*op);
    if (rule && !rule->emit)
      continue;
    const bool reaches =
        std::any_of(op->outputs.begin(), op->outputs.end(),
                    [&](const auto& output) { return output && needs.reaches[output->index()]; });
    if (!reaches)
      continue;
    for (const auto& input : op->inputs) {
      if (input)
        needs.reaches[input->index()] = true;
    }
  }
  for (const Operator& op : forward.operators()) {
    if (is_differentiated(needs, op))
      check_rule(forward, op, problems);
  }
  problems.throw_if_any();
  return needs;
}

Differentiator::Differentiator(StepBuilder& builder, GradientNeeds needs,
                               std::size_t forward_operators, StorePolicy store)
    : builder_(&builder), needs_(std::move(needs)), forward_operators_(forward_operators),
      store_(store) {
  gradient_.resize(needs_.depends.size());
}

std::optional<TensorId> Differentiator::gradient(TensorId tensor) const {
  return tensor.index() < gradient_.size() ? gradient_[tensor.index()] : std::nullopt;
}

void Differentiator::give(TensorId tensor, TensorId gradient) {
  if (!wants(tensor))
    return;
  auto& slot = gradient_[tensor.index()];
  const Graph& graph = builder_->graph();
  internal_check(graph.tensor(tensor).shape == graph.tensor(gradient).shape,
                 fmt::format("gradient of '{}' has another shape", graph.tensor(tensor).name));
  if (!slot) {
    slot = gradient;
    return;
  }
  const Tensor source = graph.tensor(tensor);
  const TensorId sum = builder_->add_tensor(source.name + ".grad_sum", source.shape,
                                            builder_->precision().gradients, TensorKind::gradient);
  NewOperator add;
  add.name = source.name + ".accumulate";
  add.op_type = "Add";
  add.inputs = {*slot, gradient};
  add.outputs = {sum};
  add.forward_op = source.producer;
  builder_->add_operator(std::move(add));
  slot = sum;
}

void Differentiator::run() {
  for (std::size_t i = forward_operators_; i-- > 0;) {
    const OpId id(i);
    const Operator& op = builder_->graph().op(id);
    const bool has_gradient =
        std::any_of(op.outputs.begin(), op.outputs.end(),
                    [&](const auto& output) { return output && gradient(*output); });
    if (!has_gradient)
      continue;
    const GradientRule* rule = find_gradient_rule(op);
    internal_check(rule && rule->emit,
                   fmt::format("'{}' received a gradient but has no rule", op.name));
    GradientContext context(*this, id);
    rule->emit(context);
  }
}

} // namespace monet
