// Reductions over axes. dY, with its reduced axes put back as axes of size 1, is broadcast to X;
// where the derivative is one and the same for all elements of a sum it is applied while dY is
// small.
#include "base/shared/checked.hpp"
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"

namespace monet {

namespace {

/// The shape of the reduced result had it kept its axes. Axes come as input 1 or, in older operator
/// sets, as an attribute.
Integers kept_shape(const GradientContext& context) {
  Integers shape = context.input_shape(0);
  Integers axes = context.op().attributes.integers("axes");
  if (const auto given = known_integers(context.graph(), context.op(), 1))
    axes = *given;
  if (axes.empty()) {
    if (context.op().attributes.integer("noop_with_empty_axes", 0) != 0)
      return shape;
    return Integers(shape.size(), 1);
  }
  for (const std::int64_t axis : axes)
    shape[normal_axis(axis, shape.size())] = 1;
  return shape;
}

void give_expanded(GradientContext& context, TensorId small) {
  const TensorId kept = context.reshape(small, kept_shape(context));
  context.give(0, context.expand(kept, context.input_shape(0)));
}

void reduce_sum(GradientContext& context) {
  give_expanded(context, context.dy());
}

/// Scaled while small, then broadcast as a view.
void reduce_mean(GradientContext& context) {
  const double count = static_cast<double>(checked_product(context.input_shape(0))) /
                       static_cast<double>(checked_product(kept_shape(context)));
  const TensorId scale = context.scalar(1.0 / count);
  give_expanded(context, context.emit_value({ops::Mul, {context.dy(), scale}}, context.dy_shape()));
}

/// Y = log(sum X): dX = dY / exp(Y), made while small.
void reduce_log_sum(GradientContext& context) {
  const Integers small = context.dy_shape();
  const TensorId sum = context.emit_value({ops::Exp, {context.output(0)}}, small);
  give_expanded(context, context.emit_value({ops::Div, {context.dy(), sum}}, small));
}

/// dX = f(dY, X): sign(X), 2X, product of the others.
void from_input(GradientContext& context) {
  const TensorId dy = context.reshape(context.dy(), kept_shape(context));
  context.emit({context.own_gradient(), {dy, context.input(0)}});
}
/// dX = f(dY, X, Y): X/Y, exp(X - Y), a share of dY where X equals Y.
void from_both(GradientContext& context) {
  const OpType type = context.op().op_type;
  const OpType gradient = type == ops::ReduceMax || type == ops::ReduceMin ? ops::ReduceExtremumGrad
                                                                           : context.own_gradient();
  const Integers kept = kept_shape(context);
  const TensorId dy = context.reshape(context.dy(), kept);
  const TensorId y = context.reshape(context.output(0), kept);
  context.emit({gradient, {dy, context.input(0), y}});
}

/// A running sum's gradient runs the other way.
void running_sum(GradientContext& context) {
  Attributes attributes = context.op().attributes;
  const bool reverse = attributes.integer("reverse", 0) != 0;
  attributes.set("reverse", std::int64_t{reverse ? 0 : 1});
  context.emit({ops::CumSum, {context.dy(), context.input(1)}, attributes});
}

std::string refuse_unknown_axes(const Graph& graph, const Operator& op) {
  const bool unknown = op.inputs.size() > 1 && op.inputs[1] && !known_integers(graph, op, 1);
  return unknown ? "a reduction has a gradient only when its axes are constants" : "";
}

} // namespace

std::vector<GradientRule> reduction_gradients() {
  return {
      {ops::ReduceL1, from_input, refuse_unknown_axes},
      {ops::ReduceL2, from_both, refuse_unknown_axes},
      {ops::ReduceLogSum, reduce_log_sum, refuse_unknown_axes},
      {ops::ReduceLogSumExp, from_both, refuse_unknown_axes},
      {ops::ReduceMax, from_both, refuse_unknown_axes},
      {ops::ReduceMean, reduce_mean, refuse_unknown_axes},
      {ops::ReduceMin, from_both, refuse_unknown_axes},
      {ops::ReduceProd, from_input, refuse_unknown_axes},
      {ops::ReduceSum, reduce_sum, refuse_unknown_axes},
      {ops::ReduceSumSquare, from_input, refuse_unknown_axes},
      {ops::CumSum, running_sum},
  };
}

} // namespace monet
