// From a network to the forward part of a step: what is trained, the operators as they run in a
// step, the loss, and micro-batches.
#pragma once

#include "training/build/step_builder.hpp"
#include "training/gradients/differentiate.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace monet {

/// The forward operators as they run in a step: batch-norm with the statistics of its batch,
/// dropout on, element types by role, and the extra outputs that backward operators read. At
/// inference: running statistics, no dropout.
struct PreparedForward {
  Graph graph;
  std::vector<std::optional<TensorId>>
      to_step; ///< by tensor of the network; nullopt = not needed any more
};

/// Null `needs` = inference. `frozen_batch_norm`: in training too, batch normalisations run as at
/// inference.
PreparedForward prepare_forward(const Graph& network, const Precision& precision,
                                const GradientNeeds* needs, bool frozen_batch_norm = false);

/// Element type of a tensor by what it is for; integers and running statistics keep theirs.
ElementType type_for_role(const Tensor& tensor, const Precision& precision, bool trained = true);

/// Number of the layer that each parameter belongs to (see LayerRange), by TensorId; nullopt for
/// what is no parameter or is not read.
std::vector<std::optional<std::int64_t>> layers_of(const Graph& network);

/// A network with low-rank adapters. Tensors of the network keep their ids.
struct AdaptedNetwork {
  Graph graph;
  std::vector<TensorId> adapters; ///< their weights, called after the adapted ones
  std::vector<WeightPart> parts;  ///< of weights that were split
};

/// Puts an adapter beside every product that reads a weight of the targets. InputError when a
/// pattern matches no weight of a product.
AdaptedNetwork add_adapters(const Graph& network, const LoraOptions& options);

/// Splits chosen weights into channels that are trained and channels that are not; `adapters` of
/// the result are all parameters to be trained, biases among them. InputError when a pattern
/// matches no weight of a product.
AdaptedNetwork split_channels(const Graph& network, const SparseOptions& options);

/// By TensorId. InputError when a pattern matches no parameter or the network lacks a layer.
std::vector<bool> trained_parameters(const Graph& network, const TrainableOptions& options,
                                     const std::vector<TensorId>& adapters);

/// By TensorId: parameters that the patterns of the options leave to be trained. Layers, adapters
/// and sparse updates may leave fewer.
std::vector<bool> may_be_trained(const Graph& network, const TrainableOptions& options);

/// The network with every MatMul (scaled, masked) Softmax MatMul as one ai.monet.Attention. Tensors
/// keep their ids; those between the two products have no producer any more. Left as they are:
/// chains with a mask that is trained, with dropout, with a value as wide as no key, and those
/// whose scores somebody else reads. `trained`: by TensorId.
Graph fuse_attention(const Graph& network, std::vector<bool> trained);

struct LossParts {
  std::string_view gradient_type; ///< of the operator that begins the backward phase; none: empty
  TensorId prediction;
  std::optional<TensorId> target;  ///< labels or wanted values
  std::optional<TensorId> saved;   ///< log-probabilities of cross-entropy
  std::optional<TensorId> loss;    ///< scalar, mean over all samples (and positions)
  std::optional<TensorId> counted; ///< labels that are not ignored, where some may be
  std::optional<TensorId> weight;  ///< pos_weight
  std::vector<double> shares;      ///< of a network's own losses, one for each output
  Attributes attributes;           ///< of that operator
};

/// A network whose first floating output is a scalar has its loss already: that is meant where the
/// options leave the default. InputError when an output that is asked for is none, or no scalar.
Loss resolve_loss(const Graph& network, const Loss& loss);

/// The outputs that the loss is a function of: those of a NetworkLoss, or the first floating one;
/// all floating ones where gradients are fed in.
std::vector<TensorId> differentiated_outputs(const Graph& network, const Loss& loss);

/// Appends the loss and its target, a graph input. InputError when the prediction's shape has no
/// such loss.
LossParts add_loss(StepBuilder& builder, const Loss& loss,
                   const std::vector<TensorId>& predictions);
/// Emits the loss's gradient and gives it to the prediction; without a loss, a graph input per
/// output is given. `seed`: scalar that they are multiplied by first.
void start_backward(StepBuilder& builder, Differentiator& differentiator, const LossParts& loss,
                    const std::vector<TensorId>& outputs, std::optional<TensorId> seed = {});

/// Gradient accumulation: forward, loss and backward once for every micro-batch, one update. A step
/// without its updates.
struct AccumulatedStep {
  Graph graph;
  std::optional<TensorId> loss;                         ///< mean of the micro-batches' losses
  std::vector<std::pair<TensorId, TensorId>> gradients; ///< weight, sum of its gradients
  /// Of weights with a sparse gradient: that of each micro-batch.
  std::vector<std::pair<TensorId, std::vector<RowGradient>>> row_gradients;
  std::vector<TensorId> kept;
};

/// Repeats the operators of one micro-batch. Parameters, buffers, constants and states are shared;
/// inputs, labels and all results are there once per micro-batch, called "x.micro_2" and so on. A
/// gradient is added to the sum as soon as it is made. Running statistics pass from one micro-batch
/// to the next.
AccumulatedStep accumulate_micro_batches(AccumulatedStep one, std::int64_t count,
                                         ElementType loss_type);

} // namespace monet
