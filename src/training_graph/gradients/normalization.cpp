// Normalisations. In training the forward operator also writes mean and inverse standard deviation:
// outputs 3 and 4 of BatchNormalization, 1 and 2 of Layer-, Group- and InstanceNormalization;
// RMSNormalization writes the inverse root of the mean square (output 1). See forward.cpp.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"

namespace monet {

namespace {

/// With its running statistics, which do not depend on X, batch normalisation is a scale and a
/// shift per channel: dX = gamma * invstd * dY; dgamma = sum dY*xhat, dbeta = sum dY.
void fixed_batch_norm(GradientContext& context) {
  const Attributes attributes = context.op().attributes;
  const TensorId dy = context.dy();
  const TensorId variance = context.input(4);
  if (const auto parameters = context.wanted({1, 2}); !parameters.empty()) {
    context.emit({ops::BatchNormInferenceGradWeight,
                  {dy, context.input(0), context.input(3), variance},
                  attributes},
                 parameters);
  }
  if (context.wants(0))
    context.emit({ops::BatchNormInferenceGrad, {dy, context.input(1), variance}, attributes});
}

/// One operator: sums of dY and dY*xhat per channel (dbeta, dgamma), then
/// dX = gamma * invstd * (dY - dbeta/m - xhat * dgamma/m), m = elements per channel.
void batch_norm(GradientContext& context) {
  if (context.op().attributes.integer("training_mode", 0) == 0) {
    fixed_batch_norm(context);
    return;
  }
  context.emit(
      {ops::BatchNormGrad,
       {context.dy(), context.input(0), context.input(1), context.output(3), context.output(4)},
       context.op().attributes},
      context.wanted({0, 1, 2}));
}

/// Two operators, because rows are independent in dX while dgamma and dbeta are summed over rows:
/// `name`Grad and `name`GradWeight, which read what the forward operator left after Y.
void row_norm(GradientContext& context, const std::string& name) {
  const Attributes attributes = context.op().attributes;
  std::vector<std::optional<TensorId>> inputs{context.dy(), context.input(0)};
  for (std::size_t i = 1; i < context.op().outputs.size(); ++i)
    inputs.emplace_back(context.output(i));
  if (const auto parameters = context.wanted({1, 2}); !parameters.empty())
    context.emit({name + "GradWeight", inputs, attributes}, parameters);
  inputs.insert(inputs.begin() + 2, context.optional_input(1)); // gamma
  if (context.wants(0))
    context.emit({name + "Grad", inputs, attributes});
}

/// dX = invstd * (g - mean(g) - xhat * mean(g*xhat)) with g = gamma*dY;  dgamma = sum dY*xhat,
/// dbeta = sum dY.
void layer_norm(GradientContext& context) {
  row_norm(context, "LayerNorm");
}
/// Group normalisation: layer normalisation, over the channels of a group and all places; an
/// instance norm has one group per channel.
void group_norm(GradientContext& context) {
  row_norm(context, "GroupNorm");
}
/// dX = r * (g - x*r * mean(g * x*r)) with g = gamma*dY, r = 1/sqrt(mean(x^2) + epsilon);
/// dgamma = sum dY * x*r.
void rms_norm(GradientContext& context) {
  row_norm(context, "RMSNorm");
}

} // namespace

std::vector<GradientRule> normalization_gradients() {
  return {
      {ops::BatchNormalization, batch_norm, nullptr, 1},
      {ops::GroupNormalization, group_norm, nullptr, 1},
      {ops::InstanceNormalization, group_norm, nullptr, 1},
      {ops::LayerNormalization, layer_norm, nullptr, 1},
      {ops::RMSNormalization, rms_norm, nullptr, 1},
  };
}

} // namespace monet
