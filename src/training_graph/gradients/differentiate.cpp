// Finds the needed gradients and emits the backward operators with the rules.
#include "training_graph/gradients/differentiate.hpp"

#include "base/shared/text.hpp"
#include "training_graph/gradients/gradient_path.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

/// One of the tensors that are there has the property.
template <class Property>
bool any_has(std::span<const std::optional<TensorId>> ids, const Property& property) {
  return std::ranges::any_of(ids, [&](const auto& id) { return id && property(*id); });
}

/// The inputs that a gradient may pass to.
std::span<const std::optional<TensorId>> differentiable_inputs(const Operator& op,
                                                               const GradientRule* rule) {
  const std::span<const std::optional<TensorId>> all = op.inputs;
  return rule ? all.first(std::min(all.size(), rule->differentiable_inputs)) : all;
}

/// True if the results are still a trained weight: a view, a cast or one slice of it, or several
/// weights joined.
bool passes_weight(const Graph& graph, const Operator& op, const GradientNeeds& needs) {
  const auto is_weight = [&](const auto& id) {
    return id && (needs.weight_view[id->index()] ||
                  graph.tensor(storage_root(graph, *id)).kind == TensorKind::parameter);
  };
  const auto is_trained = [&](const auto& id) { return id && needs.weight_view[id->index()]; };
  if (op.op_type == ops::Concat)
    return std::ranges::all_of(op.inputs, is_weight) && std::ranges::any_of(op.inputs, is_trained);
  const bool slice = op.op_type == ops::Gather && op.inputs.size() > 1 && op.inputs[1] &&
                     graph.tensor(*op.inputs[1]).values &&
                     element_count(graph.tensor(*op.inputs[1])) == 1;
  const bool rounds = op.op_type == ops::Cast || op.op_type == ops::FakeQuantize ||
                      op.op_type == ops::Tile || op.op_type == ops::ScaledCast ||
                      op.op_type == ops::BlockCast;
  return (has_view_rule(op) || rounds || slice) && is_trained(op.inputs[0]);
}

void mark_dependence(const Graph& graph, const Operator& op, const std::vector<bool>& detached,
                     GradientNeeds& needs) {
  const GradientRule* rule = find_gradient_rule(op);
  if (rule && !rule->emit)
    return;
  if (!any_has(differentiable_inputs(op, rule),
               [&](TensorId id) { return needs.depends[id.index()]; }))
    return;
  const std::size_t outputs =
      rule ? std::min(op.outputs.size(), rule->differentiable_outputs) : op.outputs.size();
  const bool view = passes_weight(graph, op, needs);
  for (std::size_t i = 0; i < outputs; ++i) {
    if (!op.outputs[i] || !is_floating(graph.tensor(*op.outputs[i]).type) ||
        detached[op.outputs[i]->index()])
      continue;
    needs.depends[op.outputs[i]->index()] = true;
    needs.weight_view[op.outputs[i]->index()] = view;
  }
}

/// Why no gradient can pass the operator; empty = it can.
std::string refusal_of(const Graph& graph, const Operator& op) {
  const GradientRule* rule = find_gradient_rule(op);
  if (!rule) {
    return fmt::format(
        "operator type '{}' of domain '{}' has no gradient rule, but lies between a trained "
        "parameter and the loss",
        op.op_type, op.domain.empty() ? "ai.onnx" : op.domain);
  }
  return rule->refuse ? rule->refuse(graph, op) : std::string();
}

bool is_known(const NetworkOutline& outline, const Operator& op) {
  const auto known = [&](const auto& id) { return !id || outline.known[id->index()]; };
  return std::ranges::all_of(op.inputs, known) && std::ranges::all_of(op.outputs, known);
}

std::string needed_for(const GradientPaths& paths, const Operator& op) {
  return fmt::format("the gradient's path is {}", paths.through(op));
}

std::string join_hints(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : fmt::format("{}; {}", first, second);
}

