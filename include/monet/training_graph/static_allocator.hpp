// allocate(): addresses for buffers with known lifetimes. Buffers that live at the same time do not
// overlap, and the total size is as small as the search can find ("dynamic storage allocation",
// strip packing with fixed times).
#pragma once

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
/// bound (see src/training_graph/skyline_search.hpp). There is no exact search if offsets are given
/// or alignments differ.
Allocation allocate(std::span<const BufferRequest> requests, const AllocationOptions& options = {});

/// Maximum sum of sizes that are live in one step.
std::int64_t max_live(std::span<const BufferRequest> requests);

/// Checks an allocation. Throws InternalError if two buffers overlap, or if one is misaligned, not
/// at its required offset, or above the height.
void verify(std::span<const BufferRequest> requests, const Allocation& allocation);

} // namespace monet
