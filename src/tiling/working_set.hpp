// How much a stack keeps on the chip while its slices follow each other.
#pragma once

#include "tiling/slices.hpp"

#include "monet/hardware/chip.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Bits that a stack needs on the chip so that nothing is fetched or written twice: operands that
/// every slice reads and sums that it adds to all the time; beside them, of one slice in the
/// middle, what is alive at the operator where that is most.
std::int64_t working_set(const Graph& graph, std::span<const OpId> members,
                         const StackSlicer& slicer, const std::vector<Slices>& slices);

/// Bits of all that the operator touches.
std::int64_t footprint(const Graph& graph, const Operator& op);

/// Bits that the outermost memories of these cores hold, shared ones once, with a quarter left for
/// what arrives ahead of its time.
std::int64_t room_on(const Chip& chip, const std::vector<bool>& cores);

} // namespace monet
