// Contents of the cores' top memories and of the off-chip memory while tiles are placed.
//
// Tiles are placed nearly, but not always, in order of time. Data that enter a pool stay until they
// are removed, at a time that is not known yet. They therefore enter at the first cycle after which
// earlier placements always leave enough room (MemoryProfile). A pool never exceeds its capacity.
#pragma once

#include "schedule/placement/indexed_heap.hpp"
#include "schedule/placement/memory_profile.hpp"
#include "schedule/placement/pieces.hpp"
#include "schedule/placement/timeline_writer.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace monet {

using CopyId = Id<struct CopyTag>;

/// A piece, or a part of it, in one pool. The record is reused after the copy has been removed.
struct Copy {
  PieceId piece;
  PoolId pool;
  TensorId tensor;
  Bits bits;                   ///< occupied now
  std::int64_t start = 0;      ///< cycle from which its space is occupied
  std::int64_t available = 0;  ///< cycle from which its data are available
  std::int64_t busy_until = 0; ///< end of the last run or transfer that touches it
  std::uint32_t pins = 0;      ///< uses by the tile that is being placed
  std::uint32_t next_use = 0;  ///< rank of the next reader in the pool, or kNever
  std::uint32_t reader = 0;    ///< index into the piece's readers: start of the search for the next
  std::uint32_t first_part = 0; ///< of a partial copy: index of its first part; else kNone
  CopyId next;                  ///< of the same piece; kNone at the end
  bool whole = true;
  bool moved = false; ///< moved here to make room on another core
  bool idle = false;  ///< not read again by the pool (or in this turn), and not the only copy
};

/// Changing state of a piece, stored together for locality.
struct PieceState {
  CopyId first_copy;
  std::uint32_t readers_left = 0; ///< entries of Pieces::readers() that are not placed
  std::uint32_t stored = 0;       ///< index into the off-chip memory's list, or kNone
};

/// Order in which copies are evicted: the farthest next use first, then the highest id.
struct Needed {
  std::uint64_t order = 0;
  Needed(std::uint32_t next_use, CopyId id)
      : order(static_cast<std::uint64_t>(~next_use) << 32U |
              static_cast<std::uint32_t>(~id.value)) {}
  std::uint32_t index() const { return ~static_cast<std::uint32_t>(order); }
  friend bool operator<(const Needed& a, const Needed& b) { return a.order < b.order; }
};
/// Order in which idle copies are removed: by the cycle from which they may go.
struct Idle {
  std::int64_t free_at = 0;
  std::uint32_t copy = 0;
  std::uint32_t index() const { return copy; }
  friend bool operator<(const Idle& a, const Idle& b) {
    return a.free_at != b.free_at ? a.free_at < b.free_at : a.copy < b.copy;
  }
};

/// A piece, or a part of it, that must be in the core's memory before a tile runs.
struct OperandRequest {
  PieceId piece;
  TensorId tensor;
  Bits bits;
  MemoryOperand memory = MemoryOperand::I1; ///< memory operand under which it is stored
  TileId maker;                             ///< of a piece that a tile makes
  bool whole = true;                        ///< all of the piece
  bool adds = false;                        ///< the tile adds to it: it becomes the tile's output
  std::optional<CopyId> copy;               ///< set once it is present or on its way
  Bits missing;                             ///< bits that are not present
};

/// The top memory of a core, or of several that share it.
struct Pool {
  CoreId owner;   ///< first core of the group; names the memory in the timeline
  CoreId gateway; ///< core of the group that transfers use
  std::int64_t capacity = 0;
  MemoryProfile taken;
  std::int64_t idle = 0;       ///< bits of idle copies, kept until their room is needed
  std::uint32_t last_rank = 0; ///< rank of the tile that was placed last
  IndexedHeap<Needed> needed;  ///< copies that are not idle
  IndexedHeap<Idle> idle_copies;

  explicit Pool(std::vector<std::uint32_t>& places) : needed(places), idle_copies(places) {}

  /// Bits that are free after all placements so far.
  std::int64_t room() const { return capacity - taken.held(); }
  /// Bits that could be free without evicting data that are needed here.
  std::int64_t possible_room() const { return room() + idle; }
  /// First cycle from which on `bits` are free. Requires bits <= room().
  std::int64_t room_from(Bits bits) const { return taken.below_from(capacity - bits.value); }
};

/// Copies of pieces in the pools of all cores.
class Residency {
public:
  static constexpr std::uint32_t kNever = 0xFFFFFFFFU;

  /// All arguments must outlive this object. Adds stays to the timeline as they end.
  Residency(const Chip& chip, const TileGraph& tiles, const Pieces& pieces,
            TimelineWriter& timeline);
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  const Pool& pool(PoolId id) const { return pools_[id.index()]; }
  std::size_t pools() const { return pools_.size(); }

  Copy& copy(CopyId id) { return copies_[id.index()]; }
  const Copy& copy(CopyId id) const { return copies_[id.index()]; }
  /// The oldest copy of a piece; younger ones follow by Copy::next.
  CopyId first_copy(PieceId piece) const { return states_[piece.index()].first_copy; }
  PieceState& state(PieceId piece) { return states_[piece.index()]; }
  const PieceState& state(PieceId piece) const { return states_[piece.index()]; }
  static bool is_copy(CopyId id) { return id.value != kNone; }
  std::optional<CopyId> find(PieceId piece, PoolId pool) const;

