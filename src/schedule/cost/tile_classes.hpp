// Classes of tiles with equal cost, found without writing down the tiles' core problems.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Classes of tiles. The tiles of a class belong to one operator and one core, have parts of equal
/// sizes, and are clipped alike by the borders of tensors: their CoreProblem is the same. Classes
/// of an operator have consecutive numbers.
struct TileClasses {
  std::vector<std::uint32_t> class_of; ///< per tile
  std::vector<TileId> example;         ///< per class: its first tile
  std::vector<std::uint64_t> shape;    ///< per class; equal in classes that differ only in core
};

/// Classes of the tiles of the operators `ops`. Tiles of other operators have no class.
TileClasses classify_tiles(const TileGraph& tiles, const Graph& graph, std::span<const OpId> ops);

} // namespace monet
