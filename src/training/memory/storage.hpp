// Which tensors live from the forward to the backward phase, and who owns every byte.
#pragma once

#include "monet/training/stored.hpp"

#include <vector>

namespace monet {

/// Per operator: whether it belongs to the backward part of its micro-batch. What is computed again
/// belongs to the part that it stands in front of.
std::vector<bool> in_backward_part(const Graph& graph);

struct StoredActivations {
  std::vector<TensorId> tensors; ///< sorted
  std::int64_t bytes = 0;        ///< see TrainingGraph::stored_bytes
};

/// What one micro-batch stores. `requires_grad` as find_eager_storage() takes it; `losses`: results
/// of losses that keep what they are divided by in no tensor of their own.
StoredActivations find_stored(const Graph& graph, StorePolicy policy,
                              const std::vector<bool>& requires_grad,
                              const std::vector<TensorId>& losses);

} // namespace monet
