// find_liveness() and plan_addresses(): memory at every operator of a step that runs one operator
// after another in graph order, and addresses for its buffers.
#pragma once

#include "monet/training_graph/static_allocator.hpp"
#include "monet/training_graph/training.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace monet {

/// Live bytes by owner, indexed by MemoryOwner.
using LiveBytes = std::array<std::int64_t, kMemoryOwners>;

/// Options of find_liveness().
struct LivenessOptions {
  /// Whether an element-wise operator writes its result over an operand that is not read later.
  bool reuse_operands = false;
};

/// A piece of memory: a tensor with its views and all tensors that overwrite it in place.
struct LiveBuffer {
  TensorId tensor;        ///< first tensor in it
  std::int64_t start = 0; ///< live while operators [start, end) run
  std::int64_t end = 0;
  std::int64_t bytes = 0;
  MemoryOwner owner = MemoryOwner::temporaries; ///< owner of the first tensor
  /// Whether it is live before and after the step: parameters, states, constants.
  bool permanent = false;
};

/// Result of find_liveness().
struct Liveness {
  std::vector<LiveBuffer> buffers;
  /// Index of the buffer per tensor; nullopt if the tensor is not used.
  std::vector<std::optional<std::size_t>> buffer_of;
  std::vector<LiveBytes> live; ///< per operator, while it runs
  std::size_t peak = 0;        ///< first operator with the maximum
};

/// Finds the lifetimes of a step's tensors. A tensor lives from its producer to its last reader.
/// Inputs live from the first operator, outputs of the step to its end. Tensors that PyTorch stores
/// live until the backward operators of their readers and their producer have run.
Liveness find_liveness(const TrainingGraph& step, const LivenessOptions& options = {});

/// Addresses in one arena for all buffers on the device that are not permanent.
struct AddressPlan {
  Integers offsets; ///< per buffer; -1 if permanent or on the host
  std::int64_t arena_bytes = 0;
  std::int64_t bound_bytes = 0; ///< lower bound on the size of any arena
  bool proven = false;          ///< true: no arena is smaller than this one
};

/// Plans the addresses. Sizes are rounded up to multiples of `granule`, so that every offset is a
/// multiple of it.
AddressPlan plan_addresses(const Liveness& liveness, std::int64_t granule = 64,
                           const AllocationOptions& options = {});

} // namespace monet
