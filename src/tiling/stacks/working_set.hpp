// Memory that a stack or a tile occupies on the chip while slices follow each other.
#pragma once

#include "tiling/stacks/slices.hpp"

#include "monet/hardware/chip.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Space that a stack needs on the chip so that nothing is fetched or written twice.
struct GroupSpace {
  /// Part of an operand that several slices read or add to. If an inner loop moves the operand and
  /// an outer loop does not, all slices of the inner loop together sweep over it once per outer
  /// slice.
  struct Kept {
    std::int64_t bits = 0;
    double times = 1;          ///< sweeps of the slices over it
    std::uint32_t member = 0;  ///< first member that touches it
    std::uint32_t operand = 0; ///< index in the member's nest
    bool made = false;         ///< written by the member
  };
  std::vector<Kept> kept;
  std::int64_t passing = 0; ///< maximum over the members of the live bits of a middle slice
};

/// Space that the members need; members with `left_out` set are ignored.
GroupSpace group_space(const Graph& graph, std::span<const OpId> members, const StackSlicer& slicer,
                       const std::vector<Slices>& slices, const std::vector<bool>& left_out);

/// Bits of the stack's space. A kept operand counts once per copy: `copies` holds the number for
/// each member; members with 0 copies are ignored.
std::int64_t working_set(const Graph& graph, std::span<const OpId> members,
                         const StackSlicer& slicer, const std::vector<Slices>& slices,
                         std::span<const std::int64_t> copies);

/// Bits that one core touches when a slice of the operator is divided over `cores` cores along the
/// loop that minimises them.
std::int64_t tile_bits(const Graph& graph, const Operator& op, const Slices& slices,
                       std::int64_t cores);

/// True if slices with recomputed halos have many more iterations than the whole operators.
bool recomputes_much(const Graph& graph, std::span<const OpId> members,
                     const std::vector<Slices>& slices);

/// Number of slices that the cuts produce.
double slices_in(const Slices& slices);
/// Approximate number of pairs of a reader's and a producer's slices that meet in the access's
/// tensor.
double crossings(const Graph& graph, const Access& access, const LoopNest& reader,
                 const Slices& slices, const Slices& makers);

/// Bits of all instances of the operands' outermost memories. A memory of several operands counts
/// once.
std::int64_t outermost_bits(const Core& core);

/// Capacities of the outermost memories of a chip.
class MemoryCapacity {
public:
  explicit MemoryCapacity(const Chip& chip);

  /// Usable bits of these cores together. Shared memories count once; a quarter stays free for data
  /// that arrive early.
  std::int64_t together(const std::vector<bool>& cores) const;
  /// Maximum bits that a tile may touch on any of these cores: half of the smallest memory, so that
  /// the next tile's operands can arrive meanwhile.
  std::int64_t of_a_tile(std::span<const CoreId> cores) const;

private:
  std::vector<std::int64_t> bits_;    ///< per core
  std::vector<std::uint32_t> memory_; ///< per core: first core that shares its memory
};

} // namespace monet
