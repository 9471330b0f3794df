// Which tile is placed next: greedy list scheduling in the order of operators.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <optional>
#include <queue>
#include <set>
#include <vector>

namespace monet {

/// Hands out tiles whose predecessors are all placed. Of all cores the one that can start first
/// goes first; a core takes, of the tiles that are ready when it is free, the first in order, and
/// waits for the earliest one when there is none.
///
/// Beyond the edges, two rules order operators: updates begin when everything else has ended, and a
/// tensor that shares storage with another is written when all earlier readers of that storage have
/// ended.
class TileQueue {
public:
  TileQueue(const TileGraph& tiles, const Graph& graph, std::size_t cores);

  std::optional<TileId> next() const;
  /// Cycle from which the tile may start, as far as edges and order go.
  std::int64_t ready(TileId tile) const { return ready_[tile.index()]; }
  /// next() was placed on its core, which is busy until `end`.
  void placed(TileId tile, std::int64_t end);
  std::size_t left() const { return left_; }

private:
  using Key = std::pair<std::int64_t, std::uint32_t>; // (cycle, tile)
  template <class T>
  using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<T>>;
  struct CoreQueue {
    std::int64_t free = 0;
    MinHeap<Key> waiting;            ///< ready after the core is free
    MinHeap<std::uint32_t> runnable; ///< ready when the core is free
    std::optional<Key> best;         ///< (start, tile), as listed in order_
  };

  void add_gates(const Graph& graph);
  void add_gate(OpId before, OpId after);
  void release(TileId tile, std::int64_t at);
  void finish_operator(OpId op, std::int64_t end);
  void open_updates();
  void refresh(CoreId core);

  const TileGraph& tiles_;
  std::vector<std::vector<TileId>> successors_;
  std::vector<std::uint32_t> blockers_; ///< per tile: edges and gates still closed
  std::vector<std::int64_t> ready_;
  std::vector<CoreQueue> cores_;
  std::set<std::tuple<std::int64_t, std::uint32_t>> order_; ///< best of each core
  std::vector<std::uint32_t> unfinished_;                   ///< per operator: tiles not placed
  std::vector<std::int64_t> end_;                           ///< per operator
  std::vector<std::vector<OpId>> gated_; ///< per operator: who waits for all of it
  std::vector<OpId> updates_;
  std::size_t others_left_ = 0; ///< operators before the updates
  std::int64_t others_end_ = 0;
  std::size_t left_ = 0;
};

} // namespace monet
