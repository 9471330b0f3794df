// One rule per operator type: how the gradients of its inputs follow from those of its outputs. A
// family is a file here and a line in table.cpp. Read elementwise.cpp for the pattern.
#pragma once

#include "training/step_builder.hpp"

#include <span>

namespace monet {

class Differentiator;

/// What a rule sees of the forward operator it differentiates, and how it emits backward operators.
class GradientContext {
public:
  GradientContext(Differentiator& owner, OpId forward);

  const Operator& op() const; ///< valid until the next operator is emitted
  StepBuilder& builder();
  const Graph& graph() const;

  /// True when somebody needs the gradient of this input.
  bool wants(std::size_t input) const;
  /// Gradient of an output, or nullopt when the loss does not depend on it.
  std::optional<TensorId> gradient_of_output(std::size_t output) const;
  TensorId dy() const { return gradient_of_output(0).value(); }
  TensorId input(std::size_t i) const;
  TensorId output(std::size_t i) const;
  std::vector<std::int64_t> input_shape(std::size_t i) const;
  bool has_input(std::size_t i) const;
  /// weight when the input is a trained parameter or a view of one.
  GradientOf kind_of(std::size_t input) const;

  /// Adds a gradient to what the input has received so far.
  void give(std::size_t input, TensorId gradient);

  struct Emit {
    std::string_view op_type;
    std::string_view domain = kMonetDomain;
    std::vector<std::optional<TensorId>> inputs;
    Attributes attributes = {};
    GradientOf gradient_of = GradientOf::none;
  };
  /// The same for a tensor that is no input of the operator.
  void give_to(TensorId tensor, TensorId gradient);
  bool wants_tensor(TensorId tensor) const;
  /// Emits an operator whose outputs are the gradients of these inputs (nullopt = output left out),
  /// and gives them.
  void emit(Emit what, const std::vector<std::optional<std::size_t>>& targets);
  /// Emits an operator with one output of that shape, not given to anyone yet.
  TensorId emit_value(Emit what, std::vector<std::int64_t> shape);
  /// Sums `gradient` over the axes along which an operand of that shape was broadcast.
  TensorId reduce_to(TensorId gradient, std::vector<std::int64_t> shape);
  TensorId reshape(TensorId tensor, std::vector<std::int64_t> shape);
  TensorId expand(TensorId tensor, std::vector<std::int64_t> shape);

  /// StorePolicy::pytorch_eager: a gradient reads what PyTorch's does.
  bool as_pytorch() const;

private:
  NewOperator base(std::string_view op_type) const;

  Differentiator* owner_;
  OpId forward_;
};

struct GradientRule {
  std::string_view op_type;
  /// Null: the operator's outputs do not depend differentiably on its inputs; gradients stop there.
  void (*emit)(GradientContext& context) = nullptr;
  /// Why this particular operator has no gradient although its type has a rule; empty = it has one.
  std::string (*refuse)(const Graph& graph, const Operator& op) = nullptr;
  /// Outputs after these are by-products without gradient (running statistics).
  std::size_t differentiable_outputs = 64;
};

const GradientRule* find_gradient_rule(const Operator& op);
/// Operator types with a gradient, sorted; for messages and documentation.
std::vector<std::string> differentiable_operators();

std::span<const GradientRule> elementwise_gradients();
std::span<const GradientRule> broadcast_gradients();
std::span<const GradientRule> linear_gradients();
std::span<const GradientRule> normalization_gradients();
std::span<const GradientRule> pooling_gradients();
std::span<const GradientRule> softmax_gradients();
std::span<const GradientRule> view_gradients();
std::span<const GradientRule> indexing_gradients();
std::span<const GradientRule> movement_gradients();
std::span<const GradientRule> attention_gradients();
std::span<const GradientRule> reduction_gradients();
std::span<const GradientRule> dropout_gradients();
std::span<const GradientRule> selection_gradients();

} // namespace monet
