// Addresses for buffers whose lifetimes are known: no two that live at the same time overlap, and
// the whole is as small as can be found ("dynamic storage allocation", strip packing with fixed
// times).
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
  std::optional<std::int64_t> offset; ///< where it has to be, when that is given
};

struct AllocationOptions {
  /// Height that is enough; without one the least height is looked for.
  std::optional<std::int64_t> capacity;
  /// Placements the exact search may try. Counted, not timed: results do not depend on the machine.
  std::int64_t max_nodes = 200'000;
  /// Bound on the buffers it may look at, for large problems.
  std::int64_t max_work = 200'000'000;
};

struct Allocation {
  std::vector<std::int64_t> offsets; ///< per request; 0 for one that has no size or no life
  std::int64_t height = 0;           ///< largest offset + size
  std::int64_t lower_bound = 0; ///< no allocation is lower; at least the most that lives at once
  bool proven = false;          ///< nothing lower exists; with a capacity: it is kept, or cannot be
  std::int64_t nodes = 0;       ///< placements tried by the exact search
};

/// First fit in several orders, then an exact search from the lower bound upwards (see
/// src/training_graph/skyline_search.hpp) unless offsets are given or alignments differ.
Allocation allocate(std::span<const BufferRequest> requests, const AllocationOptions& options = {});

/// Largest sum of sizes alive at one step.
std::int64_t max_live(std::span<const BufferRequest> requests);

/// InternalError when two buffers overlap, or one is misaligned, out of place or above the height.
void verify(std::span<const BufferRequest> requests, const Allocation& allocation);

} // namespace monet
