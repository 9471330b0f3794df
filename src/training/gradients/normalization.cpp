// Normalisations. In training the forward operator also writes mean and inverse standard deviation:
// outputs 3 and 4 of BatchNormalization, 1 and 2 of Layer-, Group- and InstanceNormalization;
// RMSNormalization writes the inverse root of the mean square (output 1). See forward.cpp.
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

/// With its running statistics, which do not depend on X, batch normalisation is a scale and a
/// shift per channel: dX = gamma * invstd * dY; dgamma = sum dY*xhat, dbeta = sum dY.
void fixed_batch_norm(GradientContext& context) {
  const Attributes attributes = context.op().attributes;
  const TensorId dy = context.dy();
  const TensorId variance = context.input(4);
  std::vector<Target> parameters = wanted(context, {1, 2});
  if (!parameters.empty()) {
    context.emit({"BatchNormInferenceGradWeight",
                  kMonetDomain,
                  {dy, context.input(0), context.input(3), variance},
                  attributes},
                 parameters);
  }
  if (context.wants(0)) {
    context.emit(
        {"BatchNormInferenceGrad", kMonetDomain, {dy, context.input(1), variance}, attributes},
        {0});
  }
}

/// One operator: sums of dY and dY*xhat per channel (dbeta, dgamma), then
/// dX = gamma * invstd * (dY - dbeta/m - xhat * dgamma/m), m = elements per channel.
void batch_norm(GradientContext& context) {
  if (context.op().attributes.integer("training_mode", 0) == 0) {
    fixed_batch_norm(context);
    return;
  }
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

std::optional<TensorId> scale(const GradientContext& context) {
  return context.has_input(1) ? std::optional(context.input(1)) : std::nullopt;
}

/// As layer normalisation, over the channels of a group and all places; an instance norm has as
/// many groups as channels.
void group_norm(GradientContext& context) {
  const Attributes attributes = context.op().attributes;
  const TensorId dy = context.dy();
  const TensorId x = context.input(0);
  const TensorId mean = context.output(1);
  const TensorId inverse_std = context.output(2);
  std::vector<Target> parameters = wanted(context, {1, 2});
  if (!parameters.empty()) {
    context.emit({"GroupNormGradWeight", kMonetDomain, {dy, x, mean, inverse_std}, attributes},
                 parameters);
  }
  if (context.wants(0)) {
    context.emit(
        {"GroupNormGrad", kMonetDomain, {dy, x, scale(context), mean, inverse_std}, attributes},
        {0});
  }
}

/// dX = r * (g - x*r * mean(g * x*r)) with g = gamma*dY, r = 1/sqrt(mean(x^2) + epsilon);
/// dgamma = sum dY * x*r.
void rms_norm(GradientContext& context) {
  const Attributes attributes = context.op().attributes;
  const TensorId dy = context.dy();
  const TensorId x = context.input(0);
  const TensorId inverse = context.output(1);
  if (context.wants(1)) {
    context.emit({"RMSNormGradWeight", kMonetDomain, {dy, x, inverse}, attributes}, {1});
  }
  if (context.wants(0)) {
    context.emit({"RMSNormGrad", kMonetDomain, {dy, x, scale(context), inverse}, attributes}, {0});
  }
}

constexpr GradientRule kRules[]{
    {"BatchNormalization", batch_norm, nullptr, 1},
    {"GroupNormalization", group_norm, nullptr, 1},
    {"InstanceNormalization", group_norm, nullptr, 1},
    {"LayerNormalization", layer_norm, nullptr, 1},
    {"RMSNormalization", rms_norm, nullptr, 1},
};

} // namespace

std::span<const GradientRule> normalization_gradients() {
  return kRules;
}

} // namespace monet
