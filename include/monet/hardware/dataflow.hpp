// The loops that dataflows unroll over arrays: those that a workload has, and few enough iterations
// for the array.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/hardware/chip.hpp"

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace monet {

using LoopNames = std::set<std::string, std::less<>>;

/// A problem for each loop that neither the workload nor any convolution or product has.
void check_loops(std::span<const Unrolling> unrollings, const LoopNames& workload,
                 const SourceLoc& where, ProblemList& problems);
/// The same of the dataflows of the chip's cores.
void check_loops(const Chip& chip, const LoopNames& workload, ProblemList& problems);

/// A problem when the array dimension has fewer places than the unrollings have iterations.
void check_width(std::span<const Unrolling> unrollings, const ArrayDim& dim, const SourceLoc& where,
                 ProblemList& problems);

} // namespace monet
