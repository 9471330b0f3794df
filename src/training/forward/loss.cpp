#include "training/forward/forward.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>

namespace monet {

namespace {

TensorId add_target(StepBuilder& builder, std::string name, std::vector<std::int64_t> shape,
                    ElementType type) {
  const TensorId target =
      builder.add_tensor(std::move(name), std::move(shape), type, TensorKind::label);
  builder.graph().inputs.push_back(target);
  return target;
}

NewOperator loss_operator(std::string_view op_type, std::string_view domain) {
  return {.name = fmt::format("loss.{}", op_type),
          .op_type = op_type,
          .domain = domain,
          .phase = Phase::loss};
}

TensorId add_scalar_loss(StepBuilder& builder) {
  return builder.add_tensor("loss", {}, builder.precision().reduction_type(),
                            TensorKind::activation);
}

[[noreturn]] void refuse(const StepBuilder& builder, TensorId prediction, std::string_view what) {
  const Graph& graph = builder.graph();
  throw InputError({graph.origin, 0, 0, fmt::format("output '{}'", graph.tensor(prediction).name)},
                   std::string(what));
}

/// [B, C], [B, C, H, W] and more; but [B, T, C].
std::size_t class_axis(const StepBuilder& builder, const CrossEntropy& options, TensorId logits) {
  const std::vector<std::int64_t> shape = builder.shape(logits);
  if (shape.size() < 2) {
    refuse(builder, logits,
           fmt::format("cross_entropy needs logits of shape [B, classes], [B, T, classes] or "
                       "[B, classes, H, W], not {} axes",
                       shape.size()));
  }
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t axis = options.class_axis.value_or(rank == 3 ? -1 : 1);
  if (axis != -1 && axis != rank - 1 && axis != 1) {
    refuse(builder, logits,
           fmt::format("classes are axis 1 or the last of {} axes, not axis {}", rank, axis));
  }
  return static_cast<std::size_t>(axis < 0 ? rank - 1 : axis);
}

/// The mean over all labels that are not ignored. Two operators; ONNX wants classes in axis 1 of
/// the second, which folding the leading axes into one gives where they are last.
LossParts loss_parts(StepBuilder& builder, const CrossEntropy& options, TensorId logits) {
  const std::size_t axis = class_axis(builder, options, logits);
  const std::vector<std::int64_t> shape = builder.shape(logits);
  const std::int64_t classes = shape[axis];
  std::vector<std::int64_t> labels = shape;
  labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(axis));
  LossParts parts{"SoftmaxCrossEntropyGrad", logits, {}, {}, {}, {}, {}, {}, {}};
  parts.target = add_target(builder, "labels", labels, ElementType::int64);
  const bool last = axis + 1 == shape.size();
  parts.attributes.set("axis", last ? std::int64_t{-1} : static_cast<std::int64_t>(axis));

  NewOperator log_softmax = loss_operator("LogSoftmax", "");
  log_softmax.inputs = {logits};
  log_softmax.attributes.set("axis", parts.attributes.integer("axis", -1));
  parts.saved = builder.add_tensor("log_probabilities", shape, builder.precision().reduction_type(),
                                   TensorKind::activation);
  log_softmax.outputs = {parts.saved};
  builder.add_operator(std::move(log_softmax));

