// How much of a piece tiles read between them, for the rare copy that holds only some of a piece.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <span>
#include <vector>

namespace monet {

class PartGeometry {
public:
  PartGeometry(const TileGraph& tiles, const Graph& graph) : tiles_(tiles), graph_(graph) {}

  /// Bits of what `maker` writes of the tensor that at least one of the readers reads.
  Bits read_by(TensorId tensor, TileId maker, std::span<const TileId> readers);

private:
  const TileGraph& tiles_;
  const Graph& graph_;
  // Kept for their storage.
  std::vector<Interval> ranges_;
  std::vector<Box> parts_;
  Box piece_;
};

} // namespace monet
