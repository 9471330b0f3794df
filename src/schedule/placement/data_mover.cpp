// Fetches, stores and streams the pieces that a tile needs. The event scheduler calls it for every
// tile that it places.
#include "schedule/placement/data_mover.hpp"

#include "base/shared/names.hpp"
#include "base/shared/union_volume.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace monet {

namespace {
/// Maximum parts from which a copy is put together; beyond it, the piece is fetched anew.
constexpr std::size_t kMaxParts = 4;
/// Only the oldest `kMaxSources` copies of a piece are considered as sources.
constexpr std::size_t kMaxSources = 8;
/// Another pool receives fetched data, too, if its next reader is at most `kSoon` ranks after the
/// pool's last tile.
constexpr std::uint32_t kSoon = 256;
} // namespace

DataMover::DataMover(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                     const TransferRules& rules, const PlacementState& state)
    : tiles_(tiles), graph_(step.graph), chip_(chip), rules_(rules), network_(state.network),
      memory_(state.memory), pieces_(state.pieces), timeline_(state.timeline),
      offchip_(step.graph, network_.offchip(), pieces_, memory_, timeline_),
      rows_(tiles, step.graph, chip, pieces_) {
  find_turns();
}

void DataMover::serve(TileId tile, std::int64_t start) {
  tile_ = tile;
  start_ = start;
  op_ = tiles_.tiles[tile.index()].op;
  pool_ = pieces_.pool_of(tile);
  core_ = memory_.pool(pool_).gateway;
}

Booking DataMover::book(const TransferRequest& request, std::int64_t ready) {
  const std::span<const Booking> pieces = network_.reserve(request, ready);
  for (const Booking& piece : pieces)
    timeline_.add_transfer(request, piece);
  Booking booking = pieces.front();
  booking.end = pieces.back().end;
  return booking;
}

void DataMover::look_up(OperandRequest& need) {
  need.copy = memory_.find(need.piece, pool_);
  need.missing = need.copy ? Bits{0} : need.bits;
  if (!need.copy || memory_.copy(*need.copy).whole)
    return;
  const Bits held = memory_.copy(*need.copy).bits;
  memory_.readers_of_parts(*need.copy, part_readers_);
  if (need.whole) {
    const Bits all = need.bits;
    need.missing = all - held;
  } else {
    part_readers_.push_back(tile_);
    need.missing = read_of_parts(need.tensor, need.maker) - held;
  }
  need.missing.value = std::max<std::int64_t>(0, need.missing.value);
}

/// Bits that `maker` writes of the tensor and at least one tile in part_readers_ reads. Used for
/// the rare copies that hold only a part of a piece.
Bits DataMover::read_of_parts(TensorId id, TileId maker) {
  const Tensor& tensor = graph_.tensor(id);
  piece_.clear();
  tiles_.ranges(maker, ranges_);
  const LoopNest& making = graph_.op(tiles_.tiles[maker.index()].op).nest;
  if (const Access* written = written_access(making, id))
    region_into(*written, ranges_, tensor.shape, piece_);
  std::size_t parts = 0;
  for (const TileId reader : part_readers_) {
    tiles_.ranges(reader, ranges_);
    for (const Access& access : graph_.op(tiles_.tiles[reader.index()].op).nest.operands) {
      if (access.tensor != id || access.mode != AccessMode::read)
        continue;
      if (parts == parts_.size())
        parts_.emplace_back();
      Box& part = parts_[parts];
      region_into(access, ranges_, tensor.shape, part);
      for (std::size_t a = 0; a < part.size(); ++a)
        part[a] = intersect(part[a], piece_[a]);
      // Consecutive readers often read the same box.
      const bool known = parts > 0 && part == parts_[parts - 1];
      if (volume(part) > 0 && !known)
        ++parts;
    }
  }
  return storage_of(tensor.type, union_volume({parts_.data(), parts}));
}

std::int64_t DataMover::gather(std::span<OperandRequest> needs) {
  for (OperandRequest& need : needs) {
    if (need.copy)
      ++memory_.copy(*need.copy).pins;
  }
  std::int64_t ready = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (needs[i].missing.value > 0) {
      const std::size_t together = fetch_together(needs.subspan(i));
      if (together == 0)
        fetch(needs[i]);
    }
    ready = std::max(ready, memory_.copy(*needs[i].copy).available);
  }
  return ready;
}

