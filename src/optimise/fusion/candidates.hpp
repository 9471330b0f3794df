// Candidate plans of a step from closed-form estimates, and the cores they may use.
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/model/model_step.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/tiling/tiling.hpp"

#include <vector>

namespace monet {

/// Plans of FusionCovers::plans(), estimated with the costs of the plans' tiles.
FusionCovers::Estimates estimated_plans(const FusionCovers& covers, const TrainingGraph& step,
                                        const Chip& chip, const TilingOptions& tiling,
                                        const ScheduleOptions& schedule, CoreCostCache& costs);

/// True if an entry of the mapping lists cores.
bool gives_cores(const MappingFile* mapping);

/// Candidate sets of idle cores. In each set, cores of one kind are idle: those farthest from the
/// other kinds. The number of busy ones is a power of two, or three times one.
std::vector<std::vector<bool>> idle_cores(const Chip& chip);

} // namespace monet
