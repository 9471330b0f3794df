// Reads and checks the geometry of windows from ONNX attributes; rules of convolutions and pooling
// call it.
#include "workload/operators/conv_geometry.hpp"

#include "base/shared/checked.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::int64_t kLargestStep = std::int64_t{1} << 31;

Integers steps(const Graph& graph, const Operator& op, const char* name, std::size_t count) {
  auto values = op.attributes.integers(name, Integers(count, 1));
  if (values.empty())
    values.assign(count, 1);
  const bool positive =
      std::ranges::all_of(values, [](std::int64_t v) { return v >= 1 && v <= kLargestStep; });
  if (values.size() != count || !positive) {
    fail(graph, op, fmt::format("{} values of at least 1 are expected", count),
         fmt::format("attribute '{}'", name));
  }
  return values;
}

} // namespace

ConvGeometry window_geometry(const Graph& graph, const Operator& op,
                             std::span<const std::int64_t> large,
                             std::span<const std::int64_t> small, Integers kernel) {
  const std::size_t count = kernel.size();
  ConvGeometry geometry;
  geometry.kernel = std::move(kernel);
  geometry.strides = steps(graph, op, "strides", count);
  geometry.dilations = steps(graph, op, "dilations", count);
  auto pads = op.attributes.integers("pads");
  if (pads.empty())
    pads.assign(2 * count, 0);
  const bool sane = std::ranges::all_of(
      pads, [](std::int64_t v) { return v >= -kLargestStep && v <= kLargestStep; });
  if (pads.size() != 2 * count || !sane) {
    fail(graph, op, fmt::format("{} values are expected", 2 * count), "attribute 'pads'");
  }
  geometry.pads_begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(count));
  const std::string auto_pad = op.attributes.text("auto_pad", "NOTSET");
  if (auto_pad == "NOTSET" || auto_pad.empty())
    return geometry;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t reach =
        checked_add(checked_multiply(geometry.kernel[i] - 1, geometry.dilations[i]), 1);
    const std::int64_t covered = checked_add(
        checked_multiply(std::max<std::int64_t>(small[2 + i] - 1, 0), geometry.strides[i]), reach);
    const std::int64_t total = std::max<std::int64_t>(covered - large[2 + i], 0);
    if (auto_pad == "SAME_UPPER") {
      geometry.pads_begin[i] = total / 2;
    } else if (auto_pad == "SAME_LOWER") {
      geometry.pads_begin[i] = total - total / 2;
    } else if (auto_pad == "VALID") {
      geometry.pads_begin[i] = 0;
    } else {
      fail(graph, op, fmt::format("'{}' is not a padding mode", auto_pad), "attribute 'auto_pad'");
    }
  }
  return geometry;
}

ConvGeometry conv_geometry(const Graph& graph, const Operator& op, std::span<const std::int64_t> x,
                           std::span<const std::int64_t> w, std::span<const std::int64_t> y) {
  Integers kernel(w.begin() + 2, w.end());
  const auto declared = op.attributes.integers("kernel_shape", kernel);
  if (declared != kernel) {
    fail(graph, op, "the kernel's shape differs from the weight's", "attribute 'kernel_shape'");
  }
  ConvGeometry geometry = window_geometry(graph, op, x, y, std::move(kernel));
  const auto pads = op.attributes.integers("pads", Integers(2 * w.size() - 4, 0));
  const bool explicit_pads = op.attributes.text("auto_pad", "NOTSET") == "NOTSET";
  for (std::size_t i = 0; explicit_pads && i < geometry.kernel.size(); ++i) {
    const std::int64_t reach =
        checked_add(checked_multiply(geometry.kernel[i] - 1, geometry.dilations[i]), 1);
    const std::int64_t room =
        x[2 + i] + geometry.pads_begin[i] + pads[i + geometry.kernel.size()] - reach;
    const std::int64_t expected = room < 0 ? 0 : room / geometry.strides[i] + 1;
    if (expected != y[2 + i]) {
      fail(graph, op,
           fmt::format("spatial axis {} results in {} outputs, but the output has {}", i, expected,
                       y[2 + i]));
    }
  }
  return geometry;
}

std::string spatial_name(char prefix, std::size_t index, std::size_t count) {
  if (count > 3)
    return fmt::format("{}{}", prefix, index);
  return {prefix, "XYZ"[count - 1 - index]};
}

SpatialLoops spatial_loops(LoopNestBuilder& nest, std::span<const std::int64_t> y,
                           std::span<const std::int64_t> w) {
  SpatialLoops loops;
  const std::size_t count = y.size() - 2;
  for (std::size_t i = 0; i < count; ++i) {
    loops.output.push_back(nest.loop(spatial_name('O', i, count), y[2 + i]));
  }
  for (std::size_t i = 0; i < count; ++i) {
    loops.kernel.push_back(nest.loop(spatial_name('F', i, count), w[2 + i]));
  }
  return loops;
}

AxisExpr under_window(const ConvGeometry& geometry, const SpatialLoops& loops, std::size_t i) {
  return axis_sum(
      {{loops.output[i], geometry.strides[i]}, {loops.kernel[i], geometry.dilations[i]}},
      -geometry.pads_begin[i]);
}

WindowAxes window_axes(const Graph& graph, const Operator& op, LoopNestBuilder& nest,
                       std::span<const std::int64_t> large, std::span<const std::int64_t> small,
                       std::string_view names) {
  const auto kernel = op.attributes.integers("kernel_shape");
  if (small.size() < 3 || large.size() != small.size() || kernel.size() + 2 != small.size())
    fail(graph, op, fmt::format("{} and kernel_shape have different numbers of axes", names));
  const ConvGeometry geometry = window_geometry(graph, op, large, small, kernel);
  Integers window{1, 1};
  window.insert(window.end(), kernel.begin(), kernel.end());
  WindowAxes axes;
  axes.places = {axis(nest.loop("B", small[0])), axis(nest.loop("C", small[1]))};
  axes.elements = axes.places;
  const SpatialLoops spatial = spatial_loops(nest, small, window);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    axes.places.push_back(axis(spatial.output[i]));
    axes.elements.push_back(under_window(geometry, spatial, i));
  }
  return axes;
}

} // namespace monet
