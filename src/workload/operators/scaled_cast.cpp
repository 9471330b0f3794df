// Rules of casts to fp8 with a scale, as in NVIDIA's Transformer Engine. Maxima of magnitudes are
// computed in existing sweeps, one per index of the first two axes (one axis of a matrix, none of a
// vector), so that tiles are independent. Readers take the overall maximum.
#include "base/shared/checked.hpp"
#include "workload/operators/families.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

// Order of work: add, multiply, divide, compare, square_root, transcendental.
constexpr VectorWork kCast{0, 1, 0, 0, 0, 0};
constexpr VectorWork kCastCompared{0, 1, 0, 1, 0, 0};
constexpr VectorWork kLargest{0, 0, 0, 1, 0, 0};
constexpr VectorWork kFindScale{0, 1, 1, 1, 0, 0};

/// Axes of an array of maxima: the first axes of the tensor that it covers.
std::vector<AxisExpr> leading_axes(const Graph& graph, const Operator& op, std::size_t output,
                                   std::span<const LoopIndex> loops) {
  const auto& shape = output_shape(graph, op, output);
  const auto& whole = input_shape(graph, op, 0);
  if (shape.size() > whole.size() || !std::equal(shape.begin(), shape.end(), whole.begin()))
    fail(graph, op, "the maxima are not those of the first axes");
  return axes_of(loops.first(shape.size()));
}

} // namespace

/// (X, scale) -> (X in the result's type, maxima of magnitudes).
LoopNest build_scaled_cast(const Graph& graph, const Operator& op) {
  if (!has_input(op, 1) || !input_shape(graph, op, 1).empty())
    fail(graph, op, "the scale is not a scalar");
  if (output_shape(graph, op, 0) != input_shape(graph, op, 0))
    fail(graph, op, "the result has another shape");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, has_output(op, 1) ? kCastCompared : kCast);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  nest.output(0, "O", axes_of(loops));
  if (has_output(op, 1))
    nest.output(1, "amax", leading_axes(graph, op, 1, loops));
  nest.input(0, "I", axes_of(loops));
  nest.input(1, "scale", {});
  return nest.finish();
}

/// X [..., C] with R rows -> (X in blocks along its last axis, transpose [C, R] in blocks along its
/// rows). A block is still in the core when its maximum is known, so one sweep suffices.
LoopNest build_block_cast(const Graph& graph, const Operator& op) {
  const Integers shape = input_shape(graph, op, 0);
  if (shape.size() < 2)
    fail(graph, op, "a matrix or a stack of them is expected");
  if (!has_output(op, 0) && !has_output(op, 1))
    fail(graph, op, "neither result is there");
  const bool both = has_output(op, 0) && has_output(op, 1);
  const int copies = both ? 2 : 1;
  LoopNestBuilder nest(graph, op, ComputeKind::vector, {0, copies, 0, copies, 0, 0});
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  std::vector<AffineTerm> row;
  std::int64_t rows = 1;
  for (std::size_t i = shape.size() - 1; i-- > 0;) {
    row.push_back({loops[i], rows});
    rows = checked_multiply(rows, shape[i]);
  }
  if (has_output(op, 0) && output_shape(graph, op, 0) != shape)
    fail(graph, op, "the result has another shape");
  if (has_output(op, 1) && output_shape(graph, op, 1) != std::vector{shape.back(), rows})
    fail(graph, op, "the transposed result has another shape");
  nest.output(0, "O", axes_of(loops));
  if (has_output(op, 1))
    nest.output(1, "transposed", {axis(loops.back()), axis_sum(std::move(row))});
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// (X) -> X in blocks, once per output.
LoopNest build_quantise(const Graph& graph, const Operator& op) {
  const auto copies = static_cast<int>(op.outputs.size());
  LoopNestBuilder nest(graph, op, ComputeKind::vector, {0, copies, 0, copies, 0, 0});
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (!has_output(op, i) || output_shape(graph, op, i) != input_shape(graph, op, 0))
      fail(graph, op, "a result is left out or has another shape");
    nest.output(i, i == 0 ? "O" : fmt::format("copy{}", i), axes_of(loops));
  }
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// (X) -> maxima of its magnitudes.
LoopNest build_amax(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kLargest);
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  nest.output(0, "O", leading_axes(graph, op, 0, loops));
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// (maxima) -> scale.
LoopNest build_amax_scale(const Graph& graph, const Operator& op) {
  if (!output_shape(graph, op, 0).empty())
    fail(graph, op, "the scale is not a scalar");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kLargest);
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  nest.output(0, "O", {});
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// (history, scale, maxima of this step...) -> (history, scale), in place.
LoopNest build_amax_update(const Graph& graph, const Operator& op) {
  if (op.inputs.size() < 3 || input_shape(graph, op, 0).size() != 1 ||
      input_shape(graph, op, 0)[0] < 1 || !input_shape(graph, op, 1).empty())
    fail(graph, op, "a history, a scale and maxima are expected");
  if (output_shape(graph, op, 0) != input_shape(graph, op, 0) ||
      !output_shape(graph, op, 1).empty())
    fail(graph, op, "the results are not another history and scale");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kFindScale);
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  nest.output(0, "O", axes_of(loops));
  nest.output(1, "scale", {});
  nest.input(0, "I", axes_of(loops));
  nest.input(1, "scale", {});
  for (std::size_t i = 2; i < op.inputs.size(); ++i)
    nest.opaque_input(i, "amax");
  return nest.finish();
}

} // namespace monet
