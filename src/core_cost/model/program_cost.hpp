// Costs of a programmed core in addition to its products: instructions of processors, waves of
// tiles and starts of kernels (hardware/shared/core_program.hpp).
#pragma once

#include "core_cost/model/data_movement.hpp"

#include <cstdint>
#include <span>

namespace monet::core_cost_detail {

/// Sets the program data of a core that has one: Hierarchy::program, and Port::in_unit.
void set_program(const NestModel& model, const Core& core, Hierarchy& hierarchy);

/// Cycles of instructions from the first MAC to the last, with `temporal` iterations of each loop
/// per lane; 0 without a program.
double issued_cycles(const NestModel& model, const Hierarchy& hierarchy,
                     std::span<const std::int64_t> temporal);

/// Cycles before the first MAC and between slices.
double cycles_beside(const NestModel& model, const Hierarchy& hierarchy,
                     const DataMovement& movement);

/// Lower bound on the cycles of any mapping on `lanes` lanes.
double min_program_cycles(const NestModel& model, const Hierarchy& hierarchy, double lanes);

} // namespace monet::core_cost_detail
