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

/// dX = (dY - u * sum(dY * Y)) / norm, with u = Y for the Euclidean norm and sign(X) for p = 1. The
/// norm is made again from X.
void lp_normalization(GradientContext& context) {
  context.emit({"LpNormalizationGrad",
                kMonetDomain,
                {context.dy(), context.input(0)},
                context.op().attributes},
               {0});
}

constexpr GradientRule kRules[]{
    {"LpNormalization", lp_normalization},
    {"Softmax", softmax},
    {"LogSoftmax", log_softmax},
};

} // namespace

std::span<const GradientRule> softmax_gradients() {
  return kRules;
}

} // namespace monet
