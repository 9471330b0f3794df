// How an operator is cut into tiles: which loops may be cut, which cut suits which cores, and what
// the factors and cores of a mapping file are on the loops of our nests.
#pragma once

#include "tiling/shared/grid.hpp"

#include "monet/base/errors.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/workload/graph.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace monet {

/// What one operator is cut into, and the cores that get the parts.
struct Split {
  std::vector<SplitFactor> factors; ///< none: one tile
  std::vector<CoreId> cores;        ///< tile i runs on cores[i % cores.size()]
};

/// What becomes of the outputs when a loop is cut.
enum class LoopUse {
  parallel, ///< every tile writes its own part
  summed,   ///< tiles add into the same part, one after the other
  never,    ///< it may not be cut
};

/// `parallel` as may_split() says. `summed` when every output either keeps its parts disjoint or
/// lacks the loop altogether: tiles that differ in it add up to the output. `never`: loops whose
/// iterations need each other's results (LoopDim::coupled), outputs that are opaque or overlap in
/// part, and writes to where data decide.
LoopUse loop_use(const LoopNest& nest, std::size_t dim);

/// Part `index` of [0, size) cut into `parts`; sizes differ by one at most, the larger come first.
Interval even_part(std::int64_t size, std::int64_t parts, std::int64_t index);

/// Cycles that a tile of these sizes takes at least: loops unrolled by the core's dataflow take
/// ceil(size / unrolling) steps; without a dataflow, iterations over lanes. The core is one in a
/// mode, where it has modes.
std::int64_t estimated_cycles(const LoopNest& nest, std::span<const Interval> tile,
                              const Core& core);

/// The cut over some of `cores` with the fewest estimated cycles: of the largest tile, or of moving
/// what all tiles touch through the off-chip port where that takes longer; then the fewest of the
/// largest tile, then the least data touched, then the first loop. Operators below
/// kSmallestSplitCycles stay whole.
///
/// `nest` is the operator's own; in slices it has the sizes of one slice, and `slices` says per
/// operand how many of them share what is brought of it: 0 = nothing is. Empty: one slice.
Split choose_split(const Graph& graph, const Operator& op, const LoopNest& nest,
                   std::span<const std::int64_t> slices, const Chip& chip,
                   std::span<const CoreId> cores);

/// An operator whose whole takes fewer cycles than this on one core is not worth distributing.
inline constexpr std::int64_t kSmallestSplitCycles = 128;

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
