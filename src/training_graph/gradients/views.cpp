// Views: the gradient of a rearrangement is the inverse rearrangement.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"

#include <numeric>

namespace monet {

namespace {

void same_elements(GradientContext& context) {
  context.give(0, context.reshape(context.dy(), context.input_shape(0)));
}

void transpose(GradientContext& context) {
  const Integers shape = context.input_shape(0);
  Integers order(shape.size());
  std::iota(order.rbegin(), order.rend(), std::int64_t{0});
  order = context.op().attributes.integers("perm", order);
  Integers inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  context.emit({ops::Transpose, {context.dy()}, {{"perm", inverse}}});
}

void expand(GradientContext& context) {
  context.give(0, context.reduce_to(context.dy(), context.input_shape(0)));
}

/// Between floating types only: the gradient is cast back. A cast to integers
/// has a result that is not floating, so that no gradient arrives.
void cast(GradientContext& context) {
  const Graph& graph = context.graph();
  const ElementType type =
      context.builder().precision().gradient_type(graph.tensor(context.input(0)).type);
  if (graph.tensor(context.dy()).type == type)
    context.give(0, context.dy());
  else
    context.emit({ops::Cast, {context.dy()}});
}

} // namespace

std::vector<GradientRule> view_gradients() {
  return {
      {ops::Identity, same_elements},
      {ops::Reshape, same_elements},
      {ops::Flatten, same_elements},
      {ops::Squeeze, same_elements},
      {ops::Unsqueeze, same_elements},
      {ops::Transpose, transpose},
      {ops::Expand, expand},
      {ops::Cast, cast},
      {ops::CastLike, cast},
      {ops::Shape},
      {ops::Size},
  };
}

} // namespace monet
