// Rules of transposed convolutions, in which every input element adds a kernel to the output: O[b,
// g, k, s*iy + d*fy - p, ...] += I[b, g, c, iy, ...] * W[g, c, k, fy, ...]. Loops B, G, K, C, then
// IZ,IY,IX and FZ,FY,FX; K and C count per group.
#include "base/shared/checked.hpp"
#include "workload/operators/conv_geometry.hpp"
#include "workload/operators/families.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

/// Padding at the front. With output_shape or auto_pad, the output's size implies the total.
Integers pads_of(const Graph& graph, const Operator& op, const ConvGeometry& geometry,
                 std::span<const std::int64_t> x, std::span<const std::int64_t> y) {
  const std::string auto_pad = op.attributes.text("auto_pad", "NOTSET");
  if (!op.attributes.has("output_shape") && auto_pad == "NOTSET")
    return geometry.pads_begin;
  const std::size_t count = geometry.kernel.size();
  const auto extra = op.attributes.integers("output_padding", Integers(count, 0));
  if (extra.size() != count)
    fail(graph, op, "one value per spatial axis is expected", "attribute 'output_padding'");
  Integers pads;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t reach = checked_add(
        checked_multiply(geometry.strides[i], std::max<std::int64_t>(x[2 + i] - 1, 0)),
        checked_add(checked_multiply(geometry.kernel[i] - 1, geometry.dilations[i]), 1));
    const std::int64_t all = std::max<std::int64_t>(reach + extra[i] - y[2 + i], 0);
    pads.push_back(auto_pad == "SAME_UPPER" ? all / 2 : all - all / 2);
  }
  return pads;
}

} // namespace

LoopNest build_conv_transpose(const Graph& graph, const Operator& op) {
  const auto& x = input_shape(graph, op, 0);
  const auto& w = input_shape(graph, op, 1);
  const auto& y = output_shape(graph, op, 0);
  const std::int64_t groups = op.attributes.integer("group", 1);
  if (x.size() < 3 || w.size() != x.size() || y.size() != x.size()) {
    fail(graph, op,
         fmt::format("input, weight and output have {}, {} and {} axes", x.size(), w.size(),
                     y.size()));
  }
  if (groups < 1 || w[0] != x[1] || x[1] % groups != 0 || y[1] != w[1] * groups) {
    fail(graph, op, "channels of input, weight and output do not fit", "attribute 'group'");
  }
  const Integers kernel(w.begin() + 2, w.end());
  if (op.attributes.integers("kernel_shape", kernel) != kernel) {
    fail(graph, op, "the kernel's shape differs from the weight's", "attribute 'kernel_shape'");
  }
  const ConvGeometry geometry = window_geometry(graph, op, y, x, kernel);
  const auto pads = pads_of(graph, op, geometry, x, y);

  LoopNestBuilder nest(graph, op, ComputeKind::mac);
  const LoopIndex b = nest.loop("B", x[0]);
  const bool grouped = groups > 1;
  const LoopIndex g = grouped ? nest.loop("G", groups) : 0;
  const LoopIndex k = nest.loop("K", w[1]);
  const LoopIndex c = nest.loop("C", x[1] / groups);
  const auto channel = [&](LoopIndex inner) {
    return grouped ? axis_sum({{g, nest.size(inner)}, {inner, 1}}) : axis(inner);
  };
  std::vector<AxisExpr> out{axis(b), channel(k)};
  std::vector<AxisExpr> in{axis(b), channel(c)};
  std::vector<AxisExpr> weight{channel(c), axis(k)};
  std::vector<LoopIndex> places;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    places.push_back(nest.loop(spatial_name('I', i, kernel.size()), x[2 + i]));
  }
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const LoopIndex f = nest.loop(spatial_name('F', i, kernel.size()), kernel[i]);
    out.push_back(
        axis_sum({{places[i], geometry.strides[i]}, {f, geometry.dilations[i]}}, -pads[i]));
    in.push_back(axis(places[i]));
    weight.push_back(axis(f));
  }
  nest.output(0, "O", std::move(out), AccessMode::accumulate);
  nest.input(0, "I", std::move(in));
  nest.input(1, "W", std::move(weight));
  nest.input(2, "bias", {channel(k)});
  return nest.finish();
}

} // namespace monet
