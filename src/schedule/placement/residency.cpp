// Keeps track of copies in the cores' memories and of pieces in the off-chip memory. DataMover adds
// and removes them.
#include "schedule/placement/residency.hpp"

#include "base/shared/amounts.hpp"
#include "base/shared/checked.hpp"
#include "schedule/shared/bounds.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

Residency::Residency(const Chip& chip, const TileGraph& tiles, const Pieces& pieces,
                     TimelineWriter& timeline)
    : tiles_(tiles), pieces_(pieces), timeline_(timeline), placed_(tiles.tiles.size(), false) {
  const auto reaches_offchip = [&](CoreId core) {
    return chip.offchip && chip.connected(core, *chip.offchip);
  };
  for (std::size_t c = 0; c < chip.cores.size(); ++c) {
    const CoreId core(c);
    const std::size_t index = pieces.pool_of(core).index();
    if (index == pools_.size()) {
      Pool& added = pools_.emplace_back(places_);
      added.owner = core;
      added.gateway = core;
      added.capacity = chip.pool_bits(core);
    }
    CoreId& gateway = pools_[index].gateway;
    if (!reaches_offchip(gateway) && reaches_offchip(core))
      gateway = core;
  }
  states_.reserve(pieces.count());
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const std::size_t readers = pieces.readers(PieceId(i)).size();
    states_.push_back({CopyId(kNone), static_cast<std::uint32_t>(readers), kNone});
  }
}

std::optional<CopyId> Residency::find(PieceId piece, PoolId pool) const {
  for (CopyId id = first_copy(piece); is_copy(id); id = copies_[id.index()].next) {
    if (copies_[id.index()].pool == pool)
      return id;
  }
  return std::nullopt;
}

void Residency::link(CopyId id) {
  CopyId* at = &state(copies_[id.index()].piece).first_copy;
  while (is_copy(*at))
    at = &copies_[at->index()].next;
  *at = id;
  copies_[id.index()].next = CopyId(kNone);
}

void Residency::unlink(CopyId id) {
  CopyId* at = &state(copies_[id.index()].piece).first_copy;
  while (*at != id)
    at = &copies_[at->index()].next;
  *at = copies_[id.index()].next;
}

/// Sets the copy's `reader` to the first tile of its pool that reads the piece and is not placed.
void Residency::seek_reader(Copy& copy, std::uint32_t near) const {
  const auto readers = pieces_.readers(copy.piece);
  const auto before = [&](TileId tile, std::pair<PoolId, std::uint32_t> place) {
    return std::pair(pieces_.pool_of(tile), tiles_.rank[tile.index()]) < place;
  };
  auto at = std::lower_bound(readers.begin(), readers.end(), std::pair(copy.pool, near), before);
  // Tiles of a pool are placed nearly in rank order: few before `near` are left.
  while (at != readers.begin() && pieces_.pool_of(*(at - 1)) == copy.pool &&
         !placed_[(at - 1)->index()])
    --at;
  copy.reader = static_cast<std::uint32_t>(at - readers.begin());
}

void Residency::refresh(CopyId id) {
  Copy& c = copies_[id.index()];
  const auto readers = pieces_.readers(c.piece);
  c.next_use = kNever;
  if (c.idle)
    leave_heap(id);
  for (; c.reader < readers.size(); ++c.reader) {
    const TileId tile = readers[c.reader];
    if (pieces_.pool_of(tile) != c.pool)
      break;
    if (placed_[tile.index()])
      continue;
    const TileKind& kind = pieces_.kind(tile);
    if (kind.streams_reads) {
      const KindRead* read = kind.read_of(c.tensor);
      if (read != nullptr && !read->kept)
        continue;
    }
    c.next_use = tiles_.rank[tile.index()];
    break;
  }
  pools_[c.pool.index()].needed.set(Needed(c.next_use, id));
}

void Residency::set_idle(CopyId id) {
  leave_heap(id);
  Copy& c = copies_[id.index()];
  c.idle = true;
  pools_[c.pool.index()].idle += c.bits.value;
  pools_[c.pool.index()].idle_copies.set({c.busy_until, id.value});
}

void Residency::leave_heap(CopyId id) {
  Copy& c = copies_[id.index()];
  Pool& pool = pools_[c.pool.index()];
  if (c.idle) {
    pool.idle -= c.bits.value;
    pool.idle_copies.erase(id.value);
    c.idle = false;
  } else {
    pool.needed.erase(id.value);
  }
}

