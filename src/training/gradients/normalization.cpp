// Batch and layer normalisation in training mode. The forward operator also writes mean and inverse
// standard deviation (outputs 3 and 4 of BatchNormalization, 1 and 2 of LayerNormalization; see
// forward.cpp).
#include "training/gradients/rules.hpp"

namespace monet {

namespace {

using Target = std::optional<std::size_t>;

std::vector<Target> wanted(const GradientContext& context,
                           std::initializer_list<std::size_t> inputs) {
  std::vector<Target> targets;
  for (const std::size_t i : inputs)
    targets.push_back(context.wants(i) ? Target(i) : std::nullopt);
  while (!targets.empty() && !targets.back())
    targets.pop_back();
  return targets;
}

/// One operator: sums of dY and dY*xhat per channel (dbeta, dgamma), then
/// dX = gamma * invstd * (dY - dbeta/m - xhat * dgamma/m), m = elements per channel.
void batch_norm(GradientContext& context) {
  context.keep_as_pytorch(context.input(3));
  context.keep_as_pytorch(context.input(4));
  context.emit(
      {"BatchNormGrad",
       kMonetDomain,
       {context.dy(), context.input(0), context.input(1), context.output(3), context.output(4)},
       context.op().attributes},
      wanted(context, {0, 1, 2}));
}

/// Two operators, because rows are independent in dX while dgamma and dbeta are summed over rows:
/// dX = invstd * (g - mean(g) - xhat * mean(g*xhat)) with g = gamma*dY;  dgamma = sum dY*xhat,
/// dbeta = sum dY.
void layer_norm(GradientContext& context) {
  const Attributes attributes = context.op().attributes;
  const TensorId dy = context.dy();
  const TensorId x = context.input(0);
  const TensorId mean = context.output(1);
  const TensorId inverse_std = context.output(2);
  std::vector<Target> parameters = wanted(context, {1, 2});
  if (!parameters.empty()) {
    context.emit({"LayerNormGradWeight", kMonetDomain, {dy, x, mean, inverse_std}, attributes},
                 parameters);
  }
  if (context.wants(0)) {
    context.emit(
        {"LayerNormGrad", kMonetDomain, {dy, x, context.input(1), mean, inverse_std}, attributes},
        {0});
  }
}

constexpr GradientRule kRules[]{
    {"BatchNormalization", batch_norm, nullptr, 1},
    {"LayerNormalization", layer_norm, nullptr, 1},
};

} // namespace

std::span<const GradientRule> normalization_gradients() {
  return kRules;
}

} // namespace monet
