// What happens to all gradients together before the updates: loss scaling undone and checked,
// clipping.
#pragma once

#include "training/optimizer.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace monet {

/// States of loss scaling; nothing without it.
struct LossScale {
  std::optional<TensorId> scale;
  std::optional<TensorId> steps; ///< finite steps since the scale changed; of a dynamic scale
};
LossScale add_loss_scale(StepBuilder& builder, const TrainingOptions& options, TrainingGraph& step);

/// What the gradient of the loss is multiplied by where backward begins: the scale over the number
/// of micro-batches. Nullopt when that is 1.
std::optional<TensorId> loss_seed(StepBuilder& builder, const TrainingOptions& options,
                                  const LossScale& scale);

/// Gives `updates` the scale of all gradients and the flag of a step to skip.
void control_gradients(StepBuilder& builder, UpdateEmitter& updates,
                       const std::vector<std::pair<TensorId, TensorId>>& gradients,
                       const TrainingOptions& options, const LossScale& scale, TrainingGraph& step);

} // namespace monet
