#include "training/gradients/rules.hpp"

namespace monet {

namespace {

/// dX = Y * (dY - sum(dY * Y)).
void softmax(GradientContext& context) {
  context.emit(
      {"SoftmaxGrad", kMonetDomain, {context.dy(), context.output(0)}, context.op().attributes},
      {0});
}
/// dX = dY - exp(Y) * sum(dY).
void log_softmax(GradientContext& context) {
  context.emit(
      {"LogSoftmaxGrad", kMonetDomain, {context.dy(), context.output(0)}, context.op().attributes},
      {0});
}

constexpr GradientRule kRules[]{
    {"Softmax", softmax},
    {"LogSoftmax", log_softmax},
};

} // namespace

std::span<const GradientRule> softmax_gradients() {
  return kRules;
}

} // namespace monet