  /// Adds a copy to a pool that has room for `bits` from `start` on. The search for its next reader
  /// begins at the rank `near`.
  CopyId add(PoolId pool, PieceId piece, TensorId tensor, Bits bits, std::int64_t start,
             std::uint32_t near);
  /// Marks the copy as the part of its piece that `reader` reads.
  void add_part(CopyId id, TileId reader);
  /// Extends a partial copy by `bits`: to all that `reader` reads or, with `whole`, to the whole
  /// piece.
  void grow(CopyId id, Bits bits, std::int64_t start, TileId reader, bool whole);
  /// Tiles for whose reads a partial copy has been fetched.
  void readers_of_parts(CopyId id, std::vector<TileId>& out) const;
  /// Turns the copy into the next version of its piece, which occupies `bits` from `end` on.
  void turn_into(CopyId id, PieceId version, Bits bits, std::int64_t end, std::uint32_t near);
  /// Occupies space that a tile uses while it runs.
  void occupy(PoolId pool, TensorId tensor, Bits bits, std::int64_t start, std::int64_t end);

  /// Records that the copy is used until `end`.
  void touch(CopyId id, std::int64_t end) {
    Copy& c = copies_[id.index()];
    if (end > c.busy_until)
      c.busy_until = end;
  }
  /// Removes the copy at its busy_until.
  void retire(CopyId id);
  /// Records that the tile is placed, which changes next uses.
  void mark_placed(TileId tile) {
    placed_[tile.index()] = true;
    pools_[pieces_.pool_of(tile).index()].last_rank = tiles_.rank[tile.index()];
  }
  /// Updates the copy's next use and its place in the eviction order.
  void refresh(CopyId id);
  /// Marks a copy as idle: it has no next use in its pool and is not the only one. Other pools may
  /// still read it.
  void set_idle(CopyId id);
  /// Orders the only copy of a piece, without next use in its pool, by the rank of its first reader
  /// in any pool.
  void set_needed_elsewhere(CopyId id);

  /// The copy to remove next so that `bits` fit; nullopt if none should be removed. If they do not
  /// fit, it is the idle copy with the earliest busy_until, else the copy with the farthest next
  /// use. If they fit only after cycle `by`, it is an idle copy that is free before that. Pinned
  /// copies are never removed.
  std::optional<CopyId> first_to_go(PoolId pool, Bits bits, std::int64_t by);
  bool placed(TileId tile) const { return placed_[tile.index()]; }
  /// Removes all remaining copies at their busy_until.
  void finish();

private:
  struct Part {
    std::int64_t start = 0;
    Bits bits;
    TileId reader;
    std::uint32_t next = kNone;
  };

  void seek_reader(Copy& copy, std::uint32_t near) const;
  static void take(Pool& pool, Bits bits, std::int64_t start);
  void link(CopyId id);
  void unlink(CopyId id);
  void write_stays(const Copy& copy, std::int64_t end);
  void leave_heap(CopyId id);
  void free_parts(Copy& copy);
  template <class Entry>
  std::optional<CopyId> first_unpinned(IndexedHeap<Entry>& heap);

  const TileGraph& tiles_;
  const Pieces& pieces_;
  TimelineWriter& timeline_;
  std::vector<std::uint32_t> places_; ///< per copy: position in a heap of its pool
  std::vector<Pool> pools_;
  std::vector<Copy> copies_;
  std::vector<CopyId> free_copies_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> free_parts_;
  std::vector<PieceState> states_; ///< per piece
  std::vector<bool> placed_;
};

/// Contents of the off-chip memory: every tensor without producer from the start, and pieces from
/// their write on.
class OffchipMemory {
public:
  /// All arguments must outlive this object. Adds the stays of tensors without producer to the
  /// timeline.
  OffchipMemory(const Graph& graph, CoreId memory, const Pieces& pieces, Residency& states,
                TimelineWriter& timeline);

  /// Cycle from which the piece can be read; 0 for a part of a tensor without producer; nullopt if
  /// the piece is only on cores.
  std::optional<std::int64_t> stored_at(PieceId piece) const;
  /// Records that the piece arrives between `start` and `end`.
  void store(PieceId piece, TensorId tensor, Bits bits, std::int64_t start, std::int64_t end);
  /// Records that a transfer reads the piece until `end`.
  void touch(PieceId piece, std::int64_t end);
  /// Removes a piece without further readers, unless it outlives the step.
  void retire(PieceId piece);

  /// Adds the stays of the remaining pieces. Throws InfeasibleError if `capacity` was exceeded.
  void finish(Bits capacity);

private:
  struct Stored {
    TensorId tensor;
    Bits bits;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t busy_until = 0;
    bool there = true;
  };
  void write_stay(const Stored& stored, Cycles end);

  const Graph& graph_;
  CoreId memory_;
  const Pieces& pieces_;
  Residency& states_; ///< holds each piece's index into stored_
  TimelineWriter& timeline_;
  std::vector<bool> required_; ///< per tensor
  std::vector<Stored> stored_;
  std::vector<std::uint32_t> free_; ///< unused indices into stored_
  std::int64_t ever_ = 0;           ///< bits of all stays so far
};

} // namespace monet