GradientNeeds mark_needs(const Graph& forward, const std::vector<bool>& trained,
                         const std::vector<TensorId>& outputs, const std::vector<bool>& detached) {
  GradientNeeds needs;
  needs.depends = trained;
  needs.weight_view = trained;
  needs.reaches.assign(forward.tensors().size(), false);
  for (const TensorId output : outputs)
    needs.reaches[output.index()] = true;
  for (const Operator& op : forward.operators())
    mark_dependence(forward, op, detached, needs);
  for (auto op = forward.operators().rbegin(); op != forward.operators().rend(); ++op) {
    const GradientRule* rule = find_gradient_rule(*op);
    if (rule && !rule->emit)
      continue;
    if (!any_has(op->outputs,
                 [&](TensorId id) { return needs.reaches[id.index()] && !detached[id.index()]; }))
      continue;
    for (const TensorId input : present(differentiable_inputs(*op, rule)))
      needs.reaches[input.index()] = true;
  }
  return needs;
}

} // namespace

bool is_differentiated(const GradientNeeds& needs, const Operator& op) {
  return any_has(op.outputs, [&](TensorId id) { return needs.wanted(id); });
}

namespace {

/// Operators that compute in integers: what is trained before them is not trained through them.

bool computes_integers(const Operator& op) {
  return op.domain.empty() &&
         op.op_type.is_one_of({ops::QuantizeLinear, ops::DynamicQuantizeLinear, ops::QLinearConv,
                               ops::QLinearMatMul, ops::ConvInteger, ops::MatMulInteger});
}

/// Tensors from which the outputs are computed, whatever gradients do.
std::vector<bool> leads_to(const Graph& graph, const std::vector<TensorId>& outputs) {
  std::vector<bool> leads(graph.tensors().size(), false);
  for (const TensorId output : outputs)
    leads[output.index()] = true;
  for (auto op = graph.operators().rbegin(); op != graph.operators().rend(); ++op) {
    if (!any_has(op->outputs, [&](TensorId id) { return leads[id.index()]; }))
      continue;
    for (const TensorId input : present(op->inputs))
      leads[input.index()] = true;
  }
  return leads;
}

/// Operators on the way from what is trained to the loss at which gradients end.
std::vector<OpId> dead_ends(const Graph& graph, const GradientNeeds& needs,
                            const std::vector<bool>& leads) {
  std::vector<OpId> found;
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.operators()[i];
    const auto leading = [&](TensorId id) { return leads[id.index()]; };
    const auto depending = [&](TensorId id) { return needs.depends[id.index()]; };
    if (any_has(op.outputs, leading) && any_has(op.inputs, depending) &&
        !any_has(op.outputs, depending))
      found.emplace_back(i);
  }
  return found;
}

std::string why_dead(const Operator& op) {
  return fmt::format("no gradient passes '{}': {}", op.op_type,
                     computes_integers(op)
                         ? "it computes in integers, at inference only"
                         : "its result is an integer, or constant nearly everywhere");
}

} // namespace

void refuse_untrained(const Graph& network, const GradientNeeds& needs,
                      const std::vector<TensorId>& outputs) {
  const std::vector<bool> leads = leads_to(network, outputs);
  const GradientPaths paths(network, needs.depends, leads, outputs);
  ProblemList problems;
  for (const OpId id : dead_ends(network, needs, leads)) {
    const Operator& op = network.op(id);
    problems.add(location_of(network, op), "no trained parameter reaches the loss: " + why_dead(op),
                 needed_for(paths, op));
  }
  for (const Operator& op : network.operators()) { // or no gradient reaches them
    const bool leading = any_has(op.outputs, [&](TensorId id) { return leads[id.index()]; });
    if (problems.empty() && leading && computes_integers(op))
      problems.add(location_of(network, op),
                   "no trained parameter reaches the loss: " + why_dead(op));
  }
  problems.throw_if_any();
  throw InputError({network.origin, 0, 0, ""}, "no trained parameter reaches the loss",
                   "the loss depends on no trained parameter; see 'trainable' and the tensors that "
                   "are treated as buffers");
}