/// True for a part of a tensor without producer that has no copy on a core.
bool DataMover::only_offchip(const OperandRequest& need) const {
  return !pieces_.made(need.piece) && !Residency::is_copy(memory_.first_copy(need.piece));
}

/// Fetches parts of one tensor that are only off-chip in one transfer. Returns the number of needs
/// that it covers, from the first; 0 if fewer than two qualify.
std::size_t DataMover::fetch_together(std::span<OperandRequest> needs) {
  Bits bits{0};
  std::size_t count = 0;
  while (count < needs.size() && needs[count].tensor == needs.front().tensor &&
         needs[count].missing.value > 0 && only_offchip(needs[count])) {
    bits += needs[count].missing;
    ++count;
  }
  if (count < 2)
    return 0;
  const std::int64_t rows = rows_.of_needs(needs.first(count), tile_, bits);
  const std::int64_t space = make_room_to_fetch(bits, needs.front().tensor, rows);
  bring(needs.first(count), bits, network_.offchip(), space, rows);
  return count;
}

/// Fetches all needs in one transfer to the tile's core, and to other cores that need the same data
/// soon.
Booking DataMover::bring(std::span<OperandRequest> needs, Bits bits, CoreId from,
                         std::int64_t ready, std::int64_t rows) {
  TransferRequest request{TransferKind::fetch, needs.front().tensor, op_, from, core_, bits,
                          needs.front().memory};
  request.rows = rows;
  const std::int64_t patience = network_.duration(request);
  const std::int64_t for_all = find_receivers(needs, bits, from, ready, ready + patience);
  if (!receivers_.empty()) {
    const std::int64_t alone = network_.arrival(request, ready);
    request.also = also_;
    if (network_.arrival(request, for_all) > alone + patience) {
      receivers_.clear();
      request.also = {};
    } else {
      ready = for_all;
    }
  }
  const Booking booking = book(request, ready);
  for (OperandRequest& need : needs) {
    for (const Receiver& receiver : receivers_)
      receive_too(need, receiver, booking);
    receive(need, booking);
  }
  return booking;
}

/// Finds pools that have room for the data by `latest` and whose next tiles read all of them.
/// Returns the cycle from which all these pools have room.
std::int64_t DataMover::find_receivers(std::span<const OperandRequest> needs, Bits bits,
                                       CoreId from, std::int64_t ready, std::int64_t latest) {
  receivers_.clear();
  also_.clear();
  const OperandRequest& first = needs.front();
  if (!rules_.multicast || first.adds || first.missing != first.bits)
    return ready;
  const auto readers = pieces_.readers(first.piece);
  for (auto at = readers.begin(); at != readers.end();) {
    const PoolId pool = pieces_.pool_of(*at);
    at = std::partition_point(at, readers.end(),
                              [&](TileId tile) { return pieces_.pool_of(tile) <= pool; });
    const Pool& other = memory_.pool(pool);
    if (pool == pool_ || other.gateway == from || !network_.direct(from, other.gateway))
      continue;
    const std::optional<TileId> reader = next_reader(first.piece, pool);
    if (!reader || pieces_.kind(*reader).max_bits.value > other.possible_room() ||
        !std::ranges::all_of(
            needs, [&](const OperandRequest& need) { return wants(need, pool, *reader); }) ||
        other.room() < bits.value || other.room_from(bits) > latest)
      continue;
    ready = std::max(ready, other.room_from(bits));
    receivers_.push_back({pool, *reader});
    also_.push_back(other.gateway);
  }
  return ready;
}

/// True if the partial copy contains none of the reader's data, or consists of too many parts.
bool DataMover::may_grow(CopyId id, const OperandRequest& need, TileId reader) {
  const Copy& copy = memory_.copy(id);
  if (copy.whole || need.whole)
    return false;
  memory_.readers_of_parts(id, part_readers_);
  if (part_readers_.size() >= kMaxParts)
    return true;
  part_readers_.push_back(reader);
  return read_of_parts(need.tensor, need.maker) - copy.bits == need.bits;
}

