// Operators that compute each kind of loss, for one output.
#include "base/shared/checked.hpp"
#include "training_graph/forward/loss.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <array>

namespace monet {

namespace {

TensorId add_target(StepBuilder& builder, const std::string& name, const std::string& suffix,
                    Integers shape, ElementType type) {
  const TensorId target =
      builder.add_tensor(name + suffix, std::move(shape), type, TensorKind::label);
  builder.graph().inputs.push_back(target);
  return target;
}

TensorId add_scalar_loss(StepBuilder& builder, const std::string& suffix) {
  return builder.add_tensor("loss" + suffix, {}, builder.precision().reduction_type(),
                            TensorKind::activation);
}

[[noreturn]] void refuse(const StepBuilder& builder, TensorId prediction, std::string_view what) {
  const Graph& graph = builder.graph();
  throw InputError({graph.origin, 0, 0, fmt::format("output '{}'", graph.tensor(prediction).name)},
                   std::string(what));
}

/// [B, C], [B, C, H, W] and more; but [B, T, C].
std::size_t class_axis(const StepBuilder& builder, const CrossEntropy& options, TensorId logits) {
  const Integers shape = builder.shape(logits);
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

TensorId add_numbers(StepBuilder& builder, std::string name, const std::vector<double>& numbers,
                     ElementType type) {
  const TensorId id = builder.add_tensor(
      std::move(name), {static_cast<std::int64_t>(numbers.size())}, type, TensorKind::constant);
  builder.graph().tensor(id).values = numbers;
  return id;
}

std::optional<TensorId> class_weights(StepBuilder& builder, const CrossEntropy& options,
                                      TensorId logits, std::int64_t classes) {
  if (options.weight.empty())
    return std::nullopt;
  if (static_cast<std::int64_t>(options.weight.size()) != classes) {
    refuse(builder, logits,
           fmt::format("{} weights are given for {} classes", options.weight.size(), classes));
  }
  return add_numbers(builder, "loss.class_weights", options.weight,
                     builder.precision().reduction_type());
}

/// Log-probabilities: of a log-softmax along the axis, or the prediction itself.
TensorId log_probabilities(StepBuilder& builder, const CrossEntropy& options, TensorId logits,
                           std::int64_t axis) {
  if (options.of_log_probabilities)
    return logits;
  NewOperator log_softmax = loss_operator(ops::LogSoftmax, "");
  log_softmax.inputs = {logits};
  log_softmax.attributes.set("axis", axis);
  const TensorId made =
      builder.add_tensor("log_probabilities", builder.shape(logits),
                         builder.precision().reduction_type(), TensorKind::activation);
  log_softmax.outputs = {made};
  builder.add_operator(std::move(log_softmax));
  return made;
}

/// Weights of the targets' ones, as a constant.
TensorId positive_weights(StepBuilder& builder, const std::vector<double>& weights,
                          TensorId prediction) {
  const ElementType type = builder.graph().tensor(prediction).type;
  if (weights.size() == 1)
    return builder.scalar(weights.front(), type);
  const Integers shape = builder.shape(prediction);
  if (shape.empty() || shape.back() != static_cast<std::int64_t>(weights.size())) {
    refuse(builder, prediction,
           fmt::format("{} numbers are given as pos_weight; one, or one for each element of the "
                       "last axis, is expected",
                       weights.size()));
  }
  return add_numbers(builder, "loss.pos_weight", weights, type);
}

/// A function of prediction and target of the same shape, over all elements. `parts` has the
/// prediction, the attributes and the type of the gradient's operator.
LossParts elementwise_loss(StepBuilder& builder, OpType op_type, LossParts parts,
                           std::optional<TensorId> weight, const std::string& suffix) {
  const TensorId prediction = parts.prediction;
  const TensorId target = add_target(builder, "targets", suffix, builder.shape(prediction),
                                     builder.graph().tensor(prediction).type);
  NewOperator op = loss_operator(op_type, kMonetDomain);
  op.inputs = {prediction, target};
  if (weight)
    op.inputs.emplace_back(weight);
  parts.gradient_reads = op.inputs;
  op.attributes = parts.attributes;
  parts.loss = add_scalar_loss(builder, suffix);
  op.outputs = {parts.loss};
  if (op_type == ops::L1Loss) {
    const TensorId sign = builder.add_tensor("loss" + suffix + ".sign", builder.shape(prediction),
                                             ElementType::int8, TensorKind::activation);
    op.outputs.emplace_back(sign);
    parts.gradient_reads = {sign};
  }
  builder.add_operator(std::move(op));
  return parts;
}

/// Attribute `divisor` for the sum over all elements, if it is not their number.
Attributes divided_by(const StepBuilder& builder, Reduction reduction, TensorId prediction) {
  Attributes attributes;
  const Integers shape = builder.shape(prediction);
  if (reduction == Reduction::sum)
    attributes.set("divisor", std::int64_t{1});
  else if (reduction == Reduction::batch_mean)
    attributes.set("divisor", shape.empty() ? std::int64_t{1} : shape[0]);
  return attributes;
}

} // namespace

NewOperator loss_operator(OpType op_type, std::string_view domain) {
  return {.name = fmt::format("loss.{}", op_type),
          .op_type = op_type,
          .domain = domain,
          .phase = Phase::loss};
}

/// Two operators; ONNX wants classes in axis 1 of the second, which folding the leading axes into
/// one gives where they are last.
LossParts loss_parts(StepBuilder& builder, const CrossEntropy& options, TensorId logits,
                     const std::string& suffix) {
  const std::size_t axis = class_axis(builder, options, logits);
  const Integers shape = builder.shape(logits);
  const std::int64_t classes = shape[axis];
  Integers labels = shape;
  labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(axis));
  LossParts parts{options.of_log_probabilities ? ops::NegativeLogLikelihoodLossGrad
                                               : ops::SoftmaxCrossEntropyGrad,
                  logits};
  const TensorId target = add_target(builder, "labels", suffix, labels, ElementType::int64);
  const bool last = axis + 1 == shape.size();
  const std::int64_t named_axis = last ? -1 : static_cast<std::int64_t>(axis);
  parts.attributes.set("axis", named_axis);
  const TensorId scores = log_probabilities(builder, options, logits, named_axis);
  const auto weight = class_weights(builder, options, logits, classes);

