// Energy of a mapping: accesses of words at every level, and the MACs. Its cycles: temporal
// iterations, stalls on shared ports, and loading before and after.
#pragma once

#include "core_cost/model/data_movement.hpp"

#include <array>
#include <cstdint>

namespace monet::core_cost_detail {

/// pJ of one operand at one level; zero at the off-chip level. `accesses` of words, a part of one
/// as one.
double level_energy(const Hierarchy& hierarchy, const SpatialForm& spatial,
                    const DataMovement& movement, std::size_t operand, std::size_t level,
                    std::array<std::int64_t, kDirections>* accesses = nullptr);

struct EnergyParts {
  double compute = 0;
  double memory = 0;
  double total() const { return memory + compute; }
};
EnergyParts mapping_energy(const NestModel& model, const Hierarchy& hierarchy,
                           const SpatialModel& spatial, const DataMovement& movement);

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
