// The element-wise operators of optimiser updates: one iteration per element, each operand swept
// once, the work of the formula. What they compute is in update_formula.cpp. Also what clipping and
// loss scaling need: a look at whether numbers are finite, and the next scale.
#include "workload/operators/families.hpp"
#include "workload/operators/nest_builder.hpp"

#include "monet/workload/update_formula.hpp"

namespace monet {

namespace {

LoopNest build_update(const Graph& graph, const Operator& op) {
  const UpdateFormula formula = update_formula(graph, op);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, work_of(formula));
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  const std::size_t master = op.attributes.integer("master_weights", 0) != 0 ? 1 : 0;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const bool last = i + 1 == op.outputs.size();
    const std::string role = i == 0                ? "O"
                             : last && master != 0 ? "master"
                                                   : update_role(op, kUpdateFirstState + i - 1);
    nest.output(i, role, nest.broadcast(output_shape(graph, op, i), loops));
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (has_input(op, i))
      nest.input(i, update_role(op, i), nest.broadcast(input_shape(graph, op, i), loops));
  }
  return nest.finish();
}

/// (x) -> 1 where any element is infinite or not a number, else 0: a scalar.
LoopNest build_non_finite(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, {0, 0, 0, 2, 0, 0});
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  nest.output(0, "O", {});
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// (scale, steps since it changed, flag of non-finite gradients) -> (scale, steps): three scalars.
LoopNest build_loss_scale(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, {1, 1, 0, 3, 0, 0});
  nest.outputs(0, {"O", "steps"}, {});
  nest.inputs(0, {"I", "steps", "skip"}, {});
  return nest.finish();
}

} // namespace

std::vector<OperatorRule> update_rules() {
  std::vector<OperatorRule> rules{{kMonetDomain, "NonFinite", build_non_finite},
                                  {kMonetDomain, "LossScaleUpdate", build_loss_scale}};
  for (const std::string_view op_type : formula_operators())
    rules.push_back({kMonetDomain, op_type, build_update});
  return rules;
}

} // namespace monet
