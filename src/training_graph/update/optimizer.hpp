// The update phase: what the optimiser does with every trained parameter, in place.
#pragma once

#include "training_graph/build/rebuild.hpp"
#include "training_graph/build/step_builder.hpp"

#include <map>
#include <utility>

namespace monet {

/// Parameters whose decay is usually left out: vectors (of shape [C] or [C, 1, 1]), and what a
/// normalisation scales and shifts with. By TensorId.
std::vector<bool> norms_and_biases(const Graph& graph);

class UpdateEmitter {
public:
  /// Adds the learning rate as an input of the step.
  UpdateEmitter(StepBuilder& builder, const UpdateOptions& options, TrainingGraph& step);

  /// All gradients are multiplied by this scalar before they are used.
  void scale_gradients(TensorId scalar) { gradient_scale_ = scalar; }
  /// Nothing changes in a step where this scalar is not 0.
  void skip_when(TensorId scalar) { skip_ = scalar; }
  /// The operators that update one parameter. `rows`: of a sparse gradient, see RowGradient.
  void add(TensorId weight, TensorId gradient, std::optional<TensorId> rows = {});
  /// Emits an update as one operator or as the chain of its scalar operations.
  void emit(NewOperator op);
  /// InputError when a group takes no parameter.
  void check_groups() const;

private:
  friend class ParameterUpdate;

  const Optimizer& optimizer_of(TensorId weight);
  TensorId learning_rate(double value);
  TensorId step_number();

  StepBuilder* builder_;
  const UpdateOptions* options_;
  TrainingGraph* step_;
  std::vector<bool> norms_and_biases_;
  std::vector<Patterns> patterns_; ///< of the groups
  std::optional<TensorId> gradient_scale_;
  std::optional<TensorId> skip_;
  std::map<std::string, TensorId> uniform_; ///< scalars of unfused updates by their formula
};

/// Norm of all gradients together: the root of the total of one sum of squares per gradient.
/// Returns the norm before any scaling.
TensorId global_norm(StepBuilder& builder, const std::vector<TensorId>& gradients);

/// States of loss scaling; empty without it. Before the updates, all gradients together are
/// unscaled, checked for non-finite values and clipped.
struct LossScale {
  std::optional<TensorId> scale;
  std::optional<TensorId> steps; ///< finite steps since the scale changed; of a dynamic scale
};
LossScale add_loss_scale(StepBuilder& builder, const UpdateOptions& options, TrainingGraph& step);

/// Factor of the gradient of the loss where backward begins: the loss scale over the number of
/// micro-batches. Nullopt for one micro-batch without loss scaling.
std::optional<TensorId> loss_seed(StepBuilder& builder, std::int64_t micro_batches,
                                  const LossScale& scale);

/// Passes the scale of all gradients and the flag that skips a step to `updates`.
void control_gradients(StepBuilder& builder, UpdateEmitter& updates,
                       const std::vector<std::pair<TensorId, TensorId>>& gradients,
                       const UpdateOptions& options, const LossScale& scale, TrainingGraph& step);

/// Histories and scales of products in fp8 with delayed scaling (ScaledProducts): a state of each
/// for every scale, which begins as 1.
void update_scales(StepBuilder& builder, TrainingGraph& step);

/// Adds an operator of the update phase, named "<name>.<type>"; returns its output.
TensorId append_update(StepBuilder& builder, NewOperator op);

/// Adds an ONNX operator of the update phase on tensors of one type, and its output, which has the
/// operator's name.
TensorId update_value(StepBuilder& builder, NewOperator op, Integers shape, ElementType type);

/// How Muon makes a matrix orthogonal.
struct NewtonSchulzOptions {
  std::string name; ///< of the parameter
  ElementType type; ///< of intermediate results
  std::int64_t steps = 0;
};
/// Newton-Schulz iteration towards the nearest matrix with orthogonal rows or, if there are more
/// rows than columns, orthogonal columns.
TensorId orthogonalise(StepBuilder& builder, UpdateEmitter& updates, TensorId matrix,
                       const NewtonSchulzOptions& options);

/// Emits the scalar operations of a fused update one by one, with the same numbers. Rows that it
/// updates are taken out of their tables before and put back behind.
void emit_unfused(StepBuilder& builder, std::map<std::string, TensorId>& uniform, NewOperator op);

} // namespace monet
