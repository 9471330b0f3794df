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
  Integers pads_begin; ///< may be negative (cropping)
};

/// One entry per spatial axis. `small` is the side that the windows stride over less densely (a
/// convolution's output, a transposed convolution's input), `large` the other one; both as N, C,
/// spatial... auto_pad SAME_* splits the padding that `small` and `large` imply; other pads come
/// from the attribute.
ConvGeometry window_geometry(const Graph& graph, const Operator& op,
                             std::span<const std::int64_t> large,
                             std::span<const std::int64_t> small, Integers kernel);

/// The same with the kernel of a weight tensor, checked against attribute kernel_shape and the
/// output.
ConvGeometry conv_geometry(const Graph& graph, const Operator& op, std::span<const std::int64_t> x,
                           std::span<const std::int64_t> w, std::span<const std::int64_t> y);

struct SpatialLoops {
  std::vector<LoopIndex> output;
  std::vector<LoopIndex> kernel;
};
/// Loops OX, OY, ... over y's spatial axes, then FX, FY, ... over w's; named from the last axis (X,
/// Y, Z).
SpatialLoops spatial_loops(LoopNestBuilder& nest, std::span<const std::int64_t> y,
                           std::span<const std::int64_t> w);
/// "OX", "OY", "OZ" for axis `index` of `count` spatial axes; "O0"... beyond three.
std::string spatial_name(char prefix, std::size_t index, std::size_t count);

/// The axis of the larger tensor that spatial axis `i` of a window reads.
AxisExpr under_window(const ConvGeometry& geometry, const SpatialLoops& loops, std::size_t i);

/// What a pooling window with attribute kernel_shape visits: loops B, C, OY,OX, FY,FX.
struct WindowAxes {
  std::vector<AxisExpr> places;   ///< of `small`: one a window
  std::vector<AxisExpr> elements; ///< of `large`: under the window
};
/// `names` are those of the two tensors, for a message.
WindowAxes window_axes(const Graph& graph, const Operator& op, LoopNestBuilder& nest,
                       std::span<const std::int64_t> large, std::span<const std::int64_t> small,
                       std::string_view names);

} // namespace monet
