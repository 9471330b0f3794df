// Which tensors live from the forward to the backward phase, and who owns every byte.
#pragma once

#include "monet/training/training.hpp"

#include <vector>

namespace monet {

/// Per operator: whether it belongs to the backward part of its micro-batch. What is computed again
/// belongs to the part that it stands in front of.
std::vector<bool> in_backward_part(const Graph& graph);

/// Tensors made before the backward part, inputs and labels that some operator of the backward part
/// reads; views count as what they view. What is computed again belongs to the part that it stands
/// in front of. Sorted by id.
std::vector<TensorId> tensors_read_by_backward(const Graph& graph);

struct StoredActivations {
  std::vector<TensorId> tensors; ///< sorted
  std::int64_t bytes = 0;        ///< see TrainingGraph::stored_bytes
};

/// What one micro-batch stores. `requires_grad` as find_eager_storage() takes it; `losses`: results
/// of losses that keep what they are divided by in no tensor of their own.
StoredActivations find_stored(const Graph& graph, StorePolicy policy,
                              const std::vector<bool>& requires_grad,
                              const std::vector<TensorId>& losses);

/// Owner of every tensor: by kind, except that stored activations are apart from other temporaries,
/// and what lies in the host from both.
std::vector<MemoryOwner> find_owners(const Graph& graph, const std::vector<TensorId>& stored);

} // namespace monet
