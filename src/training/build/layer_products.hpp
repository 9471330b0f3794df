// Which products of a network are those of layers, to be computed in fp8 (ScaledProducts).
#pragma once

#include "monet/training/options.hpp"
#include "monet/workload/graph.hpp"

#include <vector>

namespace monet {

/// A product of a layer: one operand is computed from parameters alone, the other is not.
struct LayerProduct {
  OpId op;
  std::size_t weight = 1;           ///< its input
  std::vector<TensorId> parameters; ///< of the weight, at least one
};

/// Those that the options choose, in the order of operators. InputError when a pattern matches no
/// weight of a product, or no product is left.
std::vector<LayerProduct> chosen_products(const Graph& network, const ScaledProducts& options);

} // namespace monet
