// TilePlanner: many tilings of one step that differ only in the cores that run its operators.
// Example:
//   TileGraph tiles_on_first_cores(const TrainingGraph& step, const Chip& chip) {
//     const TilePlanner planner(step, chip, {});
//     CoreAllocation allocation(step.graph.operators().size());
//     for (const OpId op : all_operators(step.graph))
//       allocation[op.index()].cores = {planner.cores(op).front()};
//     return planner.tiles(allocation);
//   }
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace monet {

class Tiler;

/// Performs make_tiles() in two parts. The constructor finds the candidate cores of each operator,
/// stacks and slices. tiles() then makes the tiles of an allocation, any number of times.
/// Thread-safe.
class TilePlanner {
public:
  /// Keeps references to `step`, `chip` and the options' mapping. Throws the exceptions of
  /// make_tiles().
  TilePlanner(const TrainingGraph& step, const Chip& chip, const TilingOptions& options);
  ~TilePlanner();
  TilePlanner(const TilePlanner&) = delete;
  TilePlanner& operator=(const TilePlanner&) = delete;

  /// Allocation in the options, or in the mapping's entries with `allocation_only`; may be empty.
  const CoreAllocation& given() const;
  /// Cores that can run the operator according to the chip and the mapping, in the mapping's order.
  const std::vector<CoreId>& cores(OpId op) const;
  /// Slices of the operator, before their partition over cores.
  OperatorTiling sliced(OpId op) const;
  /// The mapping's factors over `cores` cores; empty if make_tiles() selects the partition.
  std::vector<LoopCut> given_cuts(OpId op, std::int64_t cores) const;

  /// Makes the tiles of an allocation. make_tiles() selects the cores if the allocation is empty,
  /// and for operators that have no cores in it. A cut makes at most one part per iteration of the
  /// shortest slice.
  TileGraph tiles(const CoreAllocation& allocation) const;

private:
  std::unique_ptr<Tiler> tiler_;
};

/// Allocation that reproduces the tiles.
CoreAllocation allocation_of(const TileGraph& tiles);

/// Limits on the allocations of single operators among which a search selects.
struct AllocationLimits {
  /// Maximum number of cores for which every set is considered. For more cores: single cores, runs
  /// of 2, 4, ... neighbours, and sets of the strongest cores.
  std::size_t all_sets_up_to = 6;
  std::size_t loops = 4; ///< longest loops that are considered for partitioning, one at a time
};

/// Finds the candidate allocations of each operator, each once. A candidate is a set of cores that
/// can run the operator, sorted by id. It has one part per core along one loop that can be
/// partitioned without reduction. If the mapping has factors over cores, they apply to every set of
/// cores. Sets with idle cores, for which a smaller set is equivalent, are omitted.
std::vector<std::vector<OperatorAllocation>>
allocation_choices(const TrainingGraph& step, const Chip& chip, const TilePlanner& planner,
                   const AllocationLimits& limits = {});

/// Mapping that reproduces an allocation: make_tiles() with it makes the same tiles. It has the
/// entries of `base` (null: none) and one more per operator, with its cores and cuts but without
/// stacks or slices (`allocation_only: true`). Entries of `base` of this kind are replaced.
MappingFile mapping_of(const CoreAllocation& allocation, const Graph& graph,
                       const MappingFile* base);

} // namespace monet
