// Rules of pooling over windows or all positions, of unpooling, and of local response
// normalisation. Work is one operation per window element; the division of an average is not
// counted. Loops B, C, OY,OX, FY,FX; global pooling B, C, FY,FX.
#include "workload/operators/conv_geometry.hpp"
#include "workload/operators/families.hpp"

namespace monet {

namespace {

constexpr VectorWork kPower{1, 1, 0, 0, 0, 0};
constexpr VectorWork kNormalise{2, 4, 0, 0, 0, 1}; ///< sum of squares, power, sum of gradients

std::int64_t checked_norm(const Graph& graph, const Operator& op) {
  const std::int64_t p = op.attributes.integer("p", 2);
  if (p < 1)
    fail(graph, op, "at least 1 is expected", "attribute 'p'");
  return p;
}

/// Loops over X and the neighbouring channels of each element; reads start `before` channels
/// earlier.
struct NeighbourLoops {
  std::vector<LoopIndex> own;
  std::vector<AxisExpr> read;
};

NeighbourLoops neighbour_loops(const Graph& graph, const Operator& op, LoopNestBuilder& nest,
                               std::span<const std::int64_t> x, bool backward) {
  const std::int64_t size = op.attributes.integer("size", 1);
  if (x.size() < 2)
    fail(graph, op, "a channel axis is needed");
  if (size < 1)
    fail(graph, op, "at least 1 is expected", "attribute 'size'");
  NeighbourLoops loops{nest.loops_over(x), {}};
  loops.read = axes_of(loops.own);
  const std::int64_t before = backward ? size / 2 : (size - 1) / 2;
  loops.read[1] = axis_sum({{loops.own[1], 1}, {nest.loop("F", size), 1}}, -before);
  return loops;
}

} // namespace

LoopNest build_pool(const Graph& graph, const Operator& op) {
  const auto& x = input_shape(graph, op, 0);
  const auto& y = output_shape(graph, op, 0);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, row_of(op).work);
  const WindowAxes axes = window_axes(graph, op, nest, x, y, "input, output");
  nest.outputs(0, {"O", "indices"}, axes.places);
  nest.padded_input(0, "I", axes.elements);
  return nest.finish();
}

LoopNest build_global_pool(const Graph& graph, const Operator& op) {
  const auto& x = input_shape(graph, op, 0);
  if (x.size() < 3)
    fail(graph, op, "a batch, a channel and a spatial axis are needed");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, row_of(op).work);
  std::vector<AxisExpr> in{axis(nest.loop("B", x[0])), axis(nest.loop("C", x[1]))};
  std::vector<AxisExpr> out = in;
  for (std::size_t i = 2; i < x.size(); ++i) {
    in.push_back(axis(nest.loop(spatial_name('F', i - 2, x.size() - 2), x[i])));
    out.push_back(axis_fixed());
  }
  nest.output(0, "O", std::move(out));
  nest.input(0, "I", std::move(in));
  return nest.finish();
}

/// p-norm of a window, or of the whole input.
LoopNest build_lp_pool(const Graph& graph, const Operator& op) {
  checked_norm(graph, op);
  return op.op_type == ops::LpPool ? build_pool(graph, op) : build_global_pool(graph, op);
}

/// (dY, X, Y) -> dX: dY * sign(x) * (|x| / y)^(p - 1) for every element of a window.
LoopNest build_lp_pool_grad(const Graph& graph, const Operator& op) {
  const auto& dy = input_shape(graph, op, 0);
  const auto& x = input_shape(graph, op, 1);
  const VectorWork work{1, 1, 1, checked_norm(graph, op) == 2 ? 1 : 2, 0, 0};
  LoopNestBuilder nest(graph, op, ComputeKind::vector, work);
  const WindowAxes axes = window_axes(graph, op, nest, x, dy, "X, dY");
  nest.output(0, "O", axes.elements, AccessMode::accumulate);
  nest.input(0, "I", axes.places);
  nest.padded_input(1, "X", axes.elements);
  nest.input(2, "Y", axes.places);
  return nest.finish();
}

/// MaxUnpool (X, indices) -> Y: each element goes to its index in the plane of its image and
/// channel; the rest is zero. Its gradient (dY, indices) -> dX reads these positions.
LoopNest build_unpool(const Graph& graph, const Operator& op) {
  const bool picks = op.op_type == ops::MaxUnpoolGrad;
  const auto& small = picks ? output_shape(graph, op, 0) : input_shape(graph, op, 0);
  const auto& large = picks ? input_shape(graph, op, 0) : output_shape(graph, op, 0);
  if (small.size() < 3 || large.size() != small.size() || large[0] != small[0] ||
      large[1] != small[1] || input_shape(graph, op, 1) != small)
    fail(graph, op,
         "images with equally many channels, and an index for every element, are expected");
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  std::vector<AxisExpr> place{axis(nest.loop("B", small[0])), axis(nest.loop("C", small[1]))};
  for (std::size_t i = 2; i < small.size(); ++i)
    place.push_back(axis(nest.loop(spatial_name('O', i - 2, small.size() - 2), small[i])));
  std::vector<AxisExpr> indexed(place.begin(), place.begin() + 2);
  indexed.resize(large.size(), axis_data_dependent());
  nest.output(0, "O", picks ? place : indexed, picks ? AccessMode::write : AccessMode::accumulate);
  nest.input(0, "I", picks ? indexed : place);
  nest.input(1, "indices", place);
  return nest.finish();
}

/// LRN: every output reads `size` neighbouring channels.
LoopNest build_lrn(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kPower);
  const auto loops = neighbour_loops(graph, op, nest, input_shape(graph, op, 0), false);
  nest.output(0, "O", axes_of(loops.own));
  nest.padded_input(0, "I", loops.read);
  return nest.finish();
}

/// LRNGrad (dY, X) -> dX: an element also receives gradients of the channels in whose neighbourhood
/// it is.
LoopNest build_lrn_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kNormalise);
  const auto loops = neighbour_loops(graph, op, nest, input_shape(graph, op, 1), true);
  nest.output(0, "O", axes_of(loops.own));
  nest.padded_input(0, "I", loops.read);
  nest.padded_input(1, "X", loops.read);
  return nest.finish();
}

} // namespace monet
