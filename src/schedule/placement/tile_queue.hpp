// Choice of the tile that is placed next: greedy list scheduling.
#pragma once

#include "schedule/placement/indexed_heap.hpp"
#include "schedule/placement/pieces.hpp"

#include "monet/schedule/schedule.hpp"

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

namespace monet {

/// Queue of the tiles whose predecessors are all placed, in the order of the priority. With
/// Priority::latency, the core that can start first is next. It runs the tile of lowest rank among
/// those that are ready when it becomes free or, if no tile is ready then, the one that is ready
/// first.
///
/// Three rules order tiles in addition to edges. Updates begin after all other operators have
/// ended, except updates that are fused with some of these. A tensor that shares storage with
/// another one is written after all earlier readers of the storage have ended. A turn begins when
/// the previous one is placed. All rules lead to later tiles, so that some tile can always be
/// placed.
class TileQueue {
public:
  TileQueue(const TileGraph& tiles, const Graph& graph, const Pieces& pieces, std::size_t cores,
            Priority priority);

  std::optional<TileId> next() const;
  /// Earliest cycle at which the tile may start by edges and ordering rules.
  std::int64_t ready(TileId tile) const { return ready_[tile.index()]; }
  /// Records that the tile returned by next() is placed; its core is busy until `end`.
  void placed(TileId tile, std::int64_t end);
  std::size_t left() const { return left_; }

  /// Defers the core's next tile: next() does not return it until the core is resumed or another
  /// tile becomes its next one.
  void stall(CoreId core);
  void resume(CoreId core);
  bool stalled(CoreId core) const { return cores_[core.index()].stalled.has_value(); }
  /// The stalled core whose next tile has the lowest rank; nullopt if no core is stalled.
  std::optional<CoreId> first_stalled() const;

  /// True if the tile's stack has several operators.
  bool is_fused(TileId tile) const { return fused_[stack_of(tile)]; }
  /// Highest rank of the tiles of the tile's stack or, if the tile takes turns, of the stack's part
  /// in this turn.
  std::uint32_t last_rank(TileId tile) const { return last_rank_[stretch_of(tile)]; }

private:
  using Key = std::pair<std::int64_t, std::uint32_t>; // (cycle or other merit, rank)
  template <class T>
  using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<T>>;
  struct First { ///< the next tile of a core
    Key key;
    std::uint32_t core = 0;
    std::uint32_t index() const { return core; }
    friend bool operator<(const First& a, const First& b) { return a.key < b.key; }
  };
  struct CoreQueue {
    std::int64_t free = 0;
    MinHeap<Key> waiting;                 ///< ready after the core is free
    MinHeap<std::uint32_t> runnable;      ///< ready when the core is free
    std::optional<std::uint32_t> stalled; ///< rank of the deferred tile
  };

  std::size_t stack_of(TileId tile) const {
    return tiles_.stack_of[tiles_.tiles[tile.index()].op.index()];
  }
  std::size_t stretch_of(TileId tile) const {
    const std::size_t stack = stack_of(tile);
    return tiles_.takes_turns(tile) ? tiles_.turn[tile.index()] * fused_.size() + stack : stack;
  }
  void find_fused_stacks();
  void add_updates(const Graph& graph);
  void add_gates(const Graph& graph);
  void add_turns();
  void begin_turns();
  void unblock(TileId tile, std::int64_t at);
  void unblock_operator(OpId op, std::int64_t at);
  void release(TileId tile);
  void finish_operator(OpId op, std::int64_t end);
  void refresh(CoreId core);
  std::optional<Key> best(const CoreQueue& queue) const;

  const TileGraph& tiles_;
  const Graph& graph_;
  const Pieces& pieces_;
  Priority priority_;
  std::vector<std::uint32_t> blockers_; ///< per tile: edges and rules that block it
  std::vector<std::int64_t> ready_;     ///< per tile
  std::vector<CoreQueue> cores_;
  std::vector<std::uint32_t> places_;
  IndexedHeap<First> order_; ///< next tile of each core
  MinHeap<Key> of_all_;      ///< (merit, rank) of ready tiles, unless the priority is latency
  std::vector<std::uint32_t> unfinished_;              ///< per operator: tiles not placed
  std::vector<std::int64_t> end_;                      ///< per operator
  std::vector<std::vector<OpId>> gated_;               ///< per operator: operators waiting for it
  std::vector<std::pair<TileId, TileId>> gated_tiles_; ///< (tile, tile that waits for it), sorted
  std::vector<bool> waits_;                            ///< per operator: see updates_that_wait()
  std::size_t others_left_ = 0; ///< unfinished operators that are not updates
  std::int64_t others_end_ = 0;
  std::vector<std::vector<TileId>> turns_; ///< per turn: its tiles
  std::vector<std::size_t> turn_left_;     ///< per turn: tiles not placed
  std::size_t turn_ = 0;                   ///< the latest turn that has begun
  std::size_t left_ = 0;
  std::vector<bool> fused_;              ///< per stack
  std::vector<std::uint32_t> last_rank_; ///< per stretch_of()
};

/// Per operator: true for an update that begins after all other operators have ended. These are the
/// updates that are fused with updates only, or with no operator.
std::vector<bool> updates_that_wait(const TileGraph& tiles, const Graph& graph);

} // namespace monet
