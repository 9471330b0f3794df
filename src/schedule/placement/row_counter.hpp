// Rows of the off-chip memory that transfers open, from the boxes of tensors that they move.
#pragma once

#include "schedule/placement/pieces.hpp"
#include "schedule/placement/residency.hpp"

#include "monet/hardware/chip.hpp"

#include <span>
#include <vector>

namespace monet {

/// Every tensor begins at a row and lies row-major in its own shape. What moves some of a box (what
/// is missing of a halo) or more than it (what is streamed several times, partial sums) counts rows
/// in proportion to its bits. Where opening rows takes no time, everything counts 0 rows.
class RowCounter {
public:
  RowCounter(const TileGraph& tiles, const Graph& graph, const Chip& chip, const Pieces& pieces);

  /// Of what a tile needs of one tensor, of which `bits` move in one transfer. Rows that needs side
  /// by side have in common count once where the needs fill a box.
  std::int64_t of_needs(std::span<const OperandRequest> needs, TileId reader, Bits bits);
  /// Of a piece that somebody makes.
  std::int64_t of_piece(PieceId piece, TensorId tensor, Bits bits);
  /// Of what flows by as an operand of the tile.
  std::int64_t of_operand(TileId tile, std::size_t operand, Bits bits);

private:
  std::int64_t count(TensorId tensor, const Box& box, Bits bits) const;
  void find_made(TileId maker, TensorId tensor);
  void find(const OperandRequest& need, TileId reader);

  const TileGraph& tiles_;
  const Graph& graph_;
  const Pieces& pieces_;
  std::int64_t row_bits_ = 0; ///< 0: opening rows takes no time
  // Kept for their storage.
  std::vector<Interval> ranges_;
  Box box_;
  Box part_;
  Box hull_;
};

} // namespace monet
