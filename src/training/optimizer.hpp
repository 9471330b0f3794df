// The update phase: what the optimiser does with every trained parameter, in place.
#pragma once

#include "training/step_builder.hpp"

#include <map>
#include <utility>

namespace monet {

/// Parameters whose decay is usually left out: vectors (of shape [C] or [C, 1, 1]), and what a
/// normalisation scales and shifts with. By TensorId.
std::vector<bool> norms_and_biases(const Graph& graph);

class UpdateEmitter {
public:
  /// Adds the learning rate as an input of the step.
  UpdateEmitter(StepBuilder& builder, const TrainingOptions& options, TrainingGraph& step);

  /// All gradients are multiplied by this scalar before they are used.
  void scale_gradients(TensorId scalar) { gradient_scale_ = scalar; }
  /// Nothing changes in a step where this scalar is not 0.
  void skip_when(TensorId scalar) { skip_ = scalar; }
  /// The operators that update one parameter.
  void add(TensorId weight, TensorId gradient);
  /// InputError when a group takes no parameter.
  void check_groups() const;

private:
  friend class ParameterUpdate;

  std::size_t group_of(TensorId weight);
  TensorId learning_rate(const OptimizerOptions& options);
  TensorId step_number();
  /// As one operator, or as the chain of its scalar operations.
  void emit(NewOperator op);

  StepBuilder* builder_;
  const TrainingOptions* options_;
  TrainingGraph* step_;
  std::vector<bool> norms_and_biases_;
  std::vector<OptimizerOptions> resolved_; ///< the optimiser, then the groups
  std::vector<std::vector<bool>> matched_; ///< by group and pattern
  std::optional<TensorId> gradient_scale_;
  std::optional<TensorId> skip_;
  std::map<std::string, TensorId> uniform_; ///< scalars of unfused updates by their formula
};

/// Norm of all gradients together: one sum of squares each, the root of their total. Returns the
/// total's root before any scaling.
TensorId global_norm(StepBuilder& builder, const std::vector<TensorId>& gradients);

/// An ONNX operator of the update phase on tensors of one type.
TensorId update_value(StepBuilder& builder, std::string_view op_type, std::string name,
                      std::vector<std::optional<TensorId>> inputs, std::vector<std::int64_t> shape,
                      ElementType type, Attributes attributes = {});

/// Emits the scalar operations of a fused update one by one, with the same numbers.
void emit_unfused(StepBuilder& builder, std::map<std::string, TensorId>& uniform, NewOperator op);

} // namespace monet
