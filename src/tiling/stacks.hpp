// Which operators run fused, and in how many slices.
#pragma once

#include "tiling/slices.hpp"

#include "monet/hardware/chip.hpp"
#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Per operator: the cores that may run it.
using CoreLists = std::vector<std::vector<CoreId>>;

/// The operators in stacks, each in ascending order and in one stack.
struct Stacks {
  std::vector<std::vector<OpId>> members; ///< by first operator
  std::vector<std::uint32_t> stack_of;    ///< per operator
};

/// The given stacks, and one for every other operator. Operators without tiles are none.
Stacks complete_stacks(const Graph& graph, std::vector<std::vector<OpId>> given);

/// Stacks of neighbours in the order of operators, where layer by layer an operator's operands and
/// results do not fit on the chip together: as many as can be sliced along one common axis so that
/// the working set fits. An optimiser update joins the operator that makes its gradient.
std::vector<std::vector<OpId>> automatic_stacks(const Graph& graph, const Chip& chip,
                                                const CoreLists& cores);

/// Slices for the members that have none given: along the loop that follows from the given ones;
/// or, when nobody has any, along the loop of the first or last member that reaches the most
/// members, in as few slices as let the working set fit, but at least `least`.
void fill_in_slices(const Graph& graph, const Chip& chip, const CoreLists& cores,
                    std::span<const OpId> members, Halo halo, std::int64_t least,
                    StackSlicer::Scratch& scratch, StackSlicer::Loops loops,
                    std::vector<Slices>& slices);

} // namespace monet
