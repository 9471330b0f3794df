// Use of an in-memory computing array by a mapping: rows, columns and multiplications.
#pragma once

#include "core_cost/model/data_movement.hpp"

namespace monet::core_cost_detail {

/// Computes the use of an array, with whole unrolling factors: 1000 columns of weights unrolled by
/// 128 use 128 columns, where the memories see 125. ImcWork::weight_reads is not set, since it
/// depends on the order of the temporal loops.
ImcWork imc_work(const NestModel& model, const Hierarchy& hierarchy,
                 const ArrayUnrolling& unrolling);

/// Shortens loops along the bitlines whose rows shift from column to column until the array has as
/// many rows. Nothing with ZigZag's count of them, which may be beyond the array.
void limit_rows(const NestModel& model, const Hierarchy& hierarchy, ArrayUnrolling& unrolling);

/// ImcWork::weight_reads. `movement` is that of the exact spatial form.
double weight_reads(const NestModel& model, const Hierarchy& hierarchy, const SpatialModel& spatial,
                    const DataMovement& movement);

/// imc_work() with these, and the energy. `movement` is that of the exact spatial form.
ImcCost imc_cost(const NestModel& model, const Hierarchy& hierarchy, const SpatialModel& spatial,
                 const DataMovement& movement);

} // namespace monet::core_cost_detail
