#include "training/loss.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <span>

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
  NewOperator op;
  op.name = fmt::format("loss.{}", op_type);
  op.op_type = op_type;
  op.domain = domain;
  op.phase = Phase::loss;
  return op;
}

TensorId add_scalar_loss(StepBuilder& builder) {
  return builder.add_tensor("loss", {}, builder.precision().accumulate, TensorKind::activation);
}

/// Classes are the last axis: logits [B, V] with labels [B], or [B, T, V] with [B, T]. Two standard
/// operators; ONNX wants classes in axis 1 of the second, which folding the leading axes into one
/// gives.
LossParts cross_entropy(StepBuilder& builder, TensorId logits) {
  const std::vector<std::int64_t> shape = builder.shape(logits);
  if (shape.size() != 2 && shape.size() != 3) {
    throw InputError(
        {builder.graph().origin, 0, 0,
         fmt::format("output '{}'", builder.graph().tensor(logits).name)},
        fmt::format(
            "cross_entropy needs logits of shape [B, classes] or [B, T, classes], not {} axes",
            shape.size()));
  }
  const std::vector<std::int64_t> leading(shape.begin(), shape.end() - 1);
  LossParts parts{LossKind::cross_entropy, logits, {}, {}, {}};
  parts.target = add_target(builder, "labels", leading, ElementType::int64);

  NewOperator log_softmax = loss_operator("LogSoftmax", "");
  log_softmax.inputs = {logits};
  log_softmax.attributes.set("axis", std::int64_t{-1});
  parts.saved = builder.add_tensor("log_probabilities", shape, builder.precision().activations,
                                   TensorKind::activation);
  log_softmax.outputs = {parts.saved};
  builder.add_operator(std::move(log_softmax));

  const std::int64_t rows = checked_product(leading);
  NewOperator nll = loss_operator("NegativeLogLikelihoodLoss", "");
  nll.inputs = {builder.reshape(*parts.saved, {rows, shape.back()}, loss_operator("Reshape", "")),
                builder.reshape(*parts.target, {rows}, loss_operator("Reshape", ""))};
  nll.attributes.set("reduction", std::string("mean"));
  parts.loss = add_scalar_loss(builder);
  nll.outputs = {parts.loss};
  builder.add_operator(std::move(nll));
  return parts;
}

/// Mean over all elements of a function of prediction and target of the same shape.
LossParts elementwise_loss(StepBuilder& builder, LossKind kind, TensorId prediction,
                           std::string_view op_type) {
  LossParts parts{kind, prediction, {}, {}, {}};
  parts.target =
      add_target(builder, "targets", builder.shape(prediction), builder.precision().activations);
  NewOperator op = loss_operator(op_type, kMonetDomain);
  op.inputs = {prediction, parts.target};
  parts.loss = add_scalar_loss(builder);
  op.outputs = {parts.loss};
  builder.add_operator(std::move(op));
  return parts;
}

TensorId scaled(StepBuilder& builder, TensorId gradient, std::optional<TensorId> seed) {
  if (!seed)
    return gradient;
  const Tensor source = builder.graph().tensor(gradient);
  const TensorId result =
      builder.add_tensor(source.name + ".scaled", source.shape, source.type, source.kind);
  NewOperator op = loss_operator("Mul", "");
  op.name = source.name + ".scale";
  op.phase = Phase::backward;
  op.inputs = {gradient, *seed};
  op.outputs = {result};
  builder.add_operator(std::move(op));
  return result;
}

} // namespace

LossParts add_loss(StepBuilder& builder, LossKind kind, TensorId prediction) {
  switch (kind) {
  case LossKind::cross_entropy:
    return cross_entropy(builder, prediction);
  case LossKind::mse:
    return elementwise_loss(builder, kind, prediction, "MseLoss");
  case LossKind::bce_with_logits:
    return elementwise_loss(builder, kind, prediction, "BceWithLogitsLoss");
  case LossKind::none:
    return {LossKind::none, prediction, {}, {}, {}};
  }
  throw InternalError("loss without a rule");
}

void start_backward(StepBuilder& builder, Differentiator& differentiator, const LossParts& loss,
                    const std::vector<TensorId>& outputs, std::optional<TensorId> seed) {
  const auto new_gradient = [&](TensorId of) {
    const Tensor source = builder.graph().tensor(of);
    return builder.add_tensor(source.name + ".grad", source.shape, builder.precision().gradients,
                              TensorKind::gradient);
  };
  if (loss.kind == LossKind::none) {
    for (const TensorId output : outputs) {
      const TensorId fed = new_gradient(output);
      builder.graph().inputs.push_back(fed);
      differentiator.give(output, scaled(builder, fed, seed));
    }
    return;
  }
  NewOperator op = loss_operator("", kMonetDomain);
  op.phase = Phase::backward;
  op.forward_op = builder.graph().tensor(loss.saved.value_or(*loss.loss)).producer;
  op.inputs = {loss.saved.value_or(loss.prediction), loss.target};
  op.op_type = loss.kind == LossKind::cross_entropy ? "SoftmaxCrossEntropyGrad"
               : loss.kind == LossKind::mse         ? "MseLossGrad"
                                                    : "BceWithLogitsLossGrad";
  op.name = fmt::format("loss.{}", op.op_type);
  const TensorId gradient = new_gradient(loss.prediction);
  op.outputs = {gradient};
  builder.add_operator(std::move(op));
  differentiator.give(loss.prediction, scaled(builder, gradient, seed));
}

} // namespace monet
