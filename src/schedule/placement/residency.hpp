// What lies in the cores' top memories and in the off-chip memory while tiles are placed.
//
// Tiles are placed in nearly but not always the order of time. What enters a pool later in the
// order stays until it is given up, so it enters when there is room from then on: at the first
// cycle after which nothing that was placed before leaves too little (MemoryProfile). So at no time
// a pool holds more than its capacity.
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

/// A piece, or some of it, in one pool. The record is used again for another copy once it has gone.
struct Copy {
  PieceId piece;
  PoolId pool;
  TensorId tensor;
  Bits bits;                   ///< it takes now
  std::int64_t start = 0;      ///< cycle from which its space is taken
  std::int64_t available = 0;  ///< cycle at which its data are there
  std::int64_t busy_until = 0; ///< end of the last run or transfer that touches it
  std::uint32_t pins = 0;      ///< the tile being placed needs it
  std::uint32_t next_use = 0;  ///< rank of the next reader in the pool, or kNever
  std::uint32_t reader = 0; ///< index among the piece's readers from which the next one is sought
  std::uint32_t first_part = 0; ///< of a copy that is not whole: into the list of parts, or kNone
  CopyId next;                  ///< of the same piece; kNone at the end
  bool whole = true;
  bool moved = false; ///< it came to make room on another core
  bool idle = false;  ///< no reader in the pool is left, and it is not the only copy
};

/// What changes about a piece; together, because it is used together.
struct PieceState {
  CopyId first_copy;
  std::uint32_t readers_left = 0; ///< entries of Pieces::readers() that are not placed
  std::uint32_t stored = 0;       ///< place in the off-chip memory's list, or kNone
};

/// Copies in the order in which they would be pushed out: the farthest next use, then the last
/// made.
struct Needed {
  std::uint64_t order = 0;
  Needed(std::uint32_t next_use, CopyId id)
      : order(static_cast<std::uint64_t>(~next_use) << 32U |
              static_cast<std::uint32_t>(~id.value)) {}
  std::uint32_t index() const { return ~static_cast<std::uint32_t>(order); }
  friend bool operator<(const Needed& a, const Needed& b) { return a.order < b.order; }
};
/// Idle copies in the order in which they may go.
struct Idle {
  std::int64_t free_at = 0;
  std::uint32_t copy = 0;
  std::uint32_t index() const { return copy; }
  friend bool operator<(const Idle& a, const Idle& b) {
    return a.free_at != b.free_at ? a.free_at < b.free_at : a.copy < b.copy;
  }
};

/// A piece, or some of it, that a tile has to have in its core's memory before it runs.
struct OperandRequest {
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

/// The top memory of a core, or of several that share it.
struct Pool {
  CoreId owner;   ///< first core of the group, which names the memory in the timeline
  CoreId gateway; ///< core of the group that transfers start from and end at
  std::int64_t capacity = 0;
  MemoryProfile taken;
  std::int64_t idle = 0; ///< of what is held: idle copies, kept as long as nobody wants the room
  std::uint32_t last_rank = 0; ///< of its tile that was placed last
  IndexedHeap<Needed> needed;  ///< copies that are not idle
  IndexedHeap<Idle> idle_copies;

  explicit Pool(std::vector<std::uint32_t>& places) : needed(places), idle_copies(places) {}

  /// What nobody has in the end.
  std::int64_t room() const { return capacity - taken.held(); }
  /// What could be had without pushing out anything that is needed here.
  std::int64_t possible_room() const { return room() + idle; }
  /// First cycle from which on there are so many bits, of which there is room().
  std::int64_t room_from(Bits bits) const { return taken.below_from(capacity - bits.value); }
};

class Residency {
public:
  static constexpr std::uint32_t kNever = 0xFFFFFFFFU;

  /// All must outlive this. Stays go into the timeline as they end.
  Residency(const Chip& chip, const TileGraph& tiles, const Pieces& pieces,
            TimelineWriter& timeline);
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  const Pool& pool(PoolId id) const { return pools_[id.index()]; }
  std::size_t pools() const { return pools_.size(); }

