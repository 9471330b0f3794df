// Rules of scalar losses and of their gradients with respect to the prediction.
#include "workload/operators/families.hpp"

namespace monet {

namespace {

// Order of work: add, multiply, divide, compare, square_root, transcendental.
constexpr VectorWork kPickAndAdd{1, 0, 0, 0, 0, 0};
constexpr VectorWork kPickedGrad{0, 1, 0, 1, 0, 0};       // class == label ? dY * w : 0
constexpr VectorWork kCrossEntropyGrad{1, 1, 0, 1, 0, 1}; // (exp(logp) - (class == label)) / n
constexpr VectorWork kSmoothing{1, 1, 0, 1, 0, 0};        // logp * (e/classes, more at the label)
constexpr VectorWork kScaled{0, 1, 0, 0, 0, 0};

/// Axes of the labels: those of the scores without the class axis.
std::vector<AxisExpr> label_axes(const Graph& graph, const Operator& op,
                                 std::span<const LoopIndex> loops, std::size_t class_axis) {
  if (input_shape(graph, op, 1).size() + 1 != loops.size())
    fail(graph, op, "log-probabilities have one axis more than labels");
  std::vector<AxisExpr> axes = axes_of(loops);
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(class_axis));
  return axes;
}

} // namespace

/// (log-probabilities [N, C, ...], labels [N, ...], class weights [C]) -> (loss [], or [N, ...] if
/// not reduced; divisor []): selects one element per row.
LoopNest build_nll(const Graph& graph, const Operator& op) {
  const auto& scores = input_shape(graph, op, 0);
  const auto& labels = input_shape(graph, op, 1);
  if (scores.size() != labels.size() + 1 || labels.empty())
    fail(graph, op, "log-probabilities have one axis more than labels");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kPickAndAdd);
  const std::vector<LoopIndex> loops = nest.loops_over(labels);
  std::vector<AxisExpr> picked = axes_of(loops);
  picked.insert(picked.begin() + 1, axis_data_dependent());
  const bool reduced = op.attributes.text("reduction", "mean") != "none";
  nest.output(0, "O", reduced ? std::vector<AxisExpr>{} : axes_of(loops));
  if (has_output(op, 1))
    nest.output(1, "counted", {});
  nest.input(0, "I", std::move(picked));
  nest.input(1, "labels", axes_of(loops));
  nest.input(2, "weight", {axis_data_dependent()});
  return nest.finish();
}

/// (dY, labels [N, ...], class weights [C], divisor of the mean) -> gradient of the
/// log-probabilities [N, C, ...]; attribute `axis` is the class axis.
LoopNest build_nll_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kPickedGrad);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  if (loops.size() < 2)
    fail(graph, op, "log-probabilities have a batch and a class axis");
  const std::size_t classes =
      normal_axis(graph, op, op.attributes.integer("axis", 1), loops.size());
  const std::vector<AxisExpr> labels = label_axes(graph, op, loops, classes);
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "dO", input_shape(graph, op, 0).empty() ? std::vector<AxisExpr>{} : labels);
  nest.input(1, "labels", labels);
  nest.input(2, "weight", {axis(loops[classes])});
  nest.input(3, "counted", {});
  return nest.finish();
}

/// (log-probabilities [N, C, ...], labels [N, ...], class weights [C]) -> (loss [], number of
/// counted labels []): every class has a small weight, the label a larger one.
LoopNest build_label_smoothing(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kSmoothing);
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  if (loops.size() < 2)
    fail(graph, op, "log-probabilities have a batch and a class axis");
  nest.outputs(0, {"O", "counted"}, {});
  nest.input(0, "I", axes_of(loops));
  nest.input(1, "labels", label_axes(graph, op, loops, 1));
  nest.input(2, "weight", {axis(loops[1])});
  return nest.finish();
}

/// (log-probabilities, labels, number of counted labels or sum of their weights, class weights) ->
/// gradient of the logits; attribute `axis` is the class axis.
LoopNest build_cross_entropy_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kCrossEntropyGrad);
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  if (loops.empty())
    fail(graph, op, "log-probabilities have no axis");
  const std::size_t classes =
      normal_axis(graph, op, op.attributes.integer("axis", -1), loops.size());
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "I", axes_of(loops));
  nest.input(1, "labels", label_axes(graph, op, loops, classes));
  nest.input(2, "counted", {});
  nest.input(3, "weight", {axis(loops[classes])});
  return nest.finish();
}

/// (prediction, target, weight) -> loss [] or gradient of the prediction. L1 also outputs the
/// difference's sign as int8 if its gradient is required.
LoopNest build_elementwise_loss(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, row_of(op).work);
  const std::vector<LoopIndex> loops = nest.loops_over(input_shape(graph, op, 0));
  nest.output(0, "O", nest.broadcast(output_shape(graph, op, 0), loops));
  if (has_output(op, 1))
    nest.output(1, "sign", axes_of(loops));
  nest.inputs(0, {"I", "labels"}, axes_of(loops));
  nest.inputs_over(loops, 2, {"weight"});
  return nest.finish();
}

/// (target, or sign of the difference) -> gradient of the prediction.
LoopNest build_scaled_grad(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::vector, kScaled);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "labels", axes_of(loops));
  return nest.finish();
}

} // namespace monet
