// Loss scaling and clipping of all gradients, before the updates.
#include "training_graph/update/optimizer.hpp"
#include "workload/shared/op_types.hpp"

namespace monet {

namespace {

TensorId add_scale_state(StepBuilder& builder, std::string_view name, double value,
                         TrainingGraph& step) {
  const TensorId state =
      builder.add_tensor(std::string(name), {}, ElementType::fp32, TensorKind::optimizer_state);
  step.initial.push_back({state, value, {}});
  return state;
}

/// Flag that is 1 if any tensor is not finite. `tensors`: the gradients, or only their norm if it
/// is computed.
TensorId find_non_finite(StepBuilder& builder, const std::vector<TensorId>& tensors) {
  const auto append = [&](OpType op_type, std::string_view domain, std::string name,
                          std::vector<std::optional<TensorId>> inputs) {
    const TensorId flag = builder.add_tensor(name, {}, ElementType::fp32, TensorKind::gradient);
    return append_update(builder, {.name = std::move(name),
                                   .op_type = op_type,
                                   .domain = domain,
                                   .inputs = std::move(inputs),
                                   .outputs = {flag}});
  };
  std::vector<std::optional<TensorId>> flags;
  for (const TensorId tensor : tensors) {
    const std::string name =
        tensors.size() == 1 ? "found_inf" : builder.graph().tensor(tensor).name + ".found_inf";
    flags.emplace_back(append(ops::NonFinite, kMonetDomain, name, {tensor}));
  }
  if (flags.size() == 1)
    return *flags.front();
  return append(ops::Max, "", "found_inf", std::move(flags));
}

void append_scale_update(StepBuilder& builder, const LossScaleOptions& options,
                         const LossScale& scale, TensorId found_inf) {
  NewOperator op{.name = "loss_scale.update",
                 .op_type = ops::LossScaleUpdate,
                 .domain = kMonetDomain,
                 .inputs = {scale.scale, scale.steps, found_inf},
                 .attributes = {{"growth_interval", static_cast<double>(options.growth_interval)},
                                {"factor", options.factor},
                                {"backoff", options.backoff}},
                 .phase = Phase::update};
  for (const TensorId state : {*scale.scale, *scale.steps}) {
    const Tensor before = builder.graph().tensor(state);
    const TensorId after =
        builder.add_tensor(before.name + ".updated", {}, before.type, TensorKind::optimizer_state);
    builder.graph().tensor(after).alias_of = state;
    op.outputs.emplace_back(after);
  }
  builder.add_operator(std::move(op));
}

} // namespace

LossScale add_loss_scale(StepBuilder& builder, const UpdateOptions& options, TrainingGraph& step) {
  if (!options.loss_scale)
    return {};
  LossScale scale;
  scale.scale = add_scale_state(builder, "loss_scale", options.loss_scale->initial, step);
  if (options.loss_scale->dynamic)
    scale.steps = add_scale_state(builder, "loss_scale.steps", 0.0, step);
  step.loss_scale = scale.scale;
  return scale;
}

std::optional<TensorId> loss_seed(StepBuilder& builder, std::int64_t micro_batches,
                                  const LossScale& scale) {
  const double share = 1.0 / static_cast<double>(micro_batches);
  if (!scale.scale) {
    if (micro_batches == 1)
      return std::nullopt;
    return builder.scalar(share, builder.precision().gradient_type(ElementType::fp32));
  }
  if (micro_batches == 1)
    return scale.scale;
  const TensorId seed =
      builder.add_tensor("loss_seed", {}, ElementType::fp32, TensorKind::gradient);
  builder.add_operator({.name = "loss_seed.Mul",
                        .op_type = ops::Mul,
                        .inputs = {*scale.scale, builder.scalar(share, ElementType::fp32)},
                        .outputs = {seed}});
  return seed;
}

void control_gradients(StepBuilder& builder, UpdateEmitter& updates,
                       const std::vector<std::pair<TensorId, TensorId>>& gradients,
                       const UpdateOptions& options, const LossScale& scale, TrainingGraph& step) {
  if (!options.clip_global_norm && !scale.scale)
    return;
  std::vector<TensorId> all;
  for (const auto& [weight, gradient] : gradients)
    all.push_back(gradient);
  const ElementType type = builder.precision().reduction_type();
  const auto scalar = [&](OpType op_type, std::string name, TensorId a, TensorId b) {
    return update_value(builder, {.name = std::move(name), .op_type = op_type, .inputs = {a, b}},
                        {}, type);
  };
  const TensorId one = builder.scalar(1.0, type);
  std::optional<TensorId> unscale;
  if (scale.scale)
    unscale = scalar(ops::Div, "unscale", one, *scale.scale);
  std::optional<TensorId> norm;
  if (options.clip_global_norm) {
    norm = global_norm(builder, all);
    all = {*norm};
  }
  if (scale.scale) {
    step.found_inf = find_non_finite(builder, all);
    updates.skip_when(*step.found_inf);
    if (scale.steps)
      append_scale_update(builder, *options.loss_scale, scale, *step.found_inf);
  }
  if (!norm) {
    updates.scale_gradients(*unscale);
    return;
  }
  if (unscale)
    norm = scalar(ops::Mul, "unscaled_norm", *norm, *unscale);
  step.gradient_norm = norm;
  const TensorId divisor = scalar(ops::Add, "clip_divisor", *norm, builder.scalar(1e-6, type));
  const TensorId limit = builder.scalar(*options.clip_global_norm, type);
  const TensorId ratio = scalar(ops::Div, "clip_ratio", limit, divisor);
  TensorId factor = scalar(ops::Min, "clip_scale", ratio, one);
  if (unscale)
    factor = scalar(ops::Mul, "gradient_scale", factor, *unscale);
  updates.scale_gradients(factor);
}

} // namespace monet