  Copy& copy(CopyId id) { return copies_[id.index()]; }
  const Copy& copy(CopyId id) const { return copies_[id.index()]; }
  /// The copies of a piece, the first made first: from first_copy() on by Copy::next.
  CopyId first_copy(PieceId piece) const { return states_[piece.index()].first_copy; }
  PieceState& state(PieceId piece) { return states_[piece.index()]; }
  const PieceState& state(PieceId piece) const { return states_[piece.index()]; }
  static bool is_copy(CopyId id) { return id.value != kNone; }
  std::optional<CopyId> find(PieceId piece, PoolId pool) const;

  /// Puts bits of a piece into a pool that has room for them from `start` on. `near` is the rank
  /// around which its next reader is sought.
  CopyId add(PoolId pool, PieceId piece, TensorId tensor, Bits bits, std::int64_t start,
             std::uint32_t near);
  /// The copy is only what `reader` reads of the piece.
  void add_part(CopyId id, TileId reader);
  /// More of the piece comes to a copy that was a part: all that `reader` reads, or the whole.
  void grow(CopyId id, Bits bits, std::int64_t start, TileId reader, bool whole);
  /// Tiles whose reading a copy that is not whole has been made for.
  void readers_of_parts(CopyId id, std::vector<TileId>& out) const;
  /// The copy becomes the next version of its piece; it takes `bits` from `end` on.
  void turn_into(CopyId id, PieceId version, Bits bits, std::int64_t end, std::uint32_t near);
  /// Space that a tile uses while it runs.
  void occupy(PoolId pool, TensorId tensor, Bits bits, std::int64_t start, std::int64_t end);

  /// The copy is touched until `end`.
  void touch(CopyId id, std::int64_t end) {
    Copy& c = copies_[id.index()];
    if (end > c.busy_until)
      c.busy_until = end;
  }
  /// The copy goes at its busy_until.
  void retire(CopyId id);
  /// A tile was placed; next uses change.
  void mark_placed(TileId tile) {
    placed_[tile.index()] = true;
    pools_[pieces_.pool_of(tile).index()].last_rank = tiles_.rank[tile.index()];
  }
  void refresh(CopyId id);
  /// A copy whose next use is kNever is not the only one: other pools may still read it here.
  void set_idle(CopyId id);
  /// A copy that only others will read is the only one: by the rank of its first reader anywhere.
  void set_needed_elsewhere(CopyId id);

  /// What to give up so that `bits` fit, or fit sooner where they would not by a cycle: the idle
  /// copy that may go first, where that is before they would fit, else the one with the farthest
  /// next use. None: there is nothing better than to wait, or all that is left is pinned.
  std::optional<CopyId> first_to_go(PoolId pool, Bits bits, std::int64_t by);
  bool placed(TileId tile) const { return placed_[tile.index()]; }
  /// Everything left goes at its busy_until.
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
  std::vector<std::uint32_t> places_; ///< of copies in the heaps of their pool
  std::vector<Pool> pools_;
  std::vector<Copy> copies_;
  std::vector<CopyId> free_copies_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> free_parts_;
  std::vector<PieceState> states_; ///< per piece
  std::vector<bool> placed_;
};

/// What the off-chip memory holds: every tensor without a producer from the start, pieces from
/// their write on.
class OffchipMemory {
public:
  /// All must outlive this. What is there from the start is written down.
  OffchipMemory(const Graph& graph, CoreId memory, const Pieces& pieces, Residency& states,
                TimelineWriter& timeline);

  /// Cycle from which the piece can be read; 0 for a part of a tensor without producer; none while
  /// it is only on cores.
  std::optional<std::int64_t> stored_at(PieceId piece) const;
  /// The piece arrives between the cycles.
  void store(PieceId piece, TensorId tensor, Bits bits, std::int64_t start, std::int64_t end);
  /// A transfer reads the piece until `end`.
  void touch(PieceId piece, std::int64_t end);
  /// Nobody reads the piece any more; what the step leaves behind stays.
  void retire(PieceId piece);

  /// What is still there stays. InfeasibleError when `capacity` was exceeded.
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
  Residency& states_; ///< knows the place of each piece in stored_
  TimelineWriter& timeline_;
  std::vector<bool> required_; ///< per tensor
  std::vector<Stored> stored_;
  std::vector<std::uint32_t> free_; ///< places in stored_ to be used again
  std::int64_t ever_ = 0;           ///< bits of everything that ever was there
};

} // namespace monet
