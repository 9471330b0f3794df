// Many tilings of one step that differ only in which cores run its operators.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace monet {

class Tiler;

/// make_tiles() in two parts: what cores may run each operator, stacks and slices, found once; and
/// the tiles of an allocation, as often as wanted, from any thread.
class TilePlanner {
public:
  /// Keeps references to `step`, `chip` and the options' mapping. Throws as make_tiles() does.
  TilePlanner(const TrainingGraph& step, const Chip& chip, const TilingOptions& options);
  ~TilePlanner();
  TilePlanner(const TilePlanner&) = delete;
  TilePlanner& operator=(const TilePlanner&) = delete;

  /// The options' allocation, or the mapping's entries with `allocation_only`; may be empty.
  const CoreAllocation& given() const;
  /// Those that the chip and the mapping let run the operator, in the mapping's order.
  const std::vector<CoreId>& cores(OpId op) const;
  /// The operator's slices, not shared out yet.
  OperatorTiling sliced(OpId op) const;
  /// The mapping's factors over so many cores; none where sharing out is left to the tool.
  std::vector<LoopCut> given_cuts(OpId op, std::int64_t cores) const;

  /// An empty allocation, and operators without cores in it, leave the choice to make_tiles().
  /// Parts of a slice are no more than its shortest one has iterations.
  TileGraph tiles(const CoreAllocation& allocation) const;

private:
  std::unique_ptr<Tiler> tiler_;
};

/// The allocation that gives the same tiles again.
CoreAllocation allocation_of(const TileGraph& tiles);

/// Which allocations of single operators a search may choose from.
struct AllocationLimits {
  std::size_t all_sets_up_to = 6; ///< cores of which every set is tried; of more: single ones, runs
                                  ///< of 2, 4, ... neighbours, and the strongest so many
  std::size_t loops = 4;          ///< longest loops that are cut, one at a time
};

/// Per operator every allocation worth trying, each once: sets of cores that may run it, in order
/// of id, one part for each along one loop that may be cut without adding up; where the mapping has
/// factors over cores, these on every set of cores. Sets of which a smaller one does as well are
/// left out: no core is without a part.
std::vector<std::vector<OperatorAllocation>>
allocation_choices(const TrainingGraph& step, const Chip& chip, const TilePlanner& planner,
                   const AllocationLimits& limits = {});

/// The mapping with one more entry per operator, which holds its cores and cuts and changes neither
/// stacks nor slices (`allocation_only: true`): make_tiles() with it gives the tiles of the
/// allocation. Entries of `base` of this kind are replaced. Null: no other entries.
MappingFile mapping_of(const CoreAllocation& allocation, const Graph& graph,
                       const MappingFile* base);

} // namespace monet
