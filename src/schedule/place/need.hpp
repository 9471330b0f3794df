// What a tile has to have in its core's memory before it runs.
#pragma once

#include "schedule/place/pieces.hpp"
#include "schedule/place/residency.hpp"

#include <optional>

namespace monet {

/// A piece, or some of it, that a tile has to have in its core's memory.
struct Need {
  PieceId piece;
  TensorId tensor;
  Bits bits;
  MemoryOperand memory = MemoryOperand::I1; ///< as what it is kept
  TileId maker;                             ///< of a piece that somebody makes
  bool whole = true;                        ///< all of the piece
  bool adds = false;                        ///< the tile adds to it: it becomes the tile's output
  std::optional<CopyId> copy;               ///< once it is there or on its way
  Bits missing;                             ///< what is not there yet
};

} // namespace monet
