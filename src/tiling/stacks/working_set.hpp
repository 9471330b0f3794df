// How much a stack keeps on the chip while its slices follow each other.
#pragma once

#include "tiling/stacks/slices.hpp"

#include "monet/hardware/chip.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// What a stack needs on the chip so that nothing is fetched or written twice.
struct GroupSpace {
  /// What slices read of an operand, or add to, again and again: in every one, or, where an outer
  /// loop's slices do not differ in it but an inner loop's do, in every slice of the outer loop.
  struct Kept {
    std::int64_t bits = 0;
    double times = 1;          ///< that slices sweep over it
    std::uint32_t member = 0;  ///< the first that touches it
    std::uint32_t operand = 0; ///< of the member's nest
    bool made = false;         ///< by a member
  };
  std::vector<Kept> kept;
  std::int64_t passing =
      0; ///< bits of one slice in the middle, at the operator where most is alive
};

/// Members that are `left_out` do not count.
GroupSpace group_space(const Graph& graph, std::span<const OpId> members, const StackSlicer& slicer,
                       const std::vector<Slices>& slices, const std::vector<bool>& left_out);

/// Bits of the space, with what is kept once for each of its member's `copies` (members with none
/// do not count).
std::int64_t working_set(const Graph& graph, std::span<const OpId> members,
                         const StackSlicer& slicer, const std::vector<Slices>& slices,
                         std::span<const std::int64_t> copies);

/// Bits that one core touches when a slice of the operator is shared out over so many cores along
/// the loop that suits it best.
std::int64_t tile_bits(const Graph& graph, const Operator& op, const Slices& slices,
                       std::int64_t cores);

/// Slices that the cuts make.
double slices_in(const Slices& slices);
/// About how many pairs of a reader's and its maker's slices meet in the tensor of the access.
double crossings(const Graph& graph, const Access& access, const LoopNest& reader,
                 const Slices& slices, const Slices& makers);

/// Bits of all instances of the operands' outermost memories, each memory once.
std::int64_t outermost_bits(const Core& core);

/// What the outermost memories of a chip hold.
class MemoryCapacity {
public:
  explicit MemoryCapacity(const Chip& chip);

  /// Bits of these cores together, shared memories once, with a quarter left for what arrives ahead
  /// of its time.
  std::int64_t together(const std::vector<bool>& cores) const;
  /// Bits that a tile may touch on any one of these cores so that the next one's operands can
  /// arrive meanwhile: half of the smallest.
  std::int64_t of_a_tile(std::span<const CoreId> cores) const;

private:
  std::vector<std::int64_t> bits_;    ///< per core
  std::vector<std::uint32_t> memory_; ///< per core: first of those that share it
};

} // namespace monet
