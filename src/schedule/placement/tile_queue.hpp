// Which tile is placed next: greedy list scheduling.
#pragma once

#include "schedule/placement/indexed_heap.hpp"
#include "schedule/placement/pieces.hpp"

#include "monet/schedule/schedule.hpp"

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

namespace monet {

/// Hands out tiles whose predecessors are all placed, in the order that the priority says. With
/// `latency`, of all cores the one that can start first goes first; a core takes, of the tiles that
/// are ready when it is free, the first by rank, and waits for the earliest one when there is none.
///
/// Beyond the edges, two rules order operators: updates begin when everything else has ended, but
/// for those that are fused with other operators; and a tensor that shares storage with another is
/// written when all earlier readers of that storage have ended. Both point from earlier operators
/// to later ones, as the edges do: there is always a tile that can be placed.
class TileQueue {
public:
  TileQueue(const TileGraph& tiles, const Graph& graph, const Pieces& pieces, std::size_t cores,
            Priority priority);

  std::optional<TileId> next() const;
  /// Cycle from which the tile may start, as far as edges and order go.
  std::int64_t ready(TileId tile) const { return ready_[tile.index()]; }
  /// next() was placed on its core, which is busy until `end`.
  void placed(TileId tile, std::int64_t end);
  std::size_t left() const { return left_; }

  /// The core's next tile had better wait: it is not handed out until the core is resumed or has
  /// another tile to run next.
  void stall(CoreId core);
  void resume(CoreId core);
  bool stalled(CoreId core) const { return cores_[core.index()].stalled.has_value(); }
  /// Of the tiles that stalled cores would hand out, the first by rank.
  std::optional<CoreId> first_stalled() const;

private:
  using Key = std::pair<std::int64_t, std::uint32_t>; // (cycle or other merit, rank)
  template <class T>
  using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<T>>;
  struct First { ///< what a core would run next
    Key key;
    std::uint32_t core = 0;
    std::uint32_t index() const { return core; }
    friend bool operator<(const First& a, const First& b) { return a.key < b.key; }
  };
  struct CoreQueue {
    std::int64_t free = 0;
    MinHeap<Key> waiting;                 ///< ready after the core is free
    MinHeap<std::uint32_t> runnable;      ///< ready when the core is free
    std::optional<std::uint32_t> stalled; ///< rank of the tile that waits
  };

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
  std::vector<std::uint32_t> blockers_; ///< per tile: edges and gates still closed
  std::vector<std::int64_t> ready_;     ///< per tile
  std::vector<CoreQueue> cores_;
  std::vector<std::uint32_t> places_;
  IndexedHeap<First> order_; ///< best of each core
  MinHeap<Key> of_all_;      ///< (merit, rank) of ready tiles, unless the priority is latency
  std::vector<std::uint32_t> unfinished_;              ///< per operator: tiles not placed
  std::vector<std::int64_t> end_;                      ///< per operator
  std::vector<std::vector<OpId>> gated_;               ///< per operator: who waits for all of it
  std::vector<std::pair<TileId, TileId>> gated_tiles_; ///< (tile, who waits for it), in order
  std::vector<bool> waits_;     ///< per operator: an update that waits for all others
  std::size_t others_left_ = 0; ///< operators before the updates
  std::int64_t others_end_ = 0;
  std::vector<std::vector<TileId>> turns_; ///< per turn: its tiles
  std::vector<std::size_t> turn_left_;     ///< per turn: tiles not placed
  std::size_t turn_ = 0;                   ///< the last that has begun
  std::size_t left_ = 0;
};

/// Per operator: an update that begins when everything but updates has ended, which is any that is
/// not fused with operators that are none.
std::vector<bool> updates_that_wait(const TileGraph& tiles, const Graph& graph);

} // namespace monet
