// Rules of gradients of batch and layer normalisation and softmax. An operand is swept twice if it
// is read again after a sum over it.
#include "workload/operators/families.hpp"

namespace monet {

namespace {

// Order of work: add, multiply, divide, compare, square_root, transcendental.
constexpr VectorWork kBatchNormBackward{6, 5, 0, 0, 0, 0};  // xhat, sums of dy and dy*xhat; dx
constexpr VectorWork kScale{0, 1, 0, 0, 0, 0};              // dy * (g*i), known per channel
constexpr VectorWork kParametersOnly{3, 2, 0, 0, 0, 0};     // xhat; dy*xhat; two sums
constexpr VectorWork kLayerNormBackward{6, 6, 0, 0, 0, 0};  // g*dy, xhat, two sums; dx
constexpr VectorWork kSoftmaxBackward{2, 2, 0, 0, 0, 0};    // dy*y, sum; y * (dy - sum)
constexpr VectorWork kLpBackward{3, 4, 0, 0, 0, 0};         // x*x, dy*x, two sums; dx
constexpr VectorWork kLogSoftmaxBackward{2, 1, 0, 0, 0, 1}; // sum; dy - exp(y) * sum

/// Loops with channels on axis 1 (the last axis of a matrix).
std::vector<LoopIndex> channel_loops(const Graph& graph, const Operator& op, LoopNestBuilder& nest,
                                     std::size_t data_input) {
  const auto& shape = input_shape(graph, op, data_input);
  if (shape.size() < 2)
    fail(graph, op, "batch normalisation needs a channel axis");
  return nest.loops_over(shape);
}

} // namespace

/// (dY, X, scale, mean, inverse standard deviation) -> (dX, dscale, dbias). Needs two sweeps over X
/// and dY if dX is an output.
LoopNest build_batch_norm_grad(const Graph& graph, const Operator& op) {
  const bool whole = has_output(op, 0);
  const int passes = whole ? 2 : 1;
  LoopNestBuilder nest(graph, op, ComputeKind::vector,
                       whole ? kBatchNormBackward : kParametersOnly);
  const std::vector<LoopIndex> loops = channel_loops(graph, op, nest, 0);
  const std::vector<AxisExpr> channel{axis(loops[1])};
  for (std::size_t d = 0; d < loops.size(); ++d) {
    if (d != 1)
      nest.couple(loops[d]);
  }
  nest.output(0, "O", axes_of(loops));
  nest.outputs(1, {"dscale", "dbias"}, channel);
  nest.inputs(0, {"I", "W"}, axes_of(loops), passes);
  nest.inputs(2, {"scale", "mean", "inv_std"}, channel);
  return nest.finish();
}

/// (dY, scale, running variance) -> dX of a batch normalisation that uses its running statistics.
LoopNest build_fixed_batch_norm_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kScale);
  const std::vector<LoopIndex> loops = channel_loops(graph, op, nest, 0);
  const std::vector<AxisExpr> channel{axis(loops[1])};
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "I", axes_of(loops));
  nest.inputs(1, {"scale", "running_var"}, channel);
  return nest.finish();
}

/// (dY, X, running mean, running variance) -> (dscale, dbias), summed over all but the channels.
LoopNest build_fixed_batch_norm_grad_weight(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kParametersOnly);
  const std::vector<LoopIndex> loops = channel_loops(graph, op, nest, 0);
  const std::vector<AxisExpr> channel{axis(loops[1])};
  nest.outputs(0, {"O", "O2"}, channel);
  nest.inputs(0, {"I", "W"}, axes_of(loops));
  nest.inputs(2, {"running_mean", "running_var"}, channel);
  return nest.finish();
}

/// (dY, X, scale, mean, inverse standard deviation) -> dX. Rows are independent.
LoopNest build_layer_norm_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kLayerNormBackward);
  const auto& shape = input_shape(graph, op, 0);
  const auto& statistics = input_shape(graph, op, 3);
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  for (std::size_t d = 0; d < loops.size() && statistics.size() == shape.size(); ++d) {
    if (statistics[d] != shape[d])
      nest.couple(loops[d]);
  }
  nest.output(0, "O", axes_of(loops));
  nest.inputs(0, {"I", "W"}, axes_of(loops), 2);
  nest.inputs_over(loops, 2, {"scale", "mean", "inv_std"});
  return nest.finish();
}

/// (dY, X, mean, inverse standard deviation) -> (dscale, dbias), summed over rows.
LoopNest build_layer_norm_grad_weight(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kParametersOnly);
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  nest.outputs_over(loops, 0, {"O", "O2"});
  nest.inputs(0, {"I", "W"}, axes_of(loops));
  nest.inputs_over(loops, 2, {"mean", "inv_std"});
  return nest.finish();
}

/// (dY, Y or X) -> dX; sweeps a row for the sum, then for the result.
LoopNest build_softmax_grad(const Graph& graph, const Operator& op) {
  const bool logarithmic = op.op_type == ops::LogSoftmaxGrad;
  const VectorWork& work = op.op_type == ops::LpNormalizationGrad ? kLpBackward
                           : logarithmic                          ? kLogSoftmaxBackward
                                                                  : kSoftmaxBackward;
  LoopNestBuilder nest(graph, op, ComputeKind::vector, work);
  const auto& shape = input_shape(graph, op, 0);
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  if (!shape.empty())
    nest.couple(loops[normal_axis(graph, op, op.attributes.integer("axis", -1), shape.size())]);
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "I", axes_of(loops), 2);
  nest.input(1, "W", axes_of(loops), logarithmic ? 1 : 2);
  return nest.finish();
}

} // namespace monet
