// Gradient rules of pooling operators; table.cpp lists them.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"

#include <numeric>

namespace monet {

namespace {

/// Reads the argmax indices that the forward operator writes as its second output.
void max_pool(GradientContext& context) {
  context.emit({ops::MaxPoolGrad, {context.dy(), context.output(1)}, context.op().attributes});
}

void average_pool(GradientContext& context) {
  context.emit({ops::AveragePoolGrad, {context.dy()}, context.op().attributes});
}

/// dX = dY / (H*W) for every pixel: scaled once while small, then broadcast as a view.
void global_average_pool(GradientContext& context) {
  const Integers shape = context.input_shape(0);
  const auto pixels =
      std::accumulate(shape.begin() + 2, shape.end(), std::int64_t{1}, std::multiplies<>());
  const TensorId scale = context.scalar(1.0 / static_cast<double>(pixels));
  const TensorId scaled = context.emit_value({ops::Mul, {context.dy(), scale}}, context.dy_shape());
  context.give(0, context.expand(scaled, shape));
}

/// Global pooling is a window over everything.
void lp_pool(GradientContext& context) {
  Attributes attributes = context.op().attributes;
  if (context.op().op_type == ops::GlobalLpPool) {
    const Integers shape = context.input_shape(0);
    attributes.set("kernel_shape", Integers(shape.begin() + 2, shape.end()));
  }
  context.emit({ops::LpPoolGrad,
                {context.dy(), context.input(0), context.output(0)},
                std::move(attributes)});
}

/// dX = dY where X went.
void max_unpool(GradientContext& context) {
  context.emit({ops::MaxUnpoolGrad, {context.dy(), context.input(1)}});
}

std::string refuse_max_pool(const Graph&, const Operator& op) {
  return op.attributes.integer("storage_order", 0) == 0
             ? std::string()
             : "MaxPool has a gradient only with storage_order 0";
}

} // namespace

std::vector<GradientRule> pooling_gradients() {
  return {
      {ops::MaxPool, max_pool, refuse_max_pool, 1},
      {ops::GlobalMaxPool, max_pool}, // a MaxPool over everything in the step
      {ops::AveragePool, average_pool},
      {ops::LpPool, lp_pool},
      {ops::GlobalLpPool, lp_pool},
      {ops::MaxUnpool, max_unpool},
      {ops::GlobalAveragePool, global_average_pool},
  };
}

} // namespace monet
