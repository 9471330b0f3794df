// Gradient accumulation: forward, loss and backward once for every micro-batch, one update.
#pragma once

#include "training/step_builder.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace monet {

/// A step without its updates.
struct AccumulatedStep {
  Graph graph;
  std::optional<TensorId> loss;                         ///< mean of the micro-batches' losses
  std::vector<std::pair<TensorId, TensorId>> gradients; ///< weight, sum of its gradients
  std::vector<TensorId> kept;
};

/// Repeats the operators of one micro-batch. Parameters, buffers, constants and states are shared;
/// inputs, labels and all results are there once per micro-batch, called "x.micro_2" and so on. A
/// gradient is added to the sum as soon as it is made. Running statistics pass from one micro-batch
/// to the next.
AccumulatedStep accumulate_micro_batches(AccumulatedStep one, std::int64_t count,
                                         ElementType loss_type);

} // namespace monet