void Residency::set_needed_elsewhere(CopyId id) {
  Copy& c = copies_[id.index()];
  for (const TileId reader : pieces_.readers(c.piece)) {
    if (!placed_[reader.index()])
      c.next_use = std::min(c.next_use, tiles_.rank[reader.index()]);
  }
  pools_[c.pool.index()].needed.set(Needed(c.next_use, id));
}

void Residency::take(Pool& pool, Bits bits, std::int64_t start) {
  internal_check(bits.value <= pool.room(), "a core's memory overflows");
  pool.taken.hold(start, bits.value);
}

CopyId Residency::add(PoolId pool_id, PieceId piece, TensorId tensor, Bits bits, std::int64_t start,
                      std::uint32_t near) {
  Pool& pool = pools_[pool_id.index()];
  take(pool, bits, start);
  CopyId id(copies_.size());
  if (free_copies_.empty()) {
    copies_.emplace_back();
  } else {
    id = free_copies_.back();
    free_copies_.pop_back();
    copies_[id.index()] = Copy();
  }
  Copy& c = copies_[id.index()];
  c.piece = piece;
  c.pool = pool_id;
  c.tensor = tensor;
  c.bits = bits;
  c.start = start;
  c.available = start;
  c.busy_until = start;
  c.first_part = kNone;
  seek_reader(c, near);
  link(id);
  refresh(id);
  return id;
}

void Residency::add_part(CopyId id, TileId reader) {
  Copy& c = copies_[id.index()];
  c.whole = false;
  std::uint32_t at = 0;
  if (free_parts_.empty()) {
    at = static_cast<std::uint32_t>(parts_.size());
    parts_.emplace_back();
  } else {
    at = free_parts_.back();
    free_parts_.pop_back();
  }
  parts_[at] = {c.start, c.bits, reader, c.first_part};
  c.first_part = at;
}

void Residency::grow(CopyId id, Bits bits, std::int64_t start, TileId reader, bool whole) {
  Copy& c = copies_[id.index()];
  Pool& pool = pools_[c.pool.index()];
  take(pool, bits, start);
  add_part(id, reader);
  parts_[c.first_part].start = start;
  parts_[c.first_part].bits = bits;
  c.bits += bits;
  c.whole = whole;
}

void Residency::readers_of_parts(CopyId id, std::vector<TileId>& out) const {
  out.clear();
  for (std::uint32_t at = copies_[id.index()].first_part; at != kNone; at = parts_[at].next)
    out.push_back(parts_[at].reader);
}

void Residency::turn_into(CopyId id, PieceId version, Bits bits, std::int64_t end,
                          std::uint32_t near) {
  Copy& c = copies_[id.index()];
  Pool& pool = pools_[c.pool.index()];
  internal_check(c.whole && bits <= c.bits, "a version of a piece needs more room than the last");
  unlink(id);
  end = std::max(end, c.busy_until);
  if (bits != c.bits || c.first_part != kNone) {
    write_stays(c, end);
    free_parts(c);
    pool.taken.release(end, c.bits.value - bits.value);
    c.start = end;
    c.bits = bits;
  }
  c.piece = version;
  c.available = end;
  c.busy_until = end;
  seek_reader(c, near);
  link(id);
  refresh(id);
}

void Residency::occupy(PoolId pool_id, TensorId tensor, Bits bits, std::int64_t start,
                       std::int64_t end) {
  Pool& pool = pools_[pool_id.index()];
  take(pool, bits, start);
  timeline_.add_stay(pool.owner, tensor, bits, {start}, {end});
  pool.taken.release(end, bits.value);
}

/// Adds one stay for a copy that arrived at once, else one for each part.
void Residency::write_stays(const Copy& c, std::int64_t end) {
  const CoreId owner = pools_[c.pool.index()].owner;
  if (c.first_part == kNone)
    timeline_.add_stay(owner, c.tensor, c.bits, {c.start}, {end});
  for (std::uint32_t at = c.first_part; at != kNone; at = parts_[at].next)
    timeline_.add_stay(owner, c.tensor, parts_[at].bits, {parts_[at].start}, {end});
}

void Residency::free_parts(Copy& c) {
  for (std::uint32_t at = c.first_part; at != kNone; at = parts_[at].next)
    free_parts_.push_back(at);
  c.first_part = kNone;
}

void Residency::retire(CopyId id) {
  Copy& c = copies_[id.index()];
  unlink(id);
  leave_heap(id);
  write_stays(c, c.busy_until);
  free_parts(c);
  pools_[c.pool.index()].taken.release(c.busy_until, c.bits.value);
  free_copies_.push_back(id);
}

