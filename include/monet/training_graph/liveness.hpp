// find_liveness() and plan_addresses(): memory at every operator of a step that runs one operator
// after another in graph order, and addresses for its buffers.
// Example:
//   std::int64_t arena_bytes(const TrainingGraph& step) {
//     LivenessOptions options;
//     options.reuse_operands = true;
//     return plan_addresses(find_liveness(step, options)).arena_bytes;
//   }
#pragma once

#include "monet/training_graph/training.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// A buffer of `size` bytes that lives over the steps [start, end).
struct BufferRequest {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t size = 0;
  std::int64_t alignment = 1;         ///< its offset is a multiple of this
  std::optional<std::int64_t> offset; ///< required offset; nullopt: any
};

/// Options of allocate().
struct AllocationOptions {
  /// Height that suffices; nullopt: the search minimises the height.
  std::optional<std::int64_t> capacity;
  /// Maximum number of placements in the exact search. It is counted, not timed, so that results do
  /// not depend on the machine.
  std::int64_t max_nodes = 200'000;
  /// Maximum number of buffers that the exact search visits, for large problems.
  std::int64_t max_work = 200'000'000;
};

/// Result of allocate().
struct Allocation {
  std::vector<std::int64_t> offsets; ///< per request; 0 for an empty or unused buffer
  std::int64_t height = 0;           ///< maximum of offset + size
  /// Lower bound on the height of any allocation; at least the maximum of live bytes.
  std::int64_t lower_bound = 0;
  /// Whether no lower height exists; with a capacity: whether it is met, or proven impossible.
  bool proven = false;
  std::int64_t nodes = 0; ///< placements tried by the exact search
};

/// Finds an allocation: first fit in several orders, then an exact search upwards from the lower
/// bound (see src/training_graph/memory/skyline_search.hpp). There is no exact search if offsets
/// are given or alignments differ.
Allocation allocate(std::span<const BufferRequest> requests, const AllocationOptions& options = {});

/// Maximum sum of sizes that are live in one step.
std::int64_t max_live(std::span<const BufferRequest> requests);

/// Checks an allocation. Throws InternalError if two buffers overlap, or if one is misaligned, not
/// at its required offset, or above the height.
void verify(std::span<const BufferRequest> requests, const Allocation& allocation);

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
