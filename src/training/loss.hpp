// The loss: operators from the network's result to one scalar, and the gradient that starts the
// backward phase.
#pragma once

#include "training/differentiate.hpp"
#include "training/step_builder.hpp"

#include <optional>
#include <vector>

namespace monet {

struct LossParts {
  LossKind kind = LossKind::none;
  TensorId prediction;
  std::optional<TensorId> target;  ///< labels or wanted values
  std::optional<TensorId> saved;   ///< log-probabilities of cross-entropy
  std::optional<TensorId> loss;    ///< scalar, mean over all samples (and positions)
  std::optional<TensorId> counted; ///< labels that are not ignored, where some may be
  std::optional<TensorId> weight;  ///< pos_weight
  Attributes attributes;           ///< of the gradient's operator
};

/// Appends the loss and its target, a graph input. InputError when the prediction's shape has no
/// such loss.
LossParts add_loss(StepBuilder& builder, LossKind kind, const LossOptions& options,
                   TensorId prediction);
/// Emits the loss's gradient and gives it to the prediction; with LossKind::none, a graph input per
/// output is given. `seed`: scalar that they are multiplied by first.
void start_backward(StepBuilder& builder, Differentiator& differentiator, const LossParts& loss,
                    const std::vector<TensorId>& outputs, std::optional<TensorId> seed = {});

} // namespace monet
