// One rule per operator type: how the gradients of its inputs follow from those of its outputs. A
// family is a file here and a line in table.cpp. Read elementwise.cpp for the pattern.
#pragma once

#include "training_graph/build/scaled_casts.hpp"
#include "training_graph/build/step_builder.hpp"

namespace monet {

class Differentiator;

/// Context of a rule: the forward operator to differentiate, and functions that emit backward
/// operators.
class GradientContext {
public:
  GradientContext(Differentiator& owner, OpId forward);

  const Operator& op() const; ///< valid until the next operator is emitted
  StepBuilder& builder();
  const Graph& graph() const;

  /// Whether the gradient of this input is needed.
  bool wants(std::size_t input) const;
  /// Gradient of an output, or nullopt when the loss does not depend on it.
  std::optional<TensorId> gradient_of_output(std::size_t output) const;
  TensorId dy() const { return gradient_of_output(0).value(); }
  /// Operands of the backward products: in fp8 if the forward product reads fp8.
  ProductOperands product_operands();
  TensorId input(std::size_t i) const;
  TensorId output(std::size_t i) const;
  Integers input_shape(std::size_t i) const { return shape_of(input(i)); }
  Integers dy_shape() const { return shape_of(dy()); }
  bool has_input(std::size_t i) const;
  /// The input, or nullopt if the operator omits it.
  std::optional<TensorId> optional_input(std::size_t i) const;
  /// GradientOf::weight if the input is a trained parameter or a view of one.
  GradientOf kind_of(std::size_t input) const;

  /// Adds a gradient to what the input has received so far.
  void give(std::size_t input, TensorId gradient);

  /// Only the rows of this input that are looked up get a gradient: `values` [n, ...] of the rows
  /// `rows` [n].
  bool takes_rows(std::size_t input) const;
  void give_rows(std::size_t input, TensorId values, TensorId rows);

  /// Adds a gradient to a tensor that is no input of the operator.
  void give_to(TensorId tensor, TensorId gradient);
  bool wants_tensor(TensorId tensor) const;

  /// Type of the forward operator followed by "Grad".
  OpType own_gradient() const { return op().op_type.str() + "Grad"; }
  /// Operator to emit: of domain ai.monet if its type contains "Grad", of ONNX otherwise.
  struct Emit {
    OpType op_type;
    std::vector<std::optional<TensorId>> inputs;
    Attributes attributes = {};
    GradientOf gradient_of = GradientOf::none;
  };
  /// Inputs of the forward operator; nullopt = that output of the gradient operator is left out.
  using Targets = std::vector<std::optional<std::size_t>>;
  /// Emits an operator whose outputs are the gradients of these inputs, and adds them.
  void emit(Emit what, const Targets& targets = {0});
  /// The needed gradients among `inputs`, without omitted ones at the end.
  Targets wanted(std::initializer_list<std::size_t> inputs) const;
  /// The output of the input's number, of an operator that has one for each.
  static Targets only(std::size_t input);
  /// Emits an operator with one output of that shape, not yet added to an input.
  TensorId emit_value(Emit what, Integers shape);
  /// Sums `gradient` over the axes along which an operand of that shape was broadcast.
  TensorId reduce_to(TensorId gradient, Integers shape);
  TensorId reshape(TensorId tensor, Integers shape);
  TensorId expand(TensorId tensor, Integers shape);
  TensorId integers(const Integers& values) { return builder().integers(values); }
  /// Scalar constant in the type of gradients.
  TensorId scalar(double value);

  /// StorePolicy::pytorch_eager: a gradient reads what PyTorch's does.
  bool as_pytorch() const;
  /// Element type of gradients between the result and the operands.
  ElementType value_type() const;

private:
  Integers shape_of(TensorId tensor) const { return graph().tensor(tensor).shape; }
  NewOperator base(OpType op_type) const;
  NewOperator begin(Emit& what) const;

  Differentiator* owner_;
  OpId forward_;
};

struct GradientRule {
  OpType op_type;
  /// Null: the operator's outputs do not depend differentiably on its inputs; gradients stop there.
  void (*emit)(GradientContext& context) = nullptr;
  /// Why this particular operator has no gradient although its type has a rule; empty = it has one.
  std::string (*refuse)(const Graph& graph, const Operator& op) = nullptr;
  /// Outputs after these are by-products without gradient (running statistics).
  std::size_t differentiable_outputs = 64;
  /// No gradient passes to inputs after these (regions of interest).
  std::size_t differentiable_inputs = 64;
};

const GradientRule* find_gradient_rule(const Operator& op);
/// Operator types with a gradient, sorted; for messages and documentation.
std::vector<std::string> differentiable_operators();

std::vector<GradientRule> elementwise_gradients();
std::vector<GradientRule> broadcast_gradients();
std::vector<GradientRule> linear_gradients();
std::vector<GradientRule> normalization_gradients();
std::vector<GradientRule> pooling_gradients();
std::vector<GradientRule> view_gradients();
std::vector<GradientRule> indexing_gradients();
std::vector<GradientRule> movement_gradients();
std::vector<GradientRule> reduction_gradients();
std::vector<GradientRule> quantization_gradients();
std::vector<GradientRule> loss_gradients();

} // namespace monet
