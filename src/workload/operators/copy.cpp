// ai.monet.Copy: a view that could not be folded, as data movement. Attribute `view` names the
// view.
#include "workload/operators/families.hpp"
#include "workload/operators/nest_builder.hpp"
#include "workload/operators/view_map.hpp"

namespace monet {

namespace {

LoopNest build_copy(const Graph& graph, const Operator& op) {
  const auto& in = input_shape(graph, op, 0);
  const auto& out = output_shape(graph, op, 0);
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  std::vector<AxisExpr> place;
  for (std::size_t i = 0; i < out.size(); ++i) {
    place.push_back(axis(nest.loop("A" + std::to_string(i), out[i])));
  }
  nest.output(0, "O", place);
  nest.opaque_input(0, "I");
  LoopNest made = nest.finish();
  LoopNest trial = made;
  trial.operands[1].axes = std::move(place);
  trial.operands[1].opaque = false;
  const auto step = view_step(graph, op, 0);
  if (step && compose_view(trial, 1, *step, in, out))
    return trial;
  return made;
}

} // namespace

std::vector<OperatorRule> copy_rules() {
  return {{kMonetDomain, "Copy", build_copy}};
}

} // namespace monet
