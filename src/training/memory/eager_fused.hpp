// Chains of a network's operators that are one operator in PyTorch 1.13, whose node in autograd
// keeps other tensors than the nodes of the parts would.
#pragma once

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <vector>

namespace monet {

struct EagerFused {
  std::vector<OpId> parts;
  std::vector<TensorId> kept;    ///< tensors that exist in the graph
  std::int64_t copied_bytes = 0; ///< and what it makes for itself
};

/// Where the file does not tell a function from the same chain written by hand, the function is
/// assumed. `requires_grad` per tensor, as find_eager_storage() has it.
std::vector<EagerFused> find_eager_fused(const Graph& graph,
                                         const std::vector<bool>& requires_grad);

} // namespace monet
