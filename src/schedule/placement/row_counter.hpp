// Number of rows of the off-chip memory that a transfer opens, from the boxes of the tensors that
// it moves.
#pragma once

#include "schedule/placement/pieces.hpp"
#include "schedule/placement/residency.hpp"

#include "monet/hardware/chip.hpp"

#include <span>
#include <vector>

namespace monet {

/// Counts rows. Every tensor begins at a row and is stored row-major in its own shape. A transfer
/// of a part of a box (the missing part of a halo), or of more than the box (repeated streams,
/// partial sums), counts rows in proportion to its bits. All counts are 0 if opening rows takes no
/// time.
class RowCounter {
public:
  RowCounter(const TileGraph& tiles, const Graph& graph, const Chip& chip, const Pieces& pieces);

  /// Rows of the parts of one tensor that a tile needs and that one transfer of `bits` moves. Rows
  /// that neighbouring parts share count once if the parts fill a box.
  std::int64_t of_needs(std::span<const OperandRequest> needs, TileId reader, Bits bits);
  /// Rows of a piece that a tile writes.
  std::int64_t of_piece(PieceId piece, TensorId tensor, Bits bits);
  /// Rows of an operand that is streamed for the tile.
  std::int64_t of_operand(TileId tile, std::size_t operand, Bits bits);

private:
  std::int64_t count(TensorId tensor, const Box& box, Bits bits) const;
  void find_made(TileId maker, TensorId tensor);
  void find(const OperandRequest& need, TileId reader);

  const TileGraph& tiles_;
  const Graph& graph_;
  const Pieces& pieces_;
  std::int64_t row_bits_ = 0; ///< 0: opening rows takes no time
  // Buffers, kept to avoid allocations.
  std::vector<Interval> ranges_;
  Box box_;
  Box part_;
  Box hull_;
};

} // namespace monet
