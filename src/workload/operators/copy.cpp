// Rules of data movement. ai.monet.Copy is a view that could not be folded, named by attribute
// `view`. ai.monet.Offload and ai.monet.Fetch move data to the host's memory and back.
#include "workload/operators/families.hpp"
#include "workload/operators/view_map.hpp"

namespace monet {

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

LoopNest build_move(const Graph& graph, const Operator& op) {
  if (input_shape(graph, op, 0) != output_shape(graph, op, 0))
    fail(graph, op, "moves a tensor into one of another shape");
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

bool is_offload(const Operator& op) {
  return op.domain == kMonetDomain && op.op_type == ops::Offload;
}

bool is_fetch(const Operator& op) {
  return op.domain == kMonetDomain && op.op_type == ops::Fetch;
}

bool lies_in_host(const Graph& graph, TensorId tensor) {
  const auto producer = graph.tensor(tensor).producer;
  return producer && is_offload(graph.op(*producer));
}

} // namespace monet
