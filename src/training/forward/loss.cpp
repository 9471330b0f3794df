#include "training/forward/forward.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"

#include <fmt/core.h>

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
  LossParts parts{"SoftmaxCrossEntropyGrad", logits, {}, {}, {}, {}, {}, {}};
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
  const ElementType type = builder.precision().activations;
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
  LossParts parts{gradient_type, prediction, {}, {}, {}, {}, {}, {}};
  parts.target =
      add_target(builder, "targets", builder.shape(prediction), builder.precision().activations);
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
  return {{}, prediction, {}, {}, {}, {}, {}, {}};
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

LossParts add_loss(StepBuilder& builder, const Loss& loss, TensorId prediction) {
  return std::visit([&](const auto& of) { return loss_parts(builder, of, prediction); }, loss);
}

void start_backward(StepBuilder& builder, Differentiator& differentiator, const LossParts& loss,
                    const std::vector<TensorId>& outputs, std::optional<TensorId> seed) {
  const auto new_gradient = [&](TensorId of) {
    const Tensor source = builder.graph().tensor(of);
    return builder.add_tensor(source.name + ".grad", source.shape, builder.precision().gradients,
                              TensorKind::gradient);
  };
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
