// Rules of convolutions with one or more spatial dimensions, groups, dilations, strides and
// padding. Loops B, G (omitted for a single group), K, C, then OZ,OY,OX and FZ,FY,FX; K and C count
// per group.
#include "workload/operators/conv_geometry.hpp"
#include "workload/operators/families.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

LoopNest build_conv_with(const Graph& graph, const Operator& op, std::size_t weight_input,
                         std::optional<std::size_t> bias_input) {
  const auto& x = input_shape(graph, op, 0);
  const auto& w = input_shape(graph, op, weight_input);
  const auto& y = output_shape(graph, op, 0);
  if (x.size() < 3 || w.size() != x.size() || y.size() != x.size()) {
    fail(graph, op,
         fmt::format("input, weight and output have {}, {} and {} axes", x.size(), w.size(),
                     y.size()));
  }
  const std::int64_t groups = op.attributes.integer("group", 1);
  if (groups < 1 || x[1] != w[1] * groups || w[0] % groups != 0 || y[1] != w[0]) {
    fail(graph, op,
         fmt::format("{} input channels and {} output channels do not fit weights of {}x{} in {} "
                     "groups",
                     x[1], y[1], w[0], w[1], groups),
         "attribute 'group'");
  }
  const ConvGeometry geometry = conv_geometry(graph, op, x, w, y);

  LoopNestBuilder nest(graph, op, ComputeKind::mac);
  const LoopIndex b = nest.loop("B", x[0]);
  const bool grouped = groups > 1;
  const LoopIndex g = grouped ? nest.loop("G", groups) : 0;
  const LoopIndex k = nest.loop("K", w[0] / groups);
  const LoopIndex c = nest.loop("C", w[1]);
  const SpatialLoops spatial = spatial_loops(nest, y, w);

  const auto channel = [&](LoopIndex inner) {
    return grouped ? axis_sum({{g, nest.size(inner)}, {inner, 1}}) : axis(inner);
  };
  std::vector<AxisExpr> out{axis(b), channel(k)};
  std::vector<AxisExpr> in{axis(b), channel(c)};
  std::vector<AxisExpr> weight{channel(k), axis(c)};
  for (std::size_t i = 0; i < geometry.strides.size(); ++i) {
    out.push_back(axis(spatial.output[i]));
    in.push_back(under_window(geometry, spatial, i));
    weight.push_back(axis(spatial.kernel[i]));
  }
  nest.output(0, "O", std::move(out));
  nest.padded_input(0, "I", std::move(in));
  nest.input(weight_input, "W", std::move(weight));
  if (bias_input)
    nest.input(*bias_input, "bias", {channel(k)});
  return nest.finish();
}

} // namespace

LoopNest build_conv(const Graph& graph, const Operator& op) {
  return build_conv_with(graph, op, 1, 2);
}

/// Inputs 2 and 3 are zero points.
LoopNest build_conv_integer(const Graph& graph, const Operator& op) {
  return build_conv_with(graph, op, 1, std::nullopt);
}

/// (x, scale, zero point, w, scale, zero point, scale, zero point of y, bias).
LoopNest build_qlinear_conv(const Graph& graph, const Operator& op) {
  return build_conv_with(graph, op, 3, 8);
}

} // namespace monet
