// Strides, dilations and padding of convolutions and pooling, read from ONNX attributes and
// checked.
#pragma once

#include "workload/operators/nest_builder.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

struct ConvGeometry {
  Integers kernel;
  Integers strides;
  Integers dilations;
  Integers pads_begin; ///< negative values crop
};

/// Geometry with one entry per spatial axis. `small` holds one element per window (a convolution's
/// output, a transposed convolution's input), `large` the elements under the windows; both are [N,
/// C, spatial...]. auto_pad SAME_* splits the padding implied by their sizes; other pads are
/// attributes.
ConvGeometry window_geometry(const Graph& graph, const Operator& op,
                             std::span<const std::int64_t> large,
                             std::span<const std::int64_t> small, Integers kernel);

/// Geometry with the kernel of a weight tensor, checked against attribute kernel_shape and the
/// output.
ConvGeometry conv_geometry(const Graph& graph, const Operator& op, std::span<const std::int64_t> x,
                           std::span<const std::int64_t> w, std::span<const std::int64_t> y);

struct SpatialLoops {
  std::vector<LoopIndex> output;
  std::vector<LoopIndex> kernel;
};
/// Adds loops OX, OY, ... over y's spatial axes, then FX, FY, ... over w's; names start at the last
/// axis (X, Y, Z).
SpatialLoops spatial_loops(LoopNestBuilder& nest, std::span<const std::int64_t> y,
                           std::span<const std::int64_t> w);
/// Loop name of spatial axis `index` of `count`: "OX", "OY", "OZ"; "O0", ... beyond three.
std::string spatial_name(char prefix, std::size_t index, std::size_t count);

/// Axis of the larger tensor that spatial axis `i` of a window reads.
AxisExpr under_window(const ConvGeometry& geometry, const SpatialLoops& loops, std::size_t i);

/// Axes of a pooling with attribute kernel_shape; loops B, C, OY,OX, FY,FX.
struct WindowAxes {
  std::vector<AxisExpr> places;   ///< axes of `small`: one element per window
  std::vector<AxisExpr> elements; ///< axes of `large`: elements under the window
};
/// Adds the loops of a pooling; `names` are those of the two tensors, for messages.
WindowAxes window_axes(const Graph& graph, const Operator& op, LoopNestBuilder& nest,
                       std::span<const std::int64_t> large, std::span<const std::int64_t> small,
                       std::string_view names);

} // namespace monet
