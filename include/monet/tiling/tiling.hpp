// Operators -> tiles and the exact dependencies between them.
#pragma once

#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/training/training.hpp"

#include <optional>
#include <vector>

namespace monet {

/// A box of an operator's iteration space, run by one core at a stretch.
struct Tile {
  OpId op;
  std::vector<Interval> ranges; ///< one per dim of the operator's nest
  CoreId core;                  ///< where it runs
};

/// `to` reads what `from` wrote.
struct TileEdge {
  TileId from;
  TileId to;
  TensorId tensor;
  Bits bits; ///< size of the overlap
};

struct TileGraph {
  std::vector<Tile> tiles;     ///< in topological order, tiles of an operator side by side
  std::vector<TileEdge> edges; ///< sorted by (to, from, tensor)
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      tiles_of; ///< per operator: [first, last) in tiles
};

struct TilingOptions {
  const MappingFile* mapping = nullptr; ///< null = automatic
};

/// Layer by layer: each operator is split once, over the cores that may run it, along its largest
/// output dim that divides work without splitting a reduction. Boundary tiles are smaller, never
/// padded. InfeasibleError naming the operators that no core may run.
TileGraph make_tiles(const TrainingGraph& step, const Chip& chip,
                     const TilingOptions& options = {});

/// Invariants as InternalError: the tiles of an operator partition its iteration space; every read
/// region is covered by edges and tensors without producer; edges go forward.
void verify(const TileGraph& tiles, const TrainingGraph& step);

} // namespace monet
