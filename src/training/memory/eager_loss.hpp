// What PyTorch 1.13 keeps of an operator of a step's loss.
#pragma once

#include "monet/workload/graph.hpp"

#include <cstdint>

namespace monet {

struct EagerLoss {
  std::int64_t copied_bytes = 0; ///< made for itself
  bool keeps_reads = true;       ///< and what its gradient reads here
};

EagerLoss eager_loss(const Graph& graph, const Operator& op);

} // namespace monet
