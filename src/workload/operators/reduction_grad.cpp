// Rules of gradients of reductions. Loops over X, the second input; dY (and Y) have size 1 on
// reduced axes.
#include "workload/operators/families.hpp"

namespace monet {

LoopNest build_reduction_grad(const Graph& graph, const Operator& op) {
  const OperatorRow& row = row_of(op);
  const bool coupled = row.passes > 1; // the gradient depends on all elements of a sum
  const auto& whole = input_shape(graph, op, 1);
  const auto& kept = input_shape(graph, op, 0);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, row.work);
  const std::vector<LoopIndex> loops = nest.loops_over(whole);
  for (std::size_t d = 0; coupled && d < loops.size() && kept.size() == whole.size(); ++d) {
    if (kept[d] != whole[d])
      nest.couple(loops[d]);
  }
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "I", nest.broadcast(kept, loops));
  nest.input(1, "W", axes_of(loops), row.passes);
  nest.inputs_over(loops, 2, {"I2"});
  return nest.finish();
}

} // namespace monet
