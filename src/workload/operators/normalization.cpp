// Rules of normalisations and the softmax family. Statistics need one sweep over the input, the
// result a second one.
#include "workload/operators/families.hpp"

namespace monet {

namespace {

// Order of work: add, multiply, divide, compare, square_root, transcendental; per element. Work per
// row (division by the count, root) is not counted.
constexpr VectorWork kScaleAndShift{1, 1, 0, 0, 0, 0}; // x * a + b, a and b known per channel
constexpr VectorWork kStatistics{5, 4, 0, 0, 0, 0};    // sum, sum of squares; (x-m)*i, *g, +b
constexpr VectorWork kCrossEntropy{3, 0, 0, 2, 0, 1};  // log-softmax; pick the label's

} // namespace

/// (X, scale, bias, running mean, running variance) -> (Y, running mean, running variance), in
/// MONET's training steps also (batch mean, inverse standard deviation). All but X and Y have one
/// value per channel (axis 1). Statistics cover all other axes.
LoopNest build_batch_normalization(const Graph& graph, const Operator& op) {
  const bool ours = op.domain == kMonetDomain;
  const bool training = ours || op.attributes.integer("training_mode", 0) != 0;
  const auto& shape = input_shape(graph, op, 0);
  if (shape.size() < 2)
    fail(graph, op, "a channel axis is needed");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, training ? kStatistics : kScaleAndShift);
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  const std::vector<AxisExpr> channel{axis(loops[1])};
  for (std::size_t d = 0; training && d < loops.size(); ++d) {
    if (d != 1)
      nest.couple(loops[d]);
  }
  nest.output(0, "O", axes_of(loops));
  nest.outputs(1, {"running_mean", "running_var"}, channel);
  if (ours)
    nest.outputs(3, {"mean", "inv_std"}, channel);
  nest.input(0, "I", axes_of(loops), training ? 2 : 1);
  nest.inputs(1, {"scale", "bias", "running_mean", "running_var"}, channel);
  return nest.finish();
}

/// (X, scale, bias) -> (Y, mean, inverse standard deviation); the last two have size 1 on
/// normalised axes.
LoopNest build_layer_normalization(const Graph& graph, const Operator& op) {
  const auto& shape = input_shape(graph, op, 0);
  const std::size_t first = normal_axis(graph, op, op.attributes.integer("axis", -1), shape.size());
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kStatistics);
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  for (std::size_t d = first; d < loops.size(); ++d)
    nest.couple(loops[d]);
  nest.outputs_over(loops, 0, {"O", "mean", "inv_std"});
  nest.inputs_over(loops, 0, {"I"}, 2);
  nest.inputs_over(loops, 1, {"scale", "bias"});
  return nest.finish();
}

/// One input and one output of equal shape, with two sweeps over the input.
LoopNest build_rows(const Graph& graph, const Operator& op) {
  const auto& shape = input_shape(graph, op, 0);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, row_of(op).work);
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  const bool several = op.attributes.has("axes"); // MeanVarianceNormalization
  const Integers axes =
      several ? op.attributes.integers("axes") : Integers{op.attributes.integer("axis", -1)};
  if (op.op_type == ops::MeanVarianceNormalization && !several) {
    for (std::size_t d = 0; d < loops.size(); ++d) {
      if (d != 1)
        nest.couple(loops[d]);
    }
  } else if (!shape.empty()) {
    for (const std::int64_t axis : axes)
      nest.couple(loops[normal_axis(graph, op, axis, shape.size())]);
  }
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "I", axes_of(loops), 2);
  return nest.finish();
}

/// (scores [N, C, d...], labels [N, d...], class weights [C]) -> (loss, log-probabilities).
LoopNest build_cross_entropy(const Graph& graph, const Operator& op) {
  const auto& shape = input_shape(graph, op, 0);
  if (shape.size() < 2)
    fail(graph, op, "scores need a batch and a class axis");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kCrossEntropy);
  const std::vector<LoopIndex> loops = nest.loops_over(shape);
  std::vector<AxisExpr> sample = axes_of(loops);
  sample.erase(sample.begin() + 1);
  nest.couple(loops[1]);
  nest.output(0, "O", output_shape(graph, op, 0).empty() ? std::vector<AxisExpr>{} : sample);
  nest.output(1, "log_probabilities", axes_of(loops));
  nest.input(0, "I", axes_of(loops), 2);
  nest.input(1, "labels", sample);
  nest.input(2, "class_weights", {axis(loops[1])});
  return nest.finish();
}

} // namespace monet