/// The pool's next tile that reads the piece; nullopt if it is more than kSoon ranks away.
std::optional<TileId> DataMover::next_reader(PieceId piece, PoolId pool) const {
  const auto readers = pieces_.readers(piece);
  const std::uint32_t last = memory_.pool(pool).last_rank;
  auto at = std::partition_point(readers.begin(), readers.end(), [&](TileId tile) {
    return std::pair(pieces_.pool_of(tile), tiles_.rank[tile.index()]) < std::pair(pool, last);
  });
  while (at != readers.end() && pieces_.pool_of(*at) == pool && memory_.placed(*at))
    ++at;
  if (at == readers.end() || pieces_.pool_of(*at) != pool ||
      tiles_.rank[at->index()] - last > kSoon)
    return std::nullopt;
  return *at;
}

/// True if the reader keeps exactly the fetched data and the pool holds none of them.
bool DataMover::wants(const OperandRequest& need, PoolId pool, TileId reader) {
  const auto copy = memory_.find(need.piece, pool);
  if (copy && !may_grow(*copy, need, reader))
    return false;
  const TileKind& kind = pieces_.kind(reader);
  const KindRead* read = kind.read_of(need.tensor);
  if (read == nullptr || !read->kept)
    return false;
  if (!pieces_.made(need.piece)) {
    for (const SourceParts::Read& of_op : pieces_.sources().reads_of(kind.op)) {
      if (of_op.tensor != need.tensor || kind.problem->operands[of_op.operand].offchip)
        continue;
      for (const std::uint32_t part : pieces_.sources().parts_of(of_op, reader)) {
        if (pieces_.source(part) == need.piece)
          return true;
      }
    }
    return false;
  }
  for (const TileEdge& edge : tiles_.edges_into(reader)) {
    if (edge.from != need.maker || edge.tensor != need.tensor)
      continue;
    if (edge.bits != need.bits || need.whole)
      return edge.bits == need.bits;
    part_readers_ = {tile_, reader};
    return read_of_parts(need.tensor, need.maker) == need.bits;
  }
  return false;
}

/// Removes a copy that consists of many parts, so that the piece is fetched anew. True if it was
/// removed.
bool DataMover::drop_if_in_parts(std::optional<CopyId>& copy) {
  if (!copy)
    return false;
  memory_.readers_of_parts(*copy, part_readers_);
  if (part_readers_.size() < kMaxParts)
    return false;
  memory_.retire(*copy);
  copy.reset();
  return true;
}

void DataMover::receive_too(const OperandRequest& need, const Receiver& receiver,
                            const Booking& booking) {
  auto copy = memory_.find(need.piece, receiver.pool);
  drop_if_in_parts(copy);
  if (copy) {
    memory_.grow(*copy, need.bits, booking.start, receiver.reader, false);
  } else {
    copy = memory_.add(receiver.pool, need.piece, need.tensor, need.bits, booking.start,
                       memory_.pool(receiver.pool).last_rank);
    if (!need.whole)
      memory_.add_part(*copy, receiver.reader);
  }
  const std::int64_t arrival = network_.arrival(booking, memory_.pool(receiver.pool).gateway);
  memory_.copy(*copy).available = std::max(memory_.copy(*copy).available, arrival);
  memory_.touch(*copy, arrival);
}

/// Adds the copy that a transfer creates, or extends the present one.
void DataMover::receive(OperandRequest& need, const Booking& booking) {
  if (need.copy) {
    memory_.grow(*need.copy, need.missing, booking.start, tile_, need.whole);
  } else {
    need.copy = memory_.add(pool_, need.piece, need.tensor, need.missing, booking.start,
                            tiles_.rank[tile_.index()]);
    if (!need.whole)
      memory_.add_part(*need.copy, tile_);
    ++memory_.copy(*need.copy).pins;
  }
  Copy& copy = memory_.copy(*need.copy);
  const std::int64_t arrival = network_.arrival(booking, core_);
  copy.available = std::max(copy.available, arrival);
  memory_.touch(*need.copy, arrival);
  need.missing = {0};
}

