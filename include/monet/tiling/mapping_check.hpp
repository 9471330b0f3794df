// Mapping files against what they are for.
#pragma once

#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/workload/graph.hpp"

#include <span>

namespace monet {

/// One InputError with every entry that is of no use: of a layer or over a loop that none of the
/// graphs has (check_subjects()), or for a core that is no compute core of the chip.
void check_mapping(const MappingFile& mapping, const Chip& chip,
                   std::span<const Graph* const> graphs);

} // namespace monet
