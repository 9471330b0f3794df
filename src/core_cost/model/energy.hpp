// Energy of a mapping: accesses of full words at every level, and the MACs.
#pragma once

#include "core_cost/model/data_movement.hpp"

#include <array>
#include <cstdint>

namespace monet::core_cost_detail {

/// pJ of one operand at one level; zero at the off-chip level.
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

} // namespace monet::core_cost_detail
