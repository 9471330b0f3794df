// The loss of a step, and the start of its backward phase.
#pragma once

#include "training_graph/build/step_builder.hpp"
#include "training_graph/gradients/differentiate.hpp"

namespace monet {

/// One loss of one output.
struct LossParts {
  std::string_view gradient_type; ///< of the operator that begins the backward phase; none: empty
  TensorId prediction;
  std::optional<TensorId> loss;                        ///< scalar
  std::vector<std::optional<TensorId>> gradient_reads; ///< of that operator
  Attributes attributes;                               ///< of that operator
  bool keeps_divisor = false; ///< a separate tensor holds the divisor of a mean
  double share = 1.0;         ///< of the sum of all
};

/// All losses of a step.
struct StepLoss {
  std::vector<LossParts> terms; ///< empty: the gradient of every output is fed in
  std::optional<TensorId> loss; ///< scalar, the sum of the terms by their shares
  bool is_own = false;          ///< outputs of the network, which are differentiated themselves
};

/// Appends the operators of a loss and its target, a graph input called after `suffix`. InputError
/// when the prediction's shape has no such loss.
LossParts loss_parts(StepBuilder& builder, const CrossEntropy& options, TensorId prediction,
                     const std::string& suffix);
LossParts loss_parts(StepBuilder& builder, const Mse& options, TensorId prediction,
                     const std::string& suffix);
LossParts loss_parts(StepBuilder& builder, const BceWithLogits& options, TensorId prediction,
                     const std::string& suffix);
LossParts loss_parts(StepBuilder& builder, const ElementwiseLoss& options, TensorId prediction,
                     const std::string& suffix);
LossParts loss_parts(StepBuilder& builder, const Ctc& options, TensorId prediction,
                     const std::string& suffix);

/// An operator of phase loss.
NewOperator loss_operator(OpType op_type, std::string_view domain);

/// A network whose first floating output is a scalar has its loss already: that is meant where the
/// options leave the default. InputError when an output that is asked for is missing or no scalar.
Loss resolve_loss(const Graph& network, const Loss& loss);

/// The outputs that the loss is a function of: those of a NetworkLoss or LossSum, one for each
/// term, or the first floating one; all floating ones where gradients are fed in.
std::vector<TensorId> differentiated_outputs(const Graph& network, const Loss& loss);

/// Appends the losses of these outputs.
StepLoss add_loss(StepBuilder& builder, const Loss& loss, const std::vector<TensorId>& predictions);

/// Emits the gradients of the loss and passes them to the outputs; without a loss, a graph input
/// per output is given. `seed`: scalar that they are multiplied by first.
void start_backward(StepBuilder& builder, Differentiator& differentiator, const StepLoss& loss,
                    const std::vector<TensorId>& outputs, std::optional<TensorId> seed = {});

} // namespace monet
