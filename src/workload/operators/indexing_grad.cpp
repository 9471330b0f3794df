// Rules of gradients that are added at indices or in overlapping windows. All other elements are
// zero.
#include "workload/operators/conv_geometry.hpp"
#include "workload/operators/families.hpp"

namespace monet {

/// (dY, indices) -> dX: adds rows of dY to the indexed rows of a dense gradient.
LoopNest build_gather_grad(const Graph& graph, const Operator& op) {
  const auto& dy = input_shape(graph, op, 0);
  const auto& indices = input_shape(graph, op, 1);
  const auto& dx = output_shape(graph, op, 0);
  const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", 0), dx.size());
  if (dy.size() + 1 != dx.size() + indices.size())
    fail(graph, op, "dY and indices do not fit the gradient's axes");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, VectorWork{1, 0, 0, 0, 0, 0});
  const std::vector<LoopIndex> loops = nest.loops_over(dy);
  std::vector<AxisExpr> out(dx.size(), axis_data_dependent());
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (i != at)
      out[i] = axis(loops[i < at ? i : i + indices.size() - 1]);
  }
  nest.output(0, "O", std::move(out), AccessMode::accumulate);
  nest.input(0, "I", axes_of(loops));
  nest.input(1, "indices", axes_of(std::span(loops).subspan(at, indices.size())));
  nest.input(2, "rank", {}); // rank's rows of a partitioned table
  return nest.finish();
}

/// (dY, indices) -> dX: adds each element of dY at its index along the axis.
LoopNest build_gather_elements_grad(const Graph& graph, const Operator& op) {
  const auto& dx = output_shape(graph, op, 0);
  const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", 0), dx.size());
  LoopNestBuilder nest(graph, op, ComputeKind::vector, VectorWork{1, 0, 0, 0, 0, 0});
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  if (loops.size() != dx.size())
    fail(graph, op, "dY and the gradient have different axes");
  std::vector<AxisExpr> to = axes_of(loops);
  to[at] = axis_data_dependent();
  nest.output(0, "O", std::move(to), AccessMode::accumulate);
  nest.inputs(0, {"I", "indices"}, axes_of(loops));
  return nest.finish();
}

/// (dY, indices) -> dX: adds slices of dY at positions from rows of the indices.
LoopNest build_gather_nd_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, VectorWork{1, 0, 0, 0, 0, 0});
  nest.loops_over(input_shape(graph, op, 0));
  nest.opaque_output(0, "O", AccessMode::accumulate);
  nest.opaque_input(0, "I");
  nest.opaque_input(1, "indices");
  return nest.finish();
}

/// (dY[, indices]) -> dX: every element of a window compares its position with the index (max), or
/// receives its share (average). No scatter is needed, so any vector lanes suffice.
LoopNest build_pool_grad(const Graph& graph, const Operator& op) {
  const bool is_max = op.op_type == ops::MaxPoolGrad;
  const auto& dy = input_shape(graph, op, 0);
  const auto& dx = output_shape(graph, op, 0);
  const VectorWork work = is_max ? VectorWork{1, 0, 0, 1, 0, 0} : VectorWork{1, 1, 0, 0, 0, 0};
  LoopNestBuilder nest(graph, op, ComputeKind::vector, work);
  const WindowAxes axes = window_axes(graph, op, nest, dx, dy, "dY, the gradient");
  nest.output(0, "O", axes.elements, AccessMode::accumulate);
  nest.input(0, "I", axes.places);
  if (is_max)
    nest.input(1, "indices", axes.places);
  return nest.finish();
}

} // namespace monet
