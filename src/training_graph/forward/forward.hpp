// From a network to the forward part of a step: what is trained, the operators as they run in a
// step, the loss, and micro-batches.
#pragma once

#include "training_graph/build/step_builder.hpp"
#include "training_graph/gradients/differentiate.hpp"

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

/// Adds an adapter to every product that reads a weight of the targets. InputError when a
/// pattern matches no weight of a product.
AdaptedNetwork add_adapters(const Graph& network, const LoraOptions& options);

/// Splits chosen weights into channels that are trained and channels that are not; `adapters` of
/// the result are all parameters to be trained, biases among them. InputError when a pattern
/// matches no weight of a product.
AdaptedNetwork split_channels(const Graph& network, const SparseOptions& options);

/// A network with separate tensors for detached values. Tensors keep their ids.
struct DetachedNetwork {
  Graph graph;
  std::vector<bool> tensors; ///< those that no gradient passes, by TensorId
};

/// InputError when a pattern matches no result of an operator, or no reader of it.
DetachedNetwork detach(const Graph& network, const std::vector<Detach>& what);
/// Tensors that every reader sees detached, by TensorId; patterns may match nothing.
std::vector<bool> detached_tensors(const Graph& network, const std::vector<Detach>& what);

/// By TensorId. InputError when a pattern matches no parameter or the network lacks a layer.
std::vector<bool> trained_parameters(const Graph& network, const TrainableOptions& options,
                                     const std::vector<TensorId>& adapters);

/// By TensorId: parameters that the patterns of the options leave to be trained. Layers, adapters
/// and sparse updates may leave fewer.
std::vector<bool> may_be_trained(const Graph& network, const TrainableOptions& options);

/// The network with every MatMul (scaled, masked) softmax MatMul as one ai.monet.Attention. Tensors
/// keep their ids; those between the two products have no producer any more. Left as they are:
/// chains with a mask that is trained, with dropout, with a value as wide as no key, and those
/// whose scores have other readers. `trained`: by TensorId.
Graph fuse_attention(const Graph& network, std::vector<bool> trained);

/// Gradient accumulation: forward, loss and backward once for every micro-batch, one update. A step
/// without its updates.
struct AccumulatedStep {
  Graph graph;
  std::optional<TensorId> loss;                         ///< mean of the micro-batches' losses
  std::vector<std::pair<TensorId, TensorId>> gradients; ///< weight, sum of its gradients
  /// Weights with a sparse gradient, and the gradient of each micro-batch.
  std::vector<std::pair<TensorId, std::vector<RowGradient>>> row_gradients;
  std::vector<TensorId> kept;
};

/// Repeats the operators of one micro-batch. Parameters, buffers, constants and states are shared;
/// inputs, labels and all results are there once per micro-batch, called "x.micro_2" and so on. A
/// gradient is added to the sum as soon as it is made. Running statistics pass from one micro-batch
/// to the next.
AccumulatedStep accumulate_micro_batches(AccumulatedStep one, std::int64_t count,
                                         ElementType loss_type);

/// Sharpness-aware minimisation (Foret et al. 2021, algorithm 1 with p = 2).
struct Sharpness {
  double rho = 0.0; ///< length of the way from w to w', over all weights together
  ElementType type = ElementType::fp32; ///< of the norm
  std::optional<TensorId> loss_scale;   ///< what all gradients have been multiplied by
};

/// Moves every weight w that has a gradient g to w' = w + rho / (norm of all g + 1e-12) * g, and
/// repeats the operators with w' read in place of w. w' is called "w.moved", like all results of
/// the second pass. Inputs, labels, constants and states are shared, running statistics pass on.
/// The loss stays the first pass's, gradients are the second's; those of the first,
/// "w.grad.ascent", are temporaries. InputError for sparse gradients.
AccumulatedStep sharpen(AccumulatedStep first, const Sharpness& sharpness);

} // namespace monet
