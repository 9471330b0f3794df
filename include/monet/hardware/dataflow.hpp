// Checks of the loops that dataflows unroll over arrays: they must exist in the workload and fit
// the array.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/hardware/chip.hpp"

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace monet {

using LoopNames = std::set<std::string, std::less<>>;

/// Adds a problem for each unrolled loop that exists neither in the workload nor in any convolution
/// or matrix product.
void check_loops(std::span<const Unrolling> unrollings, const LoopNames& workload,
                 const SourceLoc& where, ProblemList& problems);
/// Checks the loops of the dataflows of all cores of a chip, with the same rule.
void check_loops(const Chip& chip, const LoopNames& workload, ProblemList& problems);

/// Adds a problem if the unrollings have more iterations than the array dimension has positions.
void check_width(std::span<const Unrolling> unrollings, const ArrayDim& dim, const SourceLoc& where,
                 ProblemList& problems);

} // namespace monet
