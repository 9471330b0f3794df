// Pooling over windows or over all positions, and local response normalisation. One operation per
// window element; the division of an average is once per output and not counted. Loops B, C, OY,OX,
// FY,FX; global pooling B, C, FY,FX.
#include "workload/operators/conv_geometry.hpp"
#include "workload/operators/families.hpp"
#include "workload/operators/nest_builder.hpp"

#include <array>

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
  const auto kernel = op.attributes.integers("kernel_shape");
  if (x.size() < 3 || y.size() != x.size() || kernel.size() + 2 != x.size()) {
    fail(graph, op, "input, output and kernel_shape have different numbers of axes");
  }
  const ConvGeometry geometry = window_geometry(graph, op, x, y, kernel);
  std::vector<std::int64_t> window{1, 1};
  window.insert(window.end(), kernel.begin(), kernel.end());
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kWork);
  const LoopIndex b = nest.loop("B", x[0]);
  const LoopIndex c = nest.loop("C", x[1]);
  const SpatialLoops spatial = spatial_loops(nest, y, window);
  std::vector<AxisExpr> out{axis(b), axis(c)};
  std::vector<AxisExpr> in{axis(b), axis(c)};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    out.push_back(axis(spatial.output[i]));
    in.push_back(axis_sum(
        {{spatial.output[i], geometry.strides[i]}, {spatial.kernel[i], geometry.dilations[i]}},
        -geometry.pads_begin[i]));
  }
  nest.output(0, "O", out);
  nest.output(1, "indices", out);
  nest.padded_input(0, "I", std::move(in));
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

/// Every output reads `size` neighbouring channels.
LoopNest build_lrn(const Graph& graph, const Operator& op) {
  const auto& x = input_shape(graph, op, 0);
  const std::int64_t size = op.attributes.integer("size", 1);
  if (x.size() < 2)
    fail(graph, op, "a channel axis is needed");
  if (size < 1)
    fail(graph, op, "at least 1 is expected", "attribute 'size'");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kPower);
  const std::vector<LoopIndex> loops = nest.loops_over(x);
  const LoopIndex neighbour = nest.loop("F", size);
  std::vector<AxisExpr> out;
  for (const LoopIndex loop : loops)
    out.push_back(axis(loop));
  std::vector<AxisExpr> in = out;
  in[1] = axis_sum({{loops[1], 1}, {neighbour, 1}}, -((size - 1) / 2));
  nest.output(0, "O", std::move(out));
  nest.padded_input(0, "I", std::move(in));
  return nest.finish();
}

/// (dY, X) -> dX: besides its own dY an element has those of the channels that it is a neighbour
/// of.
LoopNest build_lrn_grad(const Graph& graph, const Operator& op) {
  const auto& x = input_shape(graph, op, 1);
  const std::int64_t size = op.attributes.integer("size", 1);
  if (x.size() < 2)
    fail(graph, op, "a channel axis is needed");
  if (size < 1)
    fail(graph, op, "at least 1 is expected", "attribute 'size'");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kNormalise);
  const std::vector<LoopIndex> loops = nest.loops_over(x);
  const LoopIndex neighbour = nest.loop("F", size);
  std::vector<AxisExpr> in = axes_of(loops);
  in[1] = axis_sum({{loops[1], 1}, {neighbour, 1}}, -(size / 2));
  nest.output(0, "O", axes_of(loops));
  nest.padded_input(0, "I", in);
  nest.padded_input(1, "X", std::move(in));
  return nest.finish();
}

} // namespace

std::span<const OperatorRule> pooling_rules() {
  static constexpr std::array kRules{
      OperatorRule{"", "AveragePool", &build_pool<kAverage>, false},
      OperatorRule{"", "GlobalAveragePool", &build_global_pool<kAverage>, false},
      OperatorRule{"", "GlobalLpPool", &build_global_pool<kPower>, false},
      OperatorRule{"", "GlobalMaxPool", &build_global_pool<kMaximum>, false},
      OperatorRule{"", "LRN", &build_lrn, false},
      OperatorRule{kMonetDomain, "LRNGrad", &build_lrn_grad, false},
      OperatorRule{"", "LpPool", &build_pool<kPower>, false},
      OperatorRule{"", "MaxPool", &build_pool<kMaximum>, false},
      OperatorRule{kMonetDomain, "MaxPool", &build_pool<kMaximum>, false},
  };
  return kRules;
}

} // namespace monet
