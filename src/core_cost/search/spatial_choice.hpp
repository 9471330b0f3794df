// Which loops to unroll on which array dimension: the core's dataflow, and what else would fill the
// array.
#pragma once

#include "core_cost/model/spatial_mapping.hpp"

#include <vector>

namespace monet::core_cost_detail {

/// Largest useful factor of every loop on every array dim: the loop, the array dim, and for loops
/// that touch an operand the bandwidth of its innermost memory, where one instance serves the array
/// dim.
using UnrollCaps = std::vector<std::vector<std::int64_t>>; ///< [array dim][loop]
UnrollCaps unroll_caps(const NestModel& model, const Hierarchy& hierarchy);

/// The named unrollings reduced to what the nest has: absent loops dropped, factors capped. Empty
/// lists when nothing fits.
ArrayUnrolling from_dataflow(const NestModel& model, const Hierarchy& hierarchy,
                             const UnrollCaps& caps,
                             const std::vector<std::vector<Unrolling>>& dataflow);

/// The caps that also keep to the user's wishes: an array dim of `kept` that names loops takes
/// those alone and no further, any other takes the loops of its hints, if one of them is a loop of
/// the nest.
UnrollCaps restricted(UnrollCaps caps, const NestModel& model,
                      const std::vector<std::vector<Unrolling>>& kept,
                      const std::vector<std::vector<std::string>>& hints);

/// Up to `wanted` unrollings that use the most of the array, best first; ties by fewer loops, then
/// by loop order. One array dim may take up to three loops (C 3, FX 3, FY 3 on 32 lanes).
std::vector<ArrayUnrolling> fill_array(const NestModel& model, const Hierarchy& hierarchy,
                                       const UnrollCaps& caps, std::size_t wanted);

/// MACs over lanes times temporal steps; 1 = every lane busy in every cycle.
double utilisation(const NestModel& model, const Hierarchy& hierarchy,
                   const ArrayUnrolling& unrolling);

} // namespace monet::core_cost_detail
