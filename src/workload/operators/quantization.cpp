// Rules of fake quantisation in training: y = (clamp(round(x / s) + z, quant_min, quant_max) - z) *
// s. Scale s and zero point z are one number each, or one per slice of attribute `axis`; quant_min
// and quant_max are attributes.
#include "workload/operators/families.hpp"

namespace monet {

namespace {

// Order of work: add, multiply, divide, compare, square_root, transcendental.
constexpr VectorWork kRound{2, 1, 1, 4, 0, 0};
constexpr VectorWork kGradScale{2, 1, 1, 4, 0, 0}; // dY * (round(x/s) - x/s), summed

/// Axes of a setting with one number, or with one per slice of the axis.
std::vector<AxisExpr> setting_axes(const Graph& graph, const Operator& op,
                                   const LoopNestBuilder& nest, std::span<const LoopIndex> loops,
                                   const Integers& shape) {
  if (shape.size() != 1 || shape[0] == 1)
    return nest.broadcast(shape, loops);
  const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", 1), loops.size());
  return {axis(loops[at])};
}

/// Adds the scale, input `first`, and the zero point, the input after it.
void read_settings(const Graph& graph, const Operator& op, LoopNestBuilder& nest,
                   std::span<const LoopIndex> loops, std::size_t first) {
  for (std::size_t i = first; i < op.inputs.size(); ++i) {
    if (has_input(op, i))
      nest.input(i, i == first ? "scale" : "zero",
                 setting_axes(graph, op, nest, loops, input_shape(graph, op, i)));
  }
}

} // namespace

/// (X, scale, zero point) -> (Y, mask of elements not clamped).
LoopNest build_fake_quantize(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kRound);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  nest.output(0, "O", axes_of(loops));
  if (has_output(op, 1))
    nest.output(1, "mask", axes_of(loops));
  nest.input(0, "I", axes_of(loops));
  read_settings(graph, op, nest, loops, 1);
  return nest.finish();
}

/// (dY, X, scale, zero point) -> gradient of the scale (Esser et al. 2020, "Learned step size
/// quantization", equation 3).
LoopNest build_grad_scale(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kGradScale);
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  nest.output(0, "O", setting_axes(graph, op, nest, loops, output_shape(graph, op, 0)));
  nest.input(0, "dO", axes_of(loops));
  nest.input(1, "I", axes_of(loops));
  read_settings(graph, op, nest, loops, 2);
  return nest.finish();
}

} // namespace monet
