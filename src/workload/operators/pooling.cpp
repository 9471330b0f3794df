// Pooling over windows or over all positions, and local response normalisation. One operation per
// window element; the division of an average is once per output and not counted. Loops B, C, OY,OX,
// FY,FX; global pooling B, C, FY,FX.
#include "workload/operators/conv_geometry.hpp"
#include "workload/operators/families.hpp"
#include "workload/operators/nest_builder.hpp"

namespace monet {

namespace {

constexpr VectorWork kMaximum{0, 0, 0, 1, 0, 0};
constexpr VectorWork kAverage{1, 0, 0, 0, 0, 0};
constexpr VectorWork kPower{1, 1, 0, 0, 0, 0};
constexpr VectorWork kNormalise{2, 4, 0, 0, 0, 1}; ///< the sum of squares again, its power, the sum

template <const VectorWork& kWork>
LoopNest build_pool(const Graph& graph, const Operator& op) {
  const auto& x = input_shape(graph, op, 0);
  const auto& y = output_shape(graph, op, 0);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kWork);
  const WindowAxes axes = window_axes(graph, op, nest, x, y, "input, output");
  nest.outputs(0, {"O", "indices"}, axes.places);
  nest.padded_input(0, "I", axes.elements);
  return nest.finish();
}

template <const VectorWork& kWork>
LoopNest build_global_pool(const Graph& graph, const Operator& op) {
  const auto& x = input_shape(graph, op, 0);
  if (x.size() < 3)
    fail(graph, op, "a batch, a channel and a spatial axis are needed");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kWork);
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

/// Loops over X, the neighbouring channels of each element, and what they read from `before`
/// channels ahead.
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

/// Every output reads `size` neighbouring channels.
LoopNest build_lrn(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kPower);
  const auto loops = neighbour_loops(graph, op, nest, input_shape(graph, op, 0), false);
  nest.output(0, "O", axes_of(loops.own));
  nest.padded_input(0, "I", loops.read);
  return nest.finish();
}

/// (dY, X) -> dX: besides its own dY an element has those of the channels that it is a neighbour
/// of.
LoopNest build_lrn_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kNormalise);
  const auto loops = neighbour_loops(graph, op, nest, input_shape(graph, op, 1), true);
  nest.output(0, "O", axes_of(loops.own));
  nest.padded_input(0, "I", loops.read);
  nest.padded_input(1, "X", loops.read);
  return nest.finish();
}

} // namespace

std::vector<OperatorRule> pooling_rules() {
  return {
      {"", "AveragePool", build_pool<kAverage>},
      {"", "GlobalAveragePool", build_global_pool<kAverage>},
      {"", "GlobalLpPool", build_global_pool<kPower>},
      {"", "GlobalMaxPool", build_global_pool<kMaximum>},
      {"", "LRN", build_lrn},
      {kMonetDomain, "LRNGrad", build_lrn_grad},
      {"", "LpPool", build_pool<kPower>},
      {"", "MaxPool", build_pool<kMaximum>},
      {kMonetDomain, "MaxPool", build_pool<kMaximum>},
  };
}

} // namespace monet
