// Which tensors live from the forward to the backward phase, and who owns every byte; for who
// writes a step anew.
#pragma once

#include "monet/training/training.hpp"

#include <vector>

namespace monet {

/// Tensors made before the backward part, inputs and labels that some operator of the backward part
/// reads; views count as what they view. What is computed again belongs to the part that it stands
/// in front of. Sorted by id.
std::vector<TensorId> tensors_read_by_backward(const Graph& graph);

/// Owner of every tensor: by kind, except that stored activations are apart from other temporaries,
/// and what lies in the host from both.
std::vector<MemoryOwner> find_owners(const Graph& graph, const std::vector<TensorId>& stored);

} // namespace monet
