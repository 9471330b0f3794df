// What lies in the cores' top memories while tiles are placed.
//
// Space is given out in the order in which tiles are placed, which is nearly but not always the
// order of time. A pool's clock is the latest time at which space that was given out again had
// become free; whatever enters the pool later in the order enters at or after the clock. So at no
// time the pool holds more than its capacity: all that was given out up to the last entry before
// that time fits, and everything it counts as freed has left by then.
#pragma once

#include "schedule/data_items.hpp"
#include "schedule/timeline_writer.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace monet {

using CopyId = Id<struct CopyTag>;

/// One item, or working space of a tile, in one pool.
struct Copy {
  TensorId tensor;
  std::optional<ItemId> item;
  PoolId pool;
  Bits bits;
  std::int64_t start = 0;      ///< cycle from which its space is taken
  std::int64_t available = 0;  ///< cycle at which its data are there
  std::int64_t busy_until = 0; ///< end of the last run or transfer that touches it
  int pins = 0;                ///< the tile being placed needs it
  bool dead = false;           ///< nobody needs it any more
  std::uint32_t next_use = 0;  ///< key in the pool's order of eviction
};

/// The top memory of a core, or of several that share it.
struct Pool {
  CoreId owner;   ///< first core of the group, which names the memory in the timeline
  CoreId gateway; ///< core of the group that transfers start from and end at
  std::int64_t capacity = 0;
  std::int64_t used = 0;
  std::int64_t clock = 0;
  std::set<std::pair<std::int64_t, CopyId>> dead;  ///< by (time it may go, id)
  std::set<std::pair<std::uint32_t, CopyId>> live; ///< by (next use in the pool, id)
};

class Residency {
public:
  static constexpr std::uint32_t kNever = 0xFFFFFFFFU;

  /// Stays go into the timeline as they end; it must outlive this.
  Residency(const Chip& chip, std::size_t tiles, TimelineWriter& timeline);

  /// Pool of each core (that of the off-chip core is meaningless).
  const std::vector<PoolId>& pool_of() const { return pool_of_; }
  const Pool& pool(PoolId id) const { return pools_[id.index()]; }
  std::size_t pools() const { return pools_.size(); }
  /// The items must outlive this.
  void attach(const DataItems& data);

  Copy& copy(CopyId id) { return copies_[id.index()]; }
  const std::vector<CopyId>& holders(ItemId item) const { return holders_[item.index()]; }
  std::optional<CopyId> find(ItemId item, PoolId pool) const;

  /// Puts bits into a pool that has room for them. `start` must not lie before the pool's clock.
  CopyId add(PoolId pool, TensorId tensor, std::optional<ItemId> item, Bits bits,
             std::int64_t start);
  /// The copy is touched until `end`.
  void touch(CopyId id, std::int64_t end);
  /// Nobody needs the copy after busy_until.
  void retire(CopyId id);
  /// A tile was placed; next uses change.
  void mark_placed(TileId tile) { placed_[tile.index()] = true; }
  void refresh(CopyId id);
  /// First tile not placed yet that reads the item in the pool, or kNever.
  std::uint32_t next_use(ItemId item, PoolId pool);

  /// The copy to give up first: dead ones by the time they may go, then the farthest next use.
  /// Pinned ones never.
  std::optional<CopyId> victim(PoolId pool) const;
  /// Gives up the copy at its busy_until and moves the pool's clock there.
  void remove(CopyId id);
  /// Everything left goes at its busy_until.
  void finish();

private:
  const DataItems* data_ = nullptr;
  std::vector<PoolId> pool_of_;
  std::vector<Pool> pools_;
  std::vector<Copy> copies_;
  std::vector<std::vector<CopyId>> holders_;      ///< per item
  std::vector<std::vector<std::size_t>> cursors_; ///< per item and group of uses; see next_use
  std::vector<bool> placed_;
  TimelineWriter& timeline_;
};

} // namespace monet
