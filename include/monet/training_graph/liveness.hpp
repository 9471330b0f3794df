// What is in memory at every operator of a step when its operators run one after another in graph
// order, and addresses for it.
#pragma once

#include "monet/training_graph/static_allocator.hpp"
#include "monet/training_graph/training.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace monet {

/// Bytes by MemoryOwner.
using LiveBytes = std::array<std::int64_t, kMemoryOwners>;

struct LivenessOptions {
  /// An element-wise operator writes its result over an operand that nobody reads any more.
  bool reuse_operands = false;
};

/// A piece of memory: a tensor with its views and with what overwrites it in place.
struct LiveBuffer {
  TensorId tensor;        ///< the first that lies in it
  std::int64_t start = 0; ///< it lives while operators [start, end) run
  std::int64_t end = 0;
  std::int64_t bytes = 0;
  MemoryOwner owner = MemoryOwner::temporaries; ///< of the first tensor
  bool permanent = false; ///< parameters, states, constants: there before and after the step
};

struct Liveness {
  std::vector<LiveBuffer> buffers;
  std::vector<std::optional<std::size_t>> buffer_of; ///< per tensor; none for one nobody touches
  std::vector<LiveBytes> live;                       ///< per operator, while it runs
  std::size_t peak = 0;                              ///< the operator with the most, the first such
};

/// A tensor lives from its producer (an input from the first operator) to its last reader, outputs
/// of the step to its end. What PyTorch stores lives until the backward operators of its readers
/// and its producer have run.
Liveness find_liveness(const TrainingGraph& step, const LivenessOptions& options = {});

/// Addresses in one arena of everything on the device that is not permanent.
struct AddressPlan {
  Integers offsets; ///< per buffer; -1 for one that is permanent or in the host
  std::int64_t arena_bytes = 0;
  std::int64_t bound_bytes = 0; ///< no arena is smaller
  bool proven = false;          ///< nor than this one
};

/// Sizes are rounded up to whole `granule`s, so that every offset is a multiple of it.
AddressPlan plan_addresses(const Liveness& liveness, std::int64_t granule = 64,
                           const AllocationOptions& options = {});

} // namespace monet