  const bool smooth = options.label_smoothing != 0.0;
  NewOperator nll = smooth ? loss_operator(ops::LabelSmoothingLoss, kMonetDomain)
                           : loss_operator(ops::NegativeLogLikelihoodLoss, "");
  nll.inputs = {scores, target};
  if (last) {
    const std::int64_t rows = checked_product(labels);
    nll.inputs = {builder.reshape(scores, {rows, classes}, loss_operator(ops::Reshape, "")),
                  builder.reshape(target, {rows}, loss_operator(ops::Reshape, ""))};
  }
  if (weight)
    nll.inputs.emplace_back(weight);
  nll.attributes.set("reduction",
                     std::string(options.reduction == Reduction::mean ? "mean" : "sum"));
  if (options.reduction != Reduction::mean)
    parts.attributes.set("reduction", std::string("sum"));
  for (Attributes* attributes : {&nll.attributes, &parts.attributes}) {
    if (smooth)
      attributes->set("label_smoothing", options.label_smoothing);
    if (options.ignore_index)
      attributes->set("ignore_index", *options.ignore_index);
  }
  parts.loss = add_scalar_loss(builder, suffix);
  nll.outputs = {parts.loss};
  std::optional<TensorId> counted;
  if ((options.ignore_index || weight) && options.reduction == Reduction::mean) {
    counted = builder.add_tensor("loss" + suffix + ".counted", {},
                                 builder.precision().reduction_type(), TensorKind::activation);
    nll.outputs.emplace_back(counted);
    parts.keeps_divisor = true;
  }
  builder.add_operator(std::move(nll));
  if (options.of_log_probabilities) {
    const TensorId one = builder.scalar(1.0, builder.precision().reduction_type());
    parts.gradient_reads = {one, target, weight, counted};
  } else {
    parts.gradient_reads = {scores, target, counted, weight};
  }
  while (!parts.gradient_reads.back())
    parts.gradient_reads.pop_back();
  return parts;
}

LossParts loss_parts(StepBuilder& builder, const Mse& options, TensorId prediction,
                     const std::string& suffix) {
  LossParts parts{ops::MseLossGrad, prediction};
  parts.attributes = divided_by(builder, options.reduction, prediction);
  return elementwise_loss(builder, ops::MseLoss, std::move(parts), {}, suffix);
}

LossParts loss_parts(StepBuilder& builder, const BceWithLogits& options, TensorId prediction,
                     const std::string& suffix) {
  std::optional<TensorId> weight;
  if (!options.pos_weight.empty())
    weight = positive_weights(builder, options.pos_weight, prediction);
  LossParts parts{ops::BceWithLogitsLossGrad, prediction};
  parts.attributes = divided_by(builder, options.reduction, prediction);
  return elementwise_loss(builder, ops::BceWithLogitsLoss, std::move(parts), weight, suffix);
}

LossParts loss_parts(StepBuilder& builder, const ElementwiseLoss& options, TensorId prediction,
                     const std::string& suffix) {
  struct Row {
    OpType op_type;
    std::string_view gradient;
    bool has_threshold;
  };
  static constexpr std::array<Row, 6> kRows{{{ops::L1Loss, ops::L1LossGrad, false},
                                             {ops::SmoothL1Loss, ops::SmoothL1LossGrad, true},
                                             {ops::HuberLoss, ops::HuberLossGrad, true},
                                             {ops::BceLoss, ops::BceLossGrad, false},
                                             {ops::KlDivLoss, ops::KlDivLossGrad, false},
                                             {ops::KlDivLoss, ops::KlDivLossGrad, false}}};
  const Row& row = kRows.at(static_cast<std::size_t>(options.kind));
  LossParts parts{row.gradient, prediction};
  parts.attributes = divided_by(builder, options.reduction, prediction);
  if (row.has_threshold)
    parts.attributes.set("threshold", options.threshold);
  const bool divergence = row.op_type == ops::KlDivLoss;
  if (divergence)
    parts.attributes.set("log_target",
                         std::int64_t{options.kind == ElementwiseLoss::Kind::kl_div_of_logs});
  parts = elementwise_loss(builder, row.op_type, std::move(parts), {}, suffix);
  if (divergence) // its gradient follows from the target alone
    parts.gradient_reads.erase(parts.gradient_reads.begin());
  return parts;
}

LossParts loss_parts(StepBuilder& builder, const Ctc& options, TensorId prediction,
                     const std::string& suffix) {
  const Integers shape = builder.shape(prediction);
  if (shape.size() != 3)
    refuse(builder, prediction,
           fmt::format("ctc needs log-probabilities [T, B, classes], not {} axes", shape.size()));
  if (options.blank < 0 || options.blank >= shape[2])
    refuse(builder, prediction, fmt::format("blank is class {} of {}", options.blank, shape[2]));
  if (options.target_length > shape[0])
    refuse(builder, prediction,
           fmt::format("{} labels do not fit into {} steps", options.target_length, shape[0]));
  const ElementType sums = builder.precision().reduction_type();
  LossParts parts{ops::CtcLossGrad, prediction};
  const TensorId labels =
      add_target(builder, "labels", suffix, {shape[1], options.target_length}, ElementType::int64);
  const TensorId likelihood = builder.add_tensor("loss" + suffix + ".likelihoods", {shape[1]}, sums,
                                                 TensorKind::activation);
  const TensorId alpha = builder.add_tensor(
      "loss" + suffix + ".alpha",
      {shape[1], shape[0], checked_add(checked_multiply(2, options.target_length), 1)}, sums,
      TensorKind::activation);
  NewOperator op = loss_operator(ops::CtcLoss, kMonetDomain);
  op.inputs = {prediction, labels};
  op.attributes.set("blank", options.blank);
  if (options.zero_infinity)
    op.attributes.set("zero_infinity", std::int64_t{1});
  if (options.reduction != Reduction::mean)
    op.attributes.set("reduction", std::string("sum"));
  parts.attributes = op.attributes;
  parts.loss = add_scalar_loss(builder, suffix);
  op.outputs = {parts.loss, likelihood, alpha};
  parts.gradient_reads = {prediction, labels, likelihood, alpha};
  builder.add_operator(std::move(op));
  return parts;
}

} // namespace monet
