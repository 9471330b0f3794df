// Cycles of a mapping: temporal iterations, stalls on shared ports, and loading before and after.
#pragma once

#include "core_cost/model/data_movement.hpp"

#include <array>

namespace monet::core_cost_detail {

/// [operand][m]: the memory below index m is double-buffered, so transfers into it may take a whole
/// period.
using DoubleBuffered = std::array<std::array<bool, kMaxLevels + 1>, kMaxOperands>;
/// `movement` is that of the exact spatial form.
DoubleBuffered find_double_buffers(const NestModel& model, const Hierarchy& hierarchy,
                                   const DataMovement& movement);

/// `movement` is that of the truncated spatial form; `issued` are cycles from the first MAC to the
/// last that the core's instructions take in any case, in which data move, too.
LatencyParts mapping_latency(const NestModel& model, const Hierarchy& hierarchy,
                             const DataMovement& movement, const DoubleBuffered& double_buffered,
                             double issued = 0);

} // namespace monet::core_cost_detail
