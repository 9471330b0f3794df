// What is trained: all parameters, some of them, layers or adapters.
#pragma once

#include "monet/training/training.hpp"

#include <optional>
#include <vector>

namespace monet {

/// Number of the layer that each parameter belongs to (see LayerRange), by TensorId; nullopt for
/// what is no parameter or is not read.
std::vector<std::optional<std::int64_t>> layers_of(const Graph& network);

/// A network with low-rank adapters. Tensors of the network keep their ids.
struct AdaptedNetwork {
  Graph graph;
  std::vector<TensorId> adapters; ///< their weights, called after the adapted ones
};

/// Puts an adapter beside every product that reads a weight of the targets. InputError when a
/// pattern matches no weight of a product.
AdaptedNetwork add_adapters(const Graph& network, const LoraOptions& options);

/// Splits chosen weights into channels that are trained and channels that are not; `adapters` of
/// the result are all parameters to be trained, biases among them. InputError when a pattern
/// matches no weight of a product.
AdaptedNetwork split_channels(const Graph& network, const SparseOptions& options);

/// By TensorId. InputError when a pattern matches no parameter or the network lacks a layer.
std::vector<bool> trained_parameters(const Graph& network, const TrainingOptions& options,
                                     const std::vector<TensorId>& adapters);

} // namespace monet