namespace {

/// Before a tensor that is detached, nothing waits for a gradient: PyTorch frees that part at once.
void release_detached(const Graph& graph, const std::vector<bool>& detached, GradientNeeds& needs) {
  if (std::ranges::find(detached, true) == detached.end())
    return;
  std::vector<bool> lives(graph.tensors().size(), false);
  for (const TensorId output : graph.outputs)
    lives[output.index()] = true;
  for (auto op = graph.operators().rbegin(); op != graph.operators().rend(); ++op) {
    const auto waits = [&](TensorId id) { return lives[id.index()] && !detached[id.index()]; };
    if (!any_has(op->outputs, waits))
      continue;
    for (const TensorId input : present(op->inputs))
      lives[input.index()] = true;
  }
  for (const Operator& op : graph.operators()) {
    for (const TensorId id : present(op.outputs))
      needs.depends[id.index()] = needs.depends[id.index()] && lives[id.index()];
  }
}

} // namespace

GradientNeeds find_needs(const Graph& forward, const std::vector<bool>& trained,
                         const std::vector<TensorId>& outputs, const std::vector<bool>& detached) {
  GradientNeeds needs = mark_needs(forward, trained, outputs, detached);
  ProblemList problems;
  const std::vector<bool> leads = leads_to(forward, outputs);
  for (const OpId id : dead_ends(forward, needs, leads)) {
    const Operator& op = forward.op(id);
    if (!computes_integers(op))
      continue; // as in PyTorch: indices, comparisons, steps
    const GradientPaths paths(forward, needs.depends, leads, outputs);
    problems.add(location_of(forward, op), why_dead(op), needed_for(paths, op));
  }
  std::optional<GradientPaths> paths; // made for the first problem
  for (const Operator& op : forward.operators()) {
    if (!is_differentiated(needs, op))
      continue;
    const std::string refusal = refusal_of(forward, op);
    if (refusal.empty())
      continue;
    if (!paths)
      paths.emplace(forward, needs.depends, needs.reaches, outputs);
    const std::string hint =
        find_gradient_rule(op) ? "" : nearest_name_hint(op.op_type, differentiable_operators());
    problems.add(location_of(forward, op), refusal, join_hints(hint, needed_for(*paths, op)));
  }
  problems.throw_if_any();
  release_detached(forward, detached, needs);
  return needs;
}

std::vector<InputProblem> explain_needs(const NetworkOutline& outline,
                                        const std::vector<bool>& trained,
                                        const std::vector<TensorId>& outputs,
                                        const std::vector<bool>& detached) {
  const Graph& graph = outline.graph;
  const GradientNeeds needs = mark_needs(graph, trained, outputs, detached);
  const GradientPaths paths(graph, needs.depends, needs.reaches, outputs);
  std::vector<InputProblem> problems;
  auto unsupported = outline.unsupported.begin();
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.operators()[i];
    const bool differentiated = is_differentiated(needs, op);
    std::string what;
    if (unsupported != outline.unsupported.end() && unsupported->op == OpId(i)) {
      what = (unsupported++)->what;
    } else if (differentiated && (!find_gradient_rule(op) || is_known(outline, op))) {
      what = refusal_of(graph, op); // which looks at shapes
    }
    if (!what.empty())
      problems.push_back({location_of(graph, op), what,
                          differentiated ? needed_for(paths, op) : "no gradient has to pass it"});
  }
  return problems;
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
  const bool of_parameter = source.kind == TensorKind::parameter;
  if (of_parameter && graph.tensor(*slot).name == source.name + ".grad")
    builder_->give_way(*slot); // the whole gradient is called after the parameter
  const TensorId sum =
      builder_->add_tensor(source.name + (of_parameter ? ".grad" : ".grad_sum"), source.shape,
                           builder_->gradient_type(tensor), TensorKind::gradient);
  builder_->add_operator({.name = source.name + ".accumulate",
                          .op_type = ops::Add,
                          .inputs = {*slot, gradient},
                          .outputs = {sum},
                          .forward_op = source.producer});
  slot = sum;
}

void Differentiator::run() {
  for (std::size_t i = forward_operators_; i-- > 0;) {
    const OpId id(i);
    const Operator& op = builder_->graph().op(id);
    if (!any_has(op.outputs, [&](TensorId tensor) { return gradient(tensor).has_value(); }))
      continue;
    const GradientRule* rule = find_gradient_rule(op);
    internal_check(rule && rule->emit,
                   fmt::format("'{}' received a gradient but has no rule", op.name));
    GradientContext context(*this, id);
    rule->emit(context);
  }
}

} // namespace monet
