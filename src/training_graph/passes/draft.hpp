// A step under construction, and the passes that make it.
#pragma once

#include "base/shared/passes.hpp"
#include "training_graph/forward/forward.hpp"
#include "training_graph/forward/loss.hpp"
#include "training_graph/update/optimizer.hpp"

#include <optional>
#include <span>
#include <vector>

namespace monet {

/// A step under construction. Vectors of bool are by TensorId.
struct StepDraft {
  TrainingGraph step;                 ///< what is known of the result; its graph is in `body`
  AccumulatedStep body;               ///< at first the network alone
  std::optional<StepBuilder> builder; ///< owns the graph while passes append operators

  std::vector<TensorId> adapters; ///< parameters that LoRA or sparse updates train
  std::vector<bool> trained;
  std::vector<bool> detached; ///< no gradient passes them
  Loss loss;
  std::vector<TensorId> outputs; ///< outputs that are differentiated
  GradientNeeds needs;
  std::size_t forward_operators = 0;
  StepLoss losses;
  LossScale scale;
  std::vector<TensorId> divisors; ///< losses whose divisor has no separate tensor
  std::vector<TensorId> stored_by_name;

  Graph& graph() { return builder ? builder->graph() : body.graph; }
  /// Starts to append operators.
  StepBuilder& open(const Precision& precision) {
    return builder.emplace(std::move(body.graph), precision);
  }
  /// Stops appending operators.
  void close() {
    body.graph = builder->release();
    builder.reset();
  }
  PassSize size() { return {graph().operators().size(), graph().tensors().size()}; }
};

using StepPass = Pass<StepDraft, TrainingOptions>;

inline bool for_training(const StepDraft& draft) {
  return draft.step.training;
}
inline bool for_inference(const StepDraft& draft) {
  return !draft.step.training;
}

/// From the network to the forward part.
std::span<const StepPass> network_passes();
/// Appends the loss and the backward part, and chooses the tensors that it stores.
std::span<const StepPass> backward_passes();
/// Repeats forward and backward part, appends the update and finishes the step.
std::span<const StepPass> update_passes();

} // namespace monet
