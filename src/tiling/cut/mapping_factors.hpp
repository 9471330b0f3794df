// The tiling factors of a mapping file, on the loops of our nests, and its cores.
#pragma once

#include "tiling/cut/split.hpp"

#include "monet/base/errors.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/workload/graph.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace monet {

/// Index of the loop that a mapping file calls `name`: the nest's own name, else what Stream calls
/// it. There, loops of element-wise operators are B, H, D, K for the axes of the output from the
/// left, and K are the channels of a pooling. dims.size() when there is no such loop.
std::size_t find_mapped_dim(const LoopNest& nest, std::string_view name);

bool is_compute_core(const Chip& chip, std::size_t core);
/// Weights and inputs can come from the off-chip memory, where there is one, and results go there.
bool has_offchip_path(const Chip& chip, std::size_t core);
/// The cores of the mapping entry, in its order and as often as it has them; those that the chip
/// lacks are problems.
std::vector<CoreId> listed_cores(const MappingEntry& entry, const Chip& chip,
                                 ProblemList& problems);

/// The usable ones of `given`: loops that the operator lacks or that may not be cut are left out,
/// and so is a loop given before; larger factors than the loop are clipped; `*` is `chosen`.
std::vector<SplitFactor> usable_factors(const LoopNest& nest, std::span<const TilingFactor> given,
                                        std::int64_t chosen);

} // namespace monet