/// Fetches the missing bits to the tile's core from the source with the earliest arrival.
void DataMover::fetch(OperandRequest& need) {
  if (!need.whole && drop_if_in_parts(need.copy))
    need.missing = need.bits;
  const std::int64_t rows = rows_.of_needs({&need, 1}, tile_, need.missing); // if from off-chip
  const std::int64_t space = make_room_to_fetch(need.missing, need.tensor, rows);
  std::optional<CopyId> source = nearest_copy(need, space);
  const CoreId offchip = network_.offchip();
  std::optional<std::int64_t> stored = offchip_.stored_at(need.piece);
  if (!source && !stored)
    stored = store(need.piece);
  if (source && stored && network_.direct(offchip, core_)) {
    const TransferRequest read{.from = offchip, .to = core_, .bits = need.missing, .rows = rows};
    const std::int64_t from_core =
        network_.arrival({.from = gateway(*source), .to = core_, .bits = need.missing},
                         std::max(space, memory_.copy(*source).available));
    const std::int64_t ready = std::max(space, *stored);
    if (network_.soonest(read, ready) < from_core && network_.arrival(read, ready) < from_core)
      source.reset();
  }
  const std::int64_t ready = std::max(space, source ? memory_.copy(*source).available : *stored);
  const CoreId from = source ? gateway(*source) : offchip;
  const Booking booking = bring({&need, 1}, need.missing, from, ready, source ? 0 : rows);
  if (source) {
    memory_.touch(*source, booking.end);
  } else {
    touch_offchip(need.piece, booking.end);
  }
  if (source && memory_.copy(*source).pins == 0)
    release_if_unused(*source);
}

/// The complete copy on another core with the earliest arrival; nullopt if none exists.
std::optional<CopyId> DataMover::nearest_copy(const OperandRequest& need,
                                              std::int64_t space) const {
  std::optional<CopyId> best;
  std::int64_t best_end = std::numeric_limits<std::int64_t>::max();
  std::size_t asked = 0;
  for (CopyId id = memory_.first_copy(need.piece); Residency::is_copy(id) && asked < kMaxSources;
       id = memory_.copy(id).next) {
    if (!memory_.copy(id).whole || !network_.direct(gateway(id), core_))
      continue;
    ++asked;
    const TransferRequest request{.from = gateway(id), .to = core_, .bits = need.missing};
    const std::int64_t ready = std::max(space, memory_.copy(id).available);
    if (best && network_.soonest(request, ready) >= best_end)
      continue;
    const std::int64_t end = network_.arrival(request, ready);
    if (end < best_end) {
      best = id;
      best_end = end;
    }
  }
  return best;
}

TransferRequest DataMover::stream_request(std::size_t operand, Bits bits, bool write) {
  const CoreId offchip = network_.offchip();
  return {.kind = TransferKind::stream,
          .tensor = graph_.op(op_).nest.operands[operand].tensor,
          .op = op_,
          .from = write ? core_ : offchip,
          .to = write ? offchip : core_,
          .bits = bits,
          .operand = write ? MemoryOperand::O : MemoryOperand::I1,
          .rows = rows_.of_operand(tile_, operand, bits)};
}

std::int64_t DataMover::streaming_time(std::size_t operand, Bits bits, bool write) {
  return network_.occupancy(stream_request(operand, bits, write));
}

DataMover::Streamed DataMover::stream(std::size_t operand, Bits bits, bool write,
                                      std::int64_t ready) {
  const TransferRequest request = stream_request(operand, bits, write);
  const Booking booking = book(request, ready);
  return {booking, network_.arrival(booking, request.to)};
}

void DataMover::read_done(PieceId piece, std::optional<CopyId> copy) {
  if (--memory_.state(piece).readers_left == 0) {
    retire(piece);
  } else if (copy) {
    release_if_unused(*copy);
  }
}

void DataMover::made(PieceId piece, std::optional<CopyId> copy, const KindOutput& output,
                     std::int64_t start, std::int64_t end) {
  if (!copy) {
    offchip_.store(piece, output.tensor, pieces_.grows(piece) ? output.partial : output.bits, start,
                   end);
  } else if (pieces_.leaves(piece)) {
    write(*copy, TransferKind::write_back);
  }
  if (memory_.state(piece).readers_left == 0) {
    retire(piece);
  } else if (copy) {
    release_if_unused(*copy);
  }
}

void DataMover::finish(Bits offchip_capacity) {
  memory_.finish();
  offchip_.finish(offchip_capacity);
}

bool TransferRules::*transfer_rule_named(std::string_view name) {
  static constexpr std::array<Named<bool TransferRules::*>, 6> kRules{
      {{"links", &TransferRules::share_links},
       {"multicast", &TransferRules::multicast},
       {"overlap", &TransferRules::exact_overlap},
       {"pieces", &TransferRules::pieces},
       {"spills", &TransferRules::spills_to_cores},
       {"routing", &TransferRules::free_routing}}};
  return value_named(kRules, name).value_or(nullptr);
}

} // namespace monet