  const bool smooth = options.label_smoothing != 0.0;
  NewOperator nll = smooth ? loss_operator("LabelSmoothingLoss", kMonetDomain)
                           : loss_operator("NegativeLogLikelihoodLoss", "");
  nll.inputs = {parts.saved, parts.target};
  if (last) {
    const std::int64_t rows = checked_product(labels);
    nll.inputs = {builder.reshape(*parts.saved, {rows, classes}, loss_operator("Reshape", "")),
                  builder.reshape(*parts.target, {rows}, loss_operator("Reshape", ""))};
  }
  nll.attributes.set("reduction", std::string("mean"));
  for (Attributes* attributes : {&nll.attributes, &parts.attributes}) {
    if (smooth)
      attributes->set("label_smoothing", options.label_smoothing);
    if (options.ignore_index)
      attributes->set("ignore_index", *options.ignore_index);
  }
  parts.loss = add_scalar_loss(builder);
  nll.outputs = {parts.loss};
  if (options.ignore_index) {
    parts.counted = builder.add_tensor("loss.counted", {}, builder.precision().reduction_type(),
                                       TensorKind::activation);
    nll.outputs.emplace_back(parts.counted);
  }
  builder.add_operator(std::move(nll));
  return parts;
}

/// Weights of the targets' ones, as a constant.
TensorId add_weights(StepBuilder& builder, const std::vector<double>& weights,
                     TensorId prediction) {
  const ElementType type = builder.graph().tensor(prediction).type;
  if (weights.size() == 1)
    return builder.scalar(weights.front(), type);
  const std::vector<std::int64_t> shape = builder.shape(prediction);
  const auto count = static_cast<std::int64_t>(weights.size());
  if (shape.empty() || shape.back() != count) {
    refuse(builder, prediction,
           fmt::format("{} numbers are given as pos_weight; one, or one for each element of the "
                       "last axis, is expected",
                       count));
  }
  const TensorId id = builder.add_tensor("loss.pos_weight", {count}, type, TensorKind::constant);
  builder.graph().tensor(id).values = weights;
  return id;
}

/// Mean over all elements of a function of prediction and target of the same shape.
LossParts elementwise_loss(StepBuilder& builder, std::string_view op_type,
                           std::string_view gradient_type, const std::vector<double>& weights,
                           TensorId prediction) {
  LossParts parts{gradient_type, prediction, {}, {}, {}, {}, {}, {}, {}};
  parts.target = add_target(builder, "targets", builder.shape(prediction),
                            builder.graph().tensor(prediction).type);
  NewOperator op = loss_operator(op_type, kMonetDomain);
  op.inputs = {prediction, parts.target};
  if (!weights.empty()) {
    parts.weight = add_weights(builder, weights, prediction);
    op.inputs.emplace_back(parts.weight);
  }
  parts.loss = add_scalar_loss(builder);
  op.outputs = {parts.loss};
  builder.add_operator(std::move(op));
  return parts;
}

LossParts loss_parts(StepBuilder& builder, const Mse&, TensorId prediction) {
  return elementwise_loss(builder, "MseLoss", "MseLossGrad", {}, prediction);
}

LossParts loss_parts(StepBuilder& builder, const BceWithLogits& options, TensorId prediction) {
  return elementwise_loss(builder, "BceWithLogitsLoss", "BceWithLogitsLossGrad", options.pos_weight,
                          prediction);
}

LossParts loss_parts(StepBuilder&, const NoLoss&, TensorId prediction) {
  return {{}, prediction, {}, {}, {}, {}, {}, {}, {}};
}

/// `what` of `inputs` in the loss phase: a scalar.
TensorId scalar_of(StepBuilder& builder, std::string_view what,
                   std::vector<std::optional<TensorId>> inputs, std::string name) {
  const TensorId result = builder.add_tensor(
      std::move(name), {}, builder.graph().tensor(*inputs.front()).type, TensorKind::activation);
  NewOperator op = loss_operator(what, "");
  op.inputs = std::move(inputs);
  op.outputs = {result};
  builder.add_operator(std::move(op));
  return result;
}

/// The network's own losses, weighted and added up.
LossParts network_loss(StepBuilder& builder, const NetworkLoss& loss,
                       const std::vector<TensorId>& outputs) {
  LossParts parts{{}, outputs.front(), {}, {}, {}, {}, {}, {}, {}};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const double share = loss.outputs.empty() ? 1.0 : loss.outputs[i].second;
    parts.shares.push_back(share);
    TensorId part = outputs[i];
    if (!builder.shape(part).empty())
      part = builder.reshape(part, {}, loss_operator("Reshape", ""));
    if (share != 1.0) {
      const TensorId weight = builder.scalar(share, builder.graph().tensor(part).type);
      part = scalar_of(builder, "Mul", {part, weight}, "loss.weighted");
    }
    parts.loss = parts.loss ? scalar_of(builder, "Add", {parts.loss, part}, "loss.sum") : part;
  }
  return parts;
}

TensorId scaled(StepBuilder& builder, TensorId gradient, std::optional<TensorId> seed) {
  if (!seed)
    return gradient;
  const Tensor source = builder.graph().tensor(gradient);
  const TensorId result =
      builder.add_tensor(source.name + ".scaled", source.shape, source.type, source.kind);
  builder.add_operator({.name = source.name + ".scale",
                        .op_type = "Mul",
                        .inputs = {gradient, *seed},
                        .outputs = {result}});
  return result;
}

} // namespace

