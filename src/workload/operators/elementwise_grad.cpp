// Gradients of element-wise operators, with loops over dY, the first input. An output with
// fewer or broadcast axes is a sum over the missing ones.
#include "workload/operators/families.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

VectorWork plus(const VectorWork& a, const VectorWork& b) {
  return {
      a.add + b.add,         a.multiply + b.multiply,       a.divide + b.divide,
      a.compare + b.compare, a.square_root + b.square_root, a.transcendental + b.transcendental};
}

/// Work of variants that attributes select.
VectorWork variant(const Operator& op, VectorWork work) {
  if (op.op_type == ops::GeluGrad && op.attributes.text("approximate", "none") == "tanh")
    return {5, 11, 0, 0, 0, 1}; // one tanh, the derivative of its argument
  const bool exponential =
      op.op_type == ops::EluGrad || op.op_type == ops::CeluGrad || op.op_type == ops::SeluGrad;
  if (exponential && op.attributes.text("reads", "") == "input")
    work.transcendental += 1; // recomputes the exponential
  return work;
}

VectorWork elementwise_grad_work(const Graph& graph, const Operator& op) {
  const OperatorRow& row = row_of(op);
  VectorWork work;
  if (has_output(op, 0))
    work = plus(work, variant(op, row.work));
  for (std::size_t i = 1; i < op.outputs.size(); ++i) {
    if (has_output(op, i))
      work = plus(work, row.further_work);
  }
  if (!has_output(op, 0) && op.op_type == ops::DivGrad)
    work.divide += 1; // dy/b is not shared
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (has_output(op, i) && output_shape(graph, op, i) != input_shape(graph, op, 0))
      work.add += 1; // summed over the broadcast axes
  }
  return work;
}

} // namespace

LoopNest build_elementwise_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, elementwise_grad_work(graph, op));
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (has_output(op, i))
      nest.output(i, i == 0 ? "O" : fmt::format("O{}", i + 1),
                  nest.broadcast(output_shape(graph, op, i), loops));
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (has_input(op, i))
      nest.input(i, input_role(i), nest.broadcast(input_shape(graph, op, i), loops));
  }
  return nest.finish();
}

} // namespace monet
