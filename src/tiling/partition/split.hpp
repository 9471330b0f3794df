// Cutting of an operator into tiles: loops that may be cut, the best cut over given cores, and the
// meaning of a mapping file's factors and cores for a nest.
#pragma once

#include "tiling/shared/grid.hpp"

#include "monet/base/errors.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/tiling/tiling.hpp"
#include "monet/workload/graph.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace monet {

/// Cut of one operator, and the cores that run its parts.
struct Split {
  std::vector<SplitFactor> factors; ///< empty: one tile
  std::vector<CoreId> cores;        ///< tile i runs on cores[i % cores.size()]
};

/// Effect of cutting a loop on the outputs.
enum class LoopUse {
  parallel, ///< every tile writes its own part
  summed,   ///< tiles add into the same part, one after the other
  never,    ///< the loop may not be cut
};

/// Effect of cutting the loop. `parallel`: see may_split(). `summed`: every output either keeps its
/// parts disjoint or lacks the loop, so that tiles add into it. `never`: iterations need each
/// other's results (LoopDim::coupled), or an output is opaque, overlaps in part, or is written, but
/// not accumulated, at data-dependent positions.
LoopUse loop_use(const LoopNest& nest, std::size_t dim);

/// Part `index` of [0, size) cut into `parts` parts. Sizes differ by at most one; larger parts come
/// first.
Interval even_part(std::int64_t size, std::int64_t parts, std::int64_t index);

/// Minimum cycles of a tile with these ranges. A loop unrolled by the core's dataflow needs its
/// size over the unrolling, rounded up. Without a dataflow, iterations are divided by the number of
/// lanes. A core with modes must be given in the mode of the operands.
std::int64_t estimated_cycles(const LoopNest& nest, std::span<const Interval> tile,
                              const Core& core);

/// Finds the cut over some of `cores` with the fewest estimated cycles: those of the largest tile,
/// or of moving all tiles' data through the off-chip port if that takes longer. Ties are broken by
/// the cycles of the largest tile, then by the bits touched, then by the first loop. Operators
/// below kSmallestSplitCycles stay whole.
///
/// `nest` is the operator's nest; for a sliced operator, with the sizes of one slice. `slices`
/// holds per operand the number of slices that share one transfer from off-chip; 0: the operand is
/// not transferred. Empty `slices`: the operator has one slice.
Split choose_split(const Graph& graph, const Operator& op, const LoopNest& nest,
                   std::span<const std::int64_t> slices, const Chip& chip,
                   std::span<const CoreId> cores);

/// Minimum cycles on one core from which an operator is worth distributing over cores.
inline constexpr std::int64_t kSmallestSplitCycles = 128;

/// Index of the loop that a mapping file calls `name`: the nest's own name, else the name in
/// Stream. Stream calls the output axes of element-wise operators B, H, D, K from the left, and the
/// channels of a pooling K. Returns dims.size() if there is no such loop.
std::size_t find_mapped_dim(const LoopNest& nest, std::string_view name);

bool is_compute_core(const Chip& chip, std::size_t core);
/// True if routes lead from the off-chip memory to the core and back, or if the chip has no
/// off-chip memory.
bool has_offchip_path(const Chip& chip, std::size_t core);
/// Cores that the mapping entry lists, in its order and with repetitions. Adds a problem for each
/// id that is not a compute core of the chip or has no route from and to the off-chip memory.
std::vector<CoreId> listed_cores(const MappingEntry& entry, const Chip& chip,
                                 ProblemList& problems);
/// Throws InputError with all problems instead.
std::vector<CoreId> listed_cores(const MappingEntry& entry, const Chip& chip);

/// Cores that may run each operator. Throws InfeasibleError if an operator has none.
std::vector<std::vector<CoreId>> operator_cores(const Graph& graph, const Chip& chip,
                                                const TilingOptions& options);

/// Usable factors of `given`. Skips loops that the operator lacks, that may not be cut or that
/// occurred before; clips factors to the loop's size; `*` stands for `chosen`.
std::vector<SplitFactor> usable_factors(const LoopNest& nest, std::span<const TilingFactor> given,
                                        std::int64_t chosen);

} // namespace monet
