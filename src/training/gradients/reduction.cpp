#include "training/gradients/rules.hpp"

#include "monet/base/checked.hpp"

namespace monet {

namespace {

/// The shape of the reduced result had it kept its axes. Axes come as input 1 or, in older operator
/// sets, as an attribute.
std::vector<std::int64_t> kept_shape(const GradientContext& context) {
  std::vector<std::int64_t> shape = context.input_shape(0);
  std::vector<std::int64_t> axes = context.op().attributes.integers("axes");
  if (const auto given = known_integers(context.graph(), context.op(), 1))
    axes = *given;
  if (axes.empty()) {
    if (context.op().attributes.integer("noop_with_empty_axes", 0) != 0)
      return shape;
    return std::vector<std::int64_t>(shape.size(), 1);
  }
  for (const std::int64_t axis : axes)
    shape[normal_axis(axis, shape.size())] = 1;
  return shape;
}

void reduce_sum(GradientContext& context) {
  const TensorId kept = context.reshape(context.dy(), kept_shape(context));
  context.give(0, context.expand(kept, context.input_shape(0)));
}

/// Scaled while small, then broadcast as a view.
void reduce_mean(GradientContext& context) {
  const std::vector<std::int64_t> shape = context.input_shape(0);
  const std::vector<std::int64_t> kept = kept_shape(context);
  const double count =
      static_cast<double>(checked_product(shape)) / static_cast<double>(checked_product(kept));
  const std::vector<std::int64_t> small = context.graph().tensor(context.dy()).shape;
  const TensorId scale =
      context.builder().scalar(1.0 / count, context.builder().precision().gradients);
  const TensorId scaled = context.emit_value({"Mul", "", {context.dy(), scale}}, small);
  context.give(0, context.expand(context.reshape(scaled, kept), shape));
}

std::string refuse_unknown_axes(const Graph& graph, const Operator& op) {
  const bool unknown = op.inputs.size() > 1 && op.inputs[1] && !known_integers(graph, op, 1);
  return unknown ? "a reduction has a gradient only when its axes are constants" : "";
}

constexpr GradientRule kRules[]{
    {"ReduceSum", reduce_sum, refuse_unknown_axes},
    {"ReduceMean", reduce_mean, refuse_unknown_axes},
};

} // namespace

std::span<const GradientRule> reduction_gradients() {
  return kRules;
}

} // namespace monet
