// Which tiles cannot differ in what they cost, found without writing down their problems.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Tiles of one operator on one core with parts of equal sizes that the borders of tensors clip
/// alike: they have the same CoreProblem. Classes of an operator lie side by side.
struct TileClasses {
  std::vector<std::uint32_t> class_of; ///< per tile
  std::vector<TileId> example;         ///< per class: its first tile
  std::vector<std::uint64_t> shape; ///< per class: equal within an operator = differ in core only
};

/// Of these operators only; tiles of others have no class.
TileClasses classify_tiles(const TileGraph& tiles, const Graph& graph, std::span<const OpId> ops);

} // namespace monet
