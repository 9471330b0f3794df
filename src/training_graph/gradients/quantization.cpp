// Rounding has a derivative of zero nearly everywhere; the straight-through estimator (Bengio et
// al. 2013) passes the gradient where nothing was cut off, and stops it elsewhere.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"

namespace monet {

namespace {

void fake_quantize(GradientContext& context) {
  if (context.wants(1)) {
    context.emit({ops::FakeQuantizeGradScale,
                  {context.dy(), context.input(0), context.input(1), context.optional_input(2)},
                  context.op().attributes},
                 {1});
  }
  if (context.wants(0))
    context.emit({ops::MaskGrad, {context.dy(), context.output(1)}});
}

/// Passes dY on unchanged, since a tensor in fp8 stands for the tensor that was cast.
void scaled_cast(GradientContext& context) {
  context.give(0, context.dy());
}

} // namespace

std::vector<GradientRule> quantization_gradients() {
  return {{ops::FakeQuantize, fake_quantize, nullptr, 1},
          {ops::ScaledCast, scaled_cast, nullptr, 1, 1}, // scales are settings
          {ops::BlockCast, scaled_cast, nullptr, 1, 1}};
}

} // namespace monet
