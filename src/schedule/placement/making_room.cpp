// Part of DataMover: makes room in the cores' memories. Evicts copies to other cores or off-chip,
// and releases copies that are no longer read.
#include "schedule/placement/data_mover.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {
/// Divisor: a memory that receives copies evicted elsewhere keeps this part free for its own tiles.
constexpr std::int64_t kFreePart = 4;
/// Divisor: a memory keeps data for the next turn only if the data that several turns read fit into
/// this part.
constexpr std::int64_t kKeptPart = 2;
} // namespace

std::int64_t DataMover::store(PieceId piece) {
  if (const auto stored = offchip_.stored_at(piece))
    return *stored;
  for (CopyId id = memory_.first_copy(piece); Residency::is_copy(id); id = memory_.copy(id).next) {
    if (memory_.copy(id).whole)
      return write(id, TransferKind::write_back);
  }
  throw InternalError("a result is nowhere");
}

std::int64_t DataMover::write(CopyId id, TransferKind kind) {
  const Copy& copy = memory_.copy(id);
  TransferRequest request{kind,      copy.tensor,     op_, gateway(id), network_.offchip(),
                          copy.bits, MemoryOperand::O};
  request.rows = rows_.of_piece(copy.piece, copy.tensor, copy.bits);
  const Booking booking = book(request, copy.available);
  memory_.touch(id, booking.end);
  const std::int64_t arrival = network_.arrival(booking, network_.offchip());
  offchip_.store(copy.piece, copy.tensor, copy.bits, booking.start, arrival);
  return arrival;
}

/// True if the copy can be removed without losing its data.
bool DataMover::spare(CopyId id) const {
  const Copy& copy = memory_.copy(id);
  if (!copy.whole || offchip_.stored_at(copy.piece))
    return true;
  for (CopyId other = memory_.first_copy(copy.piece); Residency::is_copy(other);
       other = memory_.copy(other).next) {
    if (other != id && memory_.copy(other).whole)
      return true;
  }
  return false;
}

void DataMover::evict(CopyId id) {
  std::optional<CopyId> moved;
  if (!spare(id)) {
    moved = move_to_a_core(id);
    if (!moved)
      write(id, TransferKind::spill);
  }
  memory_.retire(id);
  if (moved)
    release_if_unused(*moved);
}

/// Another pool with room to spare that would have the copy no later than the off-chip memory.
/// Prefers the pool that reads it next, then the one with the most room; nullopt if none exists.
std::optional<PoolId> DataMover::other_room(const Copy& copy, TransferRequest request) {
  request.to = network_.offchip();
  request.rows = rows_.of_piece(copy.piece, copy.tensor, copy.bits);
  const std::int64_t latest = network_.arrival(request, copy.available);
  request.rows = 0;
  next_read_.assign(memory_.pools(), Residency::kNever);
  for (const TileId reader : pieces_.readers(copy.piece)) {
    std::uint32_t& next = next_read_[pieces_.pool_of(reader).index()];
    if (!memory_.placed(reader))
      next = std::min(next, tiles_.rank[reader.index()]);
  }
  std::optional<PoolId> best;
  std::pair<std::uint32_t, std::int64_t> best_key;
  for (std::size_t p = 0; p < memory_.pools(); ++p) {
    const Pool& pool = memory_.pool(PoolId(p));
    if (PoolId(p) == copy.pool || pool.gateway == network_.offchip() ||
        pool.room() - copy.bits.value < pool.capacity / kFreePart ||
        !network_.direct(request.from, pool.gateway) || memory_.find(copy.piece, PoolId(p)))
      continue;
    const std::pair key(next_read_[p], -pool.room());
    request.to = pool.gateway;
    const std::int64_t ready = std::max(copy.available, pool.room_from(copy.bits));
    if ((best && best_key <= key) || network_.soonest(request, ready) > latest ||
        network_.arrival(request, ready) > latest)
      continue;
    best = PoolId(p);
    best_key = key;
  }
  return best;
}

/// Moves the only copy of a piece to another core with room. nullopt if none exists, or if the
/// copy was moved before: then it goes off-chip.
std::optional<CopyId> DataMover::move_to_a_core(CopyId id) {
  const Copy copy = memory_.copy(id); // by value: add() may move the record
  if (!rules_.spills_to_cores || copy.moved)
    return std::nullopt;
  TransferRequest request{TransferKind::spill, copy.tensor,     op_, gateway(id), gateway(id),
                          copy.bits,           MemoryOperand::O};
  const std::optional<PoolId> other = other_room(copy, request);
  if (!other)
    return std::nullopt;
  const Pool& pool = memory_.pool(*other);
  request.to = pool.gateway;
  const Booking booking = book(request, std::max(copy.available, pool.room_from(copy.bits)));
  memory_.touch(id, booking.end);
  const CopyId moved = memory_.add(*other, copy.piece, copy.tensor, copy.bits, booking.start,
                                   memory_.pool(*other).last_rank);
  const std::int64_t there = network_.arrival(booking, request.to);
  memory_.copy(moved).moved = true;
  memory_.copy(moved).available = there;
  memory_.touch(moved, there);
  return moved;
}

