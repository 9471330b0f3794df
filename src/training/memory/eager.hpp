// What PyTorch's autograd keeps for the backward pass of the same network (version 1.13, eager).
#pragma once

#include "monet/training/training.hpp"

#include <cstdint>
#include <vector>

namespace monet {

struct EagerStorage {
  std::vector<TensorId> tensors; ///< whose memory is kept; sorted
  std::int64_t bytes = 0;        ///< of all distinct storages, as saved_tensors_hooks see them
};

/// `requires_grad` per tensor of the forward part: it depends on a trained parameter. Parameters
/// are not counted, buffers and constants are. Operators that PyTorch has no counterpart of keep
/// what their backward operators read.
EagerStorage find_eager_storage(const Graph& step, const std::vector<bool>& requires_grad);

/// PyTorch's dropout on a CPU, where 32-bit networks are measured, keeps what the result is
/// multiplied by, in its type; the fused operator of GPUs, where 16-bit networks run, one byte an
/// element. The masks of the graph become what is kept.
void widen_dropout_masks(Graph& step);

} // namespace monet
