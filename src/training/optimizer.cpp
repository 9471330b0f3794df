#include "training/optimizer.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

namespace monet {

namespace {

struct OptimizerInfo {
  OptimizerKind kind;
  std::string_view op_type;
  std::vector<std::string_view> states;
};

OptimizerInfo info_of(OptimizerKind kind) {
  switch (kind) {
  case OptimizerKind::sgd:
    return {kind, "SgdUpdate", {}};
  case OptimizerKind::momentum:
    return {kind, "MomentumUpdate", {"momentum"}};
  case OptimizerKind::adam:
    return {kind, "AdamUpdate", {"first_moment", "second_moment"}};
  case OptimizerKind::adamw:
    return {kind, "AdamWUpdate", {"first_moment", "second_moment"}};
  }
  throw InternalError("optimizer without an update");
}

Attributes attributes_of(const OptimizerOptions& options) {
  Attributes attributes;
  attributes.set("learning_rate", options.learning_rate);
  attributes.set("weight_decay", options.weight_decay);
  if (options.kind == OptimizerKind::momentum)
    attributes.set("momentum", options.momentum);
  if (options.kind == OptimizerKind::adam || options.kind == OptimizerKind::adamw) {
    attributes.set("beta1", options.beta1);
    attributes.set("beta2", options.beta2);
    attributes.set("epsilon", options.epsilon);
  }
  return attributes;
}

/// The tensor after the update, in the same memory.
TensorId add_updated(StepBuilder& builder, TensorId before, TensorKind kind) {
  const Tensor source = builder.graph().tensor(before);
  const TensorId after =
      builder.add_tensor(source.name + ".updated", source.shape, source.type, kind);
  builder.graph().tensor(after).alias_of = before;
  return after;
}

} // namespace

ParameterRecord add_update(StepBuilder& builder, const OptimizerOptions& options, TensorId weight,
                           TensorId gradient) {
  const OptimizerInfo info = info_of(options.kind);
  const Tensor source = builder.graph().tensor(weight);
  const Precision& precision = builder.precision();
  ParameterRecord record{weight, gradient, {}, {}};
  for (const std::string_view state : info.states) {
    record.states.push_back(builder.add_tensor(fmt::format("{}.{}", source.name, state),
                                               source.shape, precision.optimizer_state,
                                               TensorKind::optimizer_state));
  }
  const bool master = precision.master_weights.has_value();
  if (master) {
    record.states.push_back(builder.add_tensor(source.name + ".master", source.shape,
                                               *precision.master_weights,
                                               TensorKind::optimizer_state));
  }
  NewOperator update;
  update.name = fmt::format("{}.{}", source.name, info.op_type);
  update.op_type = info.op_type;
  update.domain = kMonetDomain;
  update.attributes = attributes_of(options);
  update.attributes.set("master_weights", std::int64_t{master ? 1 : 0});
  update.phase = Phase::update;
  // With a master copy the low-precision weight is only written.
  update.inputs = {master ? std::nullopt : std::optional(weight), gradient};
  // A buffer, not a parameter: it is the weight's own memory, to be counted once.
  record.updated = add_updated(builder, weight, TensorKind::buffer);
  update.outputs = {record.updated};
  for (const TensorId state : record.states) {
    update.inputs.emplace_back(state);
    update.outputs.emplace_back(add_updated(builder, state, TensorKind::optimizer_state));
  }
  builder.add_operator(std::move(update));
  return record;
}

} // namespace monet
