// The forward operators as they run in a step: batch-norm with the statistics of its batch, dropout
// on, element types by role, and the extra outputs that backward operators read. At inference:
// running statistics, no dropout.
#pragma once

#include "training/differentiate.hpp"

#include <optional>
#include <vector>

namespace monet {

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

} // namespace monet