template <class Entry>
std::optional<CopyId> Residency::first_unpinned(IndexedHeap<Entry>& heap) {
  std::vector<Entry> skipped;
  std::optional<CopyId> found;
  while (!heap.empty() && !found) {
    const Entry top = heap.top();
    if (copies_[top.index()].pins == 0) {
      found = CopyId(top.index());
    } else {
      skipped.push_back(top);
      heap.erase(top.index());
    }
  }
  for (const Entry& entry : skipped)
    heap.set(entry);
  return found;
}

std::optional<CopyId> Residency::first_to_go(PoolId id, Bits bits, std::int64_t by) {
  Pool& pool = pools_[id.index()];
  const bool fits = pool.room() >= bits.value;
  if (fits && pool.idle_copies.empty())
    return std::nullopt;
  const std::int64_t from = fits ? pool.room_from(bits) : 0;
  if (fits && from <= by)
    return std::nullopt;
  const auto idle = first_unpinned(pool.idle_copies);
  if (!fits)
    return idle ? idle : first_unpinned(pool.needed);
  return idle && copies_[idle->index()].busy_until < from ? idle : std::nullopt;
}

void Residency::finish() {
  for (Pool& pool : pools_) {
    while (!pool.needed.empty())
      retire(CopyId(pool.needed.top().index()));
    while (!pool.idle_copies.empty())
      retire(CopyId(pool.idle_copies.top().index()));
  }
}

OffchipMemory::OffchipMemory(const Graph& graph, CoreId memory, const Pieces& pieces,
                             Residency& states, TimelineWriter& timeline)
    : graph_(graph), memory_(memory), pieces_(pieces), states_(states), timeline_(timeline),
      required_(required_offchip(graph)) {
  for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
    const Tensor& tensor = graph_.tensors()[t];
    const Bits size = size_of(tensor);
    if (!tensor.producer && !tensor.alias_of && size.value > 0)
      write_stay({TensorId(t), size}, ResidencyInterval::kKept);
  }
}

std::optional<std::int64_t> OffchipMemory::stored_at(PieceId piece) const {
  if (!pieces_.made(piece))
    return 0;
  const std::uint32_t place = states_.state(piece).stored;
  return place != kNone ? std::optional(stored_[place].end) : std::nullopt;
}

void OffchipMemory::store(PieceId piece, TensorId tensor, Bits bits, std::int64_t start,
                          std::int64_t end) {
  std::uint32_t& place = states_.state(piece).stored;
  internal_check(place == kNone, "a piece is written off-chip twice");
  if (free_.empty()) {
    place = static_cast<std::uint32_t>(stored_.size());
    stored_.emplace_back();
  } else {
    place = free_.back();
    free_.pop_back();
  }
  stored_[place] = {tensor, bits, start, end, end, true};
}

void OffchipMemory::touch(PieceId piece, std::int64_t end) {
  const std::uint32_t place = states_.state(piece).stored;
  if (place != kNone)
    stored_[place].busy_until = std::max(stored_[place].busy_until, end);
}

void OffchipMemory::retire(PieceId piece) {
  std::uint32_t& place = states_.state(piece).stored;
  if (place == kNone || required_[stored_[place].tensor.index()])
    return;
  write_stay(stored_[place], {stored_[place].busy_until});
  stored_[place].there = false;
  free_.push_back(place);
  place = kNone;
}

/// Tensors that share storage with another one occupy no space here, nor do tensors that move on to
/// the host.
void OffchipMemory::write_stay(const Stored& stored, Cycles end) {
  if (graph_.tensor(stored.tensor).alias_of || lies_in_host(graph_, stored.tensor))
    return;
  timeline_.add_stay(memory_, stored.tensor, stored.bits, {stored.start}, end);
  ever_ = checked_add(ever_, stored.bits.value);
}

void OffchipMemory::finish(Bits capacity) {
  for (const Stored& stored : stored_) {
    if (stored.there)
      write_stay(stored, ResidencyInterval::kKept);
  }
  if (capacity.value <= 0 || ever_ <= capacity.value)
    return;
  const std::int64_t most = timeline_.max_held(memory_);
  if (most > capacity.value) {
    throw InfeasibleError(
        fmt::format("the off-chip memory holds {}, but the step needs {}: {} too many",
                    both_bytes(bytes_of(capacity)), both_bytes(bytes_of({most})),
                    both_bytes(bytes_of({most}) - bytes_of(capacity))));
  }
}

} // namespace monet
