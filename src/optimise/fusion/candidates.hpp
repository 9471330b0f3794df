// Plans of a step that closed forms promise, and the cores that they may run on.
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/model/model_step.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/tiling/covers.hpp"

#include <optional>
#include <vector>

namespace monet {

/// FusionCovers::plans() with the costs that the plans' tiles have.
FusionCovers::Estimates estimated_plans(const FusionCovers& covers, const TrainingGraph& step,
                                        const Chip& chip, const TilingOptions& tiling,
                                        const ScheduleOptions& schedule, CoreCostCache& costs);

bool gives_cores(const MappingFile* mapping);

/// Which cores may idle: of each kind of which there are several, all but a nominal number of those
/// that are nearest to the others.
std::vector<std::vector<bool>> idle_cores(const Chip& chip);

} // namespace monet
