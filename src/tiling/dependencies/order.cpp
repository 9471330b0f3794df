// Computes the scheduling order of tiles (ranks) and their turns; the last step of making tiles.
#include "tiling/shared/grid.hpp"

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

std::uint32_t slices_of(const OperatorTiling& tiling) {
  std::uint32_t slices = 1;
  for (std::uint32_t i = 0; i < tiling.slice_cuts; ++i)
    slices *= tiling.cuts[i].count;
  return slices;
}

/// Computes ranks and turns of tiles. The slot of a tile is the slice of its stack to which it
/// belongs.
class Ranker {
public:
  Ranker(TileGraph& tiles, std::int64_t turns, const std::vector<bool>& in_turns)
      : tiles_(tiles), turns_(turns), in_turns_(in_turns), slot_(tiles.tiles.size(), 0) {}

  void rank() {
    find_readers();
    find_slots();
    if (turns_ > 1)
      find_turns();
    tiles_.rank.assign(tiles_.tiles.size(), kNone);
    for (const std::uint32_t tile : in_slots())
      emit(tile);
    if (turns_ > 1)
      delay_turns_by_rank();
  }

private:
  /// Collects the readers of overwritten storage: they must come before the tiles that overwrite
  /// it.
  void find_readers() {
    readers_.assign(tiles_.operators.size(), {});
    tile_readers_.clear();
    for (const AntiDependence& order : tiles_.anti_dependences) {
      if (order.tiles.empty())
        readers_[order.writer.index()].push_back(order.reader);
      for (const auto& [reader, writer] : order.tiles)
        tile_readers_.emplace_back(writer.value, reader.value);
    }
    std::ranges::sort(tile_readers_);
  }

  /// Finds the slice of its stack to which each tile belongs.
  void find_slots() {
    most_.assign(tiles_.operators.size(), 1);
    for (std::size_t i = 0; i < tiles_.operators.size(); ++i) {
      std::uint32_t& slices = most_[tiles_.stack_of[i]];
      slices = std::max(slices, slices_of(tiles_.operators[i]));
    }
    for (std::size_t i = 0; i < tiles_.operators.size(); ++i) {
      const OperatorTiling& op = tiles_.operators[i];
      const std::uint32_t stack = tiles_.stack_of[i];
      const std::uint32_t most = most_[stack];
      const std::uint64_t slices = slices_of(op);
      const auto each = static_cast<std::uint32_t>(op.size() / slices);
      for (std::uint32_t t = op.first; t < op.last; ++t) {
        const std::uint64_t slice = (t - op.first) / each;
        auto slot = static_cast<std::uint32_t>(slice * most / slices);
        for (const TileEdge& edge : tiles_.edges_into(TileId(t))) {
          const OpId from = tiles_.tiles[edge.from.index()].op;
          if (tiles_.stack_of[from.index()] == stack)
            slot = std::max(slot, slot_[edge.from.index()]);
        }
        slot_[t] = slot;
      }
    }
  }

  bool takes_turns(std::uint32_t stack) const {
    return stack < in_turns_.size() && in_turns_[stack];
  }

  void find_turns() {
    tiles_.turn.assign(tiles_.tiles.size(), TileGraph::kNoTurn);
    for (std::size_t t = 0; t < slot_.size(); ++t) {
      const std::uint32_t stack = tiles_.stack_of[tiles_.tiles[t].op.index()];
      if (takes_turns(stack))
        tiles_.turn[t] = static_cast<std::uint32_t>(slot_[t] * static_cast<std::uint64_t>(turns_) /
                                                    most_[stack]);
    }
    std::vector<std::uint32_t> ids(slot_.size());
    std::iota(ids.begin(), ids.end(), 0U);
    delay_turns(ids);
  }