std::int64_t DataMover::make_room(Bits bits, TensorId tensor, std::int64_t by) {
  while (const auto copy = memory_.first_to_go(pool_, bits, by))
    evict(*copy);
  const Pool& pool = memory_.pool(pool_);
  if (pool.room() < bits.value) {
    throw InfeasibleError(fmt::format("'{}' of '{}' does not fit into core '{}': {} bits too many",
                                      graph_.tensor(tensor).name, graph_.op(op_).name,
                                      chip_.cores[tiles_.tiles[tile_.index()].core.index()].name,
                                      bits.value - pool.room()));
  }
  return pool.room_from(bits);
}

/// Makes room in time for the data to arrive by the tile's earliest start.
std::int64_t DataMover::make_room_to_fetch(Bits bits, TensorId tensor, std::int64_t rows) {
  const TransferRequest read{.from = network_.offchip(), .to = core_, .bits = bits, .rows = rows};
  return make_room(bits, tensor, start_ - network_.duration(read));
}

/// Finds the last rank of every turn, and the pools that keep nothing for the next turn. In these,
/// data that several turns read would take more than 1 / kKeptPart of the memory.
void DataMover::find_turns() {
  if (tiles_.turn.empty())
    return;
  for (std::size_t t = 0; t < tiles_.turn.size(); ++t) {
    const std::uint32_t turn = tiles_.turn[t];
    if (turn == TileGraph::kNoTurn)
      continue;
    turn_ends_.resize(std::max<std::size_t>(turn_ends_.size(), turn + 1), 0);
    turn_ends_[turn] = std::max(turn_ends_[turn], tiles_.rank[t]);
  }
  std::vector<std::int64_t> kept(memory_.pools(), 0); // bits that several turns read
  for (std::size_t part = 0; part < pieces_.sources().parts().size(); ++part) {
    const auto readers = pieces_.readers(pieces_.source(static_cast<std::uint32_t>(part)));
    for (auto at = readers.begin(); at != readers.end();) {
      const PoolId pool = pieces_.pool_of(*at);
      const auto last = std::partition_point(
          at, readers.end(), [&](TileId tile) { return pieces_.pool_of(tile) <= pool; });
      if (tiles_.turn[at->index()] != tiles_.turn[(last - 1)->index()])
        kept[pool.index()] += pieces_.sources().parts()[part].bits.value;
      at = last;
    }
  }
  for (std::size_t p = 0; p < kept.size(); ++p)
    forgets_.push_back(kept[p] > memory_.pool(PoolId(p)).capacity / kKeptPart);
}

bool DataMover::beyond_this_turn(const Copy& copy) const {
  if (forgets_.empty() || !forgets_[copy.pool.index()])
    return false;
  const std::uint32_t turn = tiles_.turn[tile_.index()];
  return turn != TileGraph::kNoTurn && copy.next_use > turn_ends_[turn];
}

/// Releases a copy that its pool no longer reads in this turn. It stays as idle if other pools
/// still read the piece.
void DataMover::release_for_this_turn(CopyId id) {
  const PieceId piece = memory_.copy(id).piece;
  if (memory_.copy(id).whole && read_in_this_turn(piece)) {
    memory_.set_idle(id);
    return;
  }
  memory_.retire(id);
  for (CopyId other = memory_.first_copy(piece); Residency::is_copy(other);) {
    const CopyId next = memory_.copy(other).next;
    if (memory_.copy(other).idle && memory_.copy(other).pins == 0 && spare(other))
      memory_.retire(other);
    other = next;
  }
}

bool DataMover::read_in_this_turn(PieceId piece) const {
  const auto readers = pieces_.readers(piece);
  const std::uint32_t turn = tiles_.turn[tile_.index()];
  const std::uint32_t begin = turn == 0 ? 0 : turn_ends_[turn - 1];
  for (auto at = readers.begin(); at != readers.end();) {
    const PoolId pool = pieces_.pool_of(*at);
    const auto place = [&](TileId tile) {
      return std::pair(pieces_.pool_of(tile), tiles_.rank[tile.index()]);
    };
    at = std::partition_point(at, readers.end(),
                              [&](TileId tile) { return place(tile) < std::pair(pool, begin); });
    for (; at != readers.end() && place(*at) <= std::pair(pool, turn_ends_[turn]); ++at) {
      if (!memory_.placed(*at))
        return true;
    }
    at = std::partition_point(at, readers.end(),
                              [&](TileId tile) { return pieces_.pool_of(tile) <= pool; });
  }
  return false;
}

/// Releases a copy that its pool no longer reads. It stays for readers in other pools: as idle
/// while there is room, or as needed if it is the only one.
void DataMover::release_if_unused(CopyId id) {
  memory_.refresh(id);
  if (memory_.copy(id).next_use != Residency::kNever) {
    if (beyond_this_turn(memory_.copy(id)) && spare(id))
      release_for_this_turn(id);
    return;
  }
  if (!memory_.copy(id).whole) {
    memory_.retire(id);
  } else if (spare(id)) {
    memory_.set_idle(id);
  } else {
    memory_.set_needed_elsewhere(id);
  }
}

/// Removes all copies of a piece whose last reader is placed.
void DataMover::retire(PieceId piece) {
  while (Residency::is_copy(memory_.first_copy(piece)))
    memory_.retire(memory_.first_copy(piece));
  offchip_.retire(piece);
}

} // namespace monet