Loss resolve_loss(const Graph& network, const Loss& loss) {
  const auto scalar = std::find_if(network.outputs.begin(), network.outputs.end(),
                                   [&](auto id) { return is_floating(network.tensor(id).type); });
  const auto* classes = std::get_if<CrossEntropy>(&loss);
  const bool given =
      !classes || classes->label_smoothing != 0.0 || classes->ignore_index || classes->class_axis;
  const bool has_loss = scalar != network.outputs.end() && network.tensor(*scalar).shape.empty();
  return !given && has_loss ? Loss(NetworkLoss{}) : loss;
}

std::vector<TensorId> differentiated_outputs(const Graph& network, const Loss& loss) {
  std::vector<TensorId> outputs;
  const auto* own = std::get_if<NetworkLoss>(&loss);
  if (own && !own->outputs.empty()) {
    for (const auto& [name, share] : own->outputs) {
      const auto id = network.find_tensor(name);
      const bool output = id && std::find(network.outputs.begin(), network.outputs.end(), *id) !=
                                    network.outputs.end();
      if (!output || !is_floating(network.tensor(*id).type) ||
          element_count(network.tensor(*id)) != 1)
        throw InputError({network.origin, 0, 0, fmt::format("output '{}'", name)},
                         output ? "is no scalar, so it can be no loss"
                                : "is wanted as a loss, but the network has no such output");
      outputs.push_back(*id);
    }
    return outputs;
  }
  for (const TensorId id : network.outputs) {
    const Tensor& tensor = network.tensor(id);
    if (!is_floating(tensor.type) || (own && element_count(tensor) != 1))
      continue;
    if (outputs.empty() || std::holds_alternative<NoLoss>(loss))
      outputs.push_back(id);
  }
  if (own && outputs.empty())
    throw InputError({network.origin, 0, 0, ""}, "the network has no scalar output to be its loss");
  return outputs;
}

LossParts add_loss(StepBuilder& builder, const Loss& loss,
                   const std::vector<TensorId>& predictions) {
  if (const auto* own = std::get_if<NetworkLoss>(&loss))
    return network_loss(builder, *own, predictions);
  return std::visit(
      [&](const auto& of) {
        if constexpr (std::is_same_v<std::decay_t<decltype(of)>, NetworkLoss>)
          return LossParts{};
        else
          return loss_parts(builder, of, predictions.front());
      },
      loss);
}

void start_backward(StepBuilder& builder, Differentiator& differentiator, const LossParts& loss,
                    const std::vector<TensorId>& outputs, std::optional<TensorId> seed) {
  const auto new_gradient = [&](TensorId of) {
    const Tensor source = builder.graph().tensor(of);
    return builder.add_tensor(source.name + ".grad", source.shape,
                              builder.precision().gradient_type(source.type), TensorKind::gradient);
  };
  for (std::size_t i = 0; i < loss.shares.size(); ++i) {
    const Tensor output = builder.graph().tensor(outputs[i]);
    TensorId gradient =
        builder.scalar(loss.shares[i], builder.precision().gradient_type(output.type));
    if (seed)
      gradient = loss.shares[i] == 1.0 ? *seed : scaled(builder, gradient, seed);
    if (!output.shape.empty()) {
      NewOperator op = loss_operator("Reshape", "");
      op.phase = Phase::backward;
      gradient = builder.reshape(gradient, output.shape, std::move(op));
    }
    differentiator.give(outputs[i], gradient);
  }
  if (!loss.shares.empty())
    return;
  if (loss.gradient_type.empty()) {
    for (const TensorId output : outputs) {
      const TensorId fed = new_gradient(output);
      builder.graph().inputs.push_back(fed);
      differentiator.give(output, scaled(builder, fed, seed));
    }
    return;
  }
  NewOperator op = loss_operator(loss.gradient_type, kMonetDomain);
  op.phase = Phase::backward;
  op.forward_op = builder.graph().tensor(loss.saved.value_or(*loss.loss)).producer;
  op.inputs = {loss.saved.value_or(loss.prediction), loss.target};
  for (const auto& more : {loss.counted, loss.weight}) {
    if (more)
      op.inputs.emplace_back(more);
  }
  op.attributes = loss.attributes;
  const TensorId gradient = new_gradient(loss.prediction);
  op.outputs = {gradient};
  builder.add_operator(std::move(op));
  differentiator.give(loss.prediction, scaled(builder, gradient, seed));
}

} // namespace monet