  /// Tiles sorted by (stack, slot, operator, number). Tiles with a turn are sorted into the first
  /// stack that takes turns, by turn before stack. Slots never decrease within one operator.
  std::vector<std::uint32_t> in_slots() const {
    using Key = std::pair<std::uint64_t, std::uint64_t>;
    const auto first =
        static_cast<std::uint64_t>(std::ranges::find(in_turns_, true) - in_turns_.begin());
    std::vector<Key> keys(tiles_.tiles.size());
    for (std::size_t t = 0; t < keys.size(); ++t) {
      const std::uint64_t stack = tiles_.stack_of[tiles_.tiles[t].op.index()];
      keys[t] = {stack << 32U, stack << 32U | slot_[t]};
      if (turns_ > 1 && tiles_.turn[t] != TileGraph::kNoTurn)
        keys[t].first = first << 32U | tiles_.turn[t];
    }
    std::vector<std::uint32_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0U);
    if (!std::is_sorted(keys.begin(), keys.end())) {
      std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return keys[a] != keys[b] ? keys[a] < keys[b] : a < b;
      });
    }
    return order;
  }

  /// Ranks the tile after ranking every tile it depends on.
  void emit(std::uint32_t tile) {
    if (tiles_.rank[tile] != kNone)
      return;
    pending_.assign(1, {tile});
    while (!pending_.empty()) {
      Visit& visit = pending_.back();
      if (const auto before = next_before(visit)) {
        pending_.push_back({*before});
        continue;
      }
      tiles_.rank[visit.tile] = next_rank_++;
      pending_.pop_back();
    }
  }

  /// Delays the turn of each tile to the latest turn of the tiles it waits for. These precede it in
  /// `order`.
  void delay_turns(const std::vector<std::uint32_t>& order) {
    std::vector<std::uint32_t> turn(order.size(), 0); // per tile: its turn or the latest awaited
    std::vector<std::uint32_t> of_operator(tiles_.operators.size(), 0); // maximum over its tiles
    for (const std::uint32_t t : order) {
      const std::size_t op = tiles_.tiles[t].op.index();
      std::uint32_t& own = turn[t];
      if (tiles_.turn[t] != TileGraph::kNoTurn)
        own = tiles_.turn[t];
      for (const TileEdge& edge : tiles_.edges_into(TileId(t)))
        own = std::max(own, turn[edge.from.index()]);
      for (const auto& [writer, reader] : std::ranges::equal_range(
               tile_readers_, t, {}, &std::pair<std::uint32_t, std::uint32_t>::first))
        own = std::max(own, turn[reader]);
      for (const OpId reader : readers_[op])
        own = std::max(own, of_operator[reader.index()]);
      of_operator[op] = std::max(of_operator[op], own);
      if (tiles_.turn[t] != TileGraph::kNoTurn)
        tiles_.turn[t] = own;
    }
  }

  void delay_turns_by_rank() {
    find_readers(); // emit() consumed them
    std::vector<std::uint32_t> order(tiles_.tiles.size());
    for (std::uint32_t t = 0; t < order.size(); ++t)
      order[tiles_.rank[t]] = t;
    delay_turns(order);
  }

  struct Visit {
    std::uint32_t tile = 0;
    std::uint32_t edge = 0;   ///< edges before this one are visited
    std::uint32_t pair = 0;   ///< pairs in tile_readers_ before this one are visited
    std::uint32_t reader = 0; ///< tiles of readers before this one are visited
  };

  /// An unranked tile that must precede the visited one; nullopt if none exists.
  std::optional<std::uint32_t> next_before(Visit& visit) {
    for (const TileEdge& edge : tiles_.edges_into(TileId(visit.tile)).subspan(visit.edge)) {
      if (tiles_.rank[edge.from.index()] == kNone)
        return edge.from.value;
      ++visit.edge;
    }
    const auto read_by = std::ranges::equal_range(tile_readers_, visit.tile, {},
                                                  &std::pair<std::uint32_t, std::uint32_t>::first);
    for (; visit.pair < read_by.size(); ++visit.pair) {
      if (tiles_.rank[read_by[visit.pair].second] == kNone)
        return read_by[visit.pair].second;
    }
    const std::size_t op = tiles_.tiles[visit.tile].op.index();
    for (; !readers_[op].empty(); readers_[op].pop_back()) {
      const auto [first, last] = tiles_.tiles_of(readers_[op].back());
      for (std::uint32_t t = first + visit.reader; t < last; ++t, ++visit.reader) {
        if (tiles_.rank[t] == kNone)
          return t;
      }
      visit.reader = 0;
    }
    return std::nullopt;
  }

  TileGraph& tiles_;
  std::int64_t turns_;
  const std::vector<bool>& in_turns_;      ///< per stack
  std::vector<std::uint32_t> most_;        ///< per stack: maximum slices of its operators
  std::vector<std::vector<OpId>> readers_; ///< per operator: readers that precede it as a whole
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tile_readers_; ///< (tile, its predecessor)
  std::vector<std::uint32_t> slot_;
  std::vector<Visit> pending_;
  std::uint32_t next_rank_ = 0;
};

} // namespace

void rank_tiles(TileGraph& tiles, std::int64_t turns, const std::vector<bool>& in_turns) {
  Ranker(tiles, turns, in_turns).rank();
}

} // namespace monet
