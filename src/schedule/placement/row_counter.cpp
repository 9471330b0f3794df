// Counts the rows of the off-chip memory that transfers open; data_mover.cpp adds the counts to its
// requests.
#include "schedule/placement/row_counter.hpp"

#include "base/shared/checked.hpp"

#include <algorithm>

namespace monet {

namespace {

/// Extends a box to contain another one. A box without axes becomes the other one.
void widen(Box& box, const Box& more) {
  if (box.empty())
    box = more;
  for (std::size_t a = 0; a < box.size(); ++a)
    box[a] = {std::min(box[a].begin, more[a].begin), std::max(box[a].end, more[a].end)};
}

} // namespace

RowCounter::RowCounter(const TileGraph& tiles, const Graph& graph, const Chip& chip,
                       const Pieces& pieces)
    : tiles_(tiles), graph_(graph), pieces_(pieces) {
  if (const auto rows = offchip_port(chip).rows)
    row_bits_ = rows->row_bits;
}

/// Rows of a transfer of `bits`, which may be the box, a part of it or more.
std::int64_t RowCounter::count(TensorId id, const Box& box, Bits bits) const {
  const Tensor& tensor = graph_.tensor(id);
  const std::int64_t all = storage_of(tensor.type, volume(box)).value;
  const std::int64_t least = ceil_div(bits.value, row_bits_);
  if (all == 0)
    return least;
  const std::int64_t rows = rows_of_box(box, tensor.shape, bits_of(tensor.type), row_bits_);
  if (bits.value == all)
    return std::max(least, rows); // least is larger only for scales of blocks
  const std::int64_t part = ceil_div(checked_multiply(rows, bits.value % all), all);
  return std::max(least, checked_add(checked_multiply(rows, bits.value / all), part));
}

/// Sets box_ to the region that a tile writes of a tensor.
void RowCounter::find_made(TileId maker, TensorId tensor) {
  tiles_.ranges(maker, ranges_);
  box_.clear();
  const LoopNest& nest = graph_.op(tiles_.tiles[maker.index()].op).nest;
  if (const Access* written = written_access(nest, tensor))
    region_into(*written, ranges_, graph_.tensor(tensor).shape, box_);
}

/// Sets box_ to the part of a piece that a tile needs.
void RowCounter::find(const OperandRequest& need, TileId reader) {
  if (!pieces_.made(need.piece)) {
    box_ = pieces_.source_box(need.piece);
    return;
  }
  find_made(need.maker, need.tensor);
  if (need.whole)
    return;
  tiles_.ranges(reader, ranges_);
  hull_.clear();
  for (const Access& access : graph_.op(tiles_.tiles[reader.index()].op).nest.operands) {
    if (access.tensor != need.tensor || access.mode != AccessMode::read)
      continue;
    region_into(access, ranges_, graph_.tensor(need.tensor).shape, part_);
    widen(hull_, part_);
  }
  for (std::size_t a = 0; a < hull_.size(); ++a)
    box_[a] = intersect(box_[a], hull_[a]);
}

std::int64_t RowCounter::of_needs(std::span<const OperandRequest> needs, TileId reader, Bits bits) {
  if (row_bits_ == 0)
    return 0;
  if (needs.size() == 1) {
    find(needs.front(), reader);
    return count(needs.front().tensor, box_, bits);
  }
  std::int64_t total = 0;
  Box all;
  for (const OperandRequest& need : needs) {
    find(need, reader);
    total += count(need.tensor, box_, need.missing);
    widen(all, box_);
  }
  const Tensor& tensor = graph_.tensor(needs.front().tensor);
  if (storage_of(tensor.type, volume(all)) != bits)
    return total;
  return std::min(total, count(needs.front().tensor, all, bits));
}

std::int64_t RowCounter::of_piece(PieceId piece, TensorId tensor, Bits bits) {
  if (row_bits_ == 0)
    return 0;
  find_made(pieces_.maker(piece), tensor);
  return count(tensor, box_, bits);
}

std::int64_t RowCounter::of_operand(TileId tile, std::size_t operand, Bits bits) {
  if (row_bits_ == 0)
    return 0;
  const Access& access = graph_.op(tiles_.tiles[tile.index()].op).nest.operands[operand];
  tiles_.ranges(tile, ranges_);
  region_into(access, ranges_, graph_.tensor(access.tensor).shape, box_);
  return count(access.tensor, box_, bits);
}

} // namespace monet
