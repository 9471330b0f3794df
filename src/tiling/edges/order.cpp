#include "tiling/edges/order.hpp"

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

class Ranker {
public:
  explicit Ranker(TileGraph& tiles) : tiles_(tiles), slot_(tiles.tiles.size(), 0) {}

  void rank() {
    find_readers();
    find_slots();
    tiles_.rank.assign(tiles_.tiles.size(), kNone);
    for (const std::uint32_t tile : in_slots())
      emit(tile);
  }

private:
  /// Who reads what is overwritten, and comes first.
  void find_readers() {
    readers_.resize(tiles_.operators.size());
    for (const AntiDependence& order : tiles_.anti_dependences) {
      if (order.tiles.empty())
        readers_[order.writer.index()].push_back(order.reader);
      for (const auto& [reader, writer] : order.tiles)
        tile_readers_.emplace_back(writer.value, reader.value);
    }
    std::ranges::sort(tile_readers_);
  }

  /// The slice of its stack to which each tile belongs.
  void find_slots() {
    std::vector<std::uint32_t> most(tiles_.operators.size(), 1); // per stack
    for (std::size_t i = 0; i < tiles_.operators.size(); ++i) {
      std::uint32_t& slices = most[tiles_.stack_of[i]];
      slices = std::max(slices, slices_of(tiles_.operators[i]));
    }
    for (std::size_t i = 0; i < tiles_.operators.size(); ++i) {
      const OperatorTiling& op = tiles_.operators[i];
      const std::uint32_t stack = tiles_.stack_of[i];
      const std::uint64_t slices = slices_of(op);
      const auto each = static_cast<std::uint32_t>(op.size() / slices);
      for (std::uint32_t t = op.first; t < op.last; ++t) {
        const std::uint64_t slice = (t - op.first) / each;
        slot_[t] = static_cast<std::uint32_t>(slice * most[stack] / slices);
        for (const TileEdge& edge : tiles_.edges_into(TileId(t))) {
          const OpId from = tiles_.tiles[edge.from.index()].op;
          if (tiles_.stack_of[from.index()] == stack)
            slot_[t] = std::max(slot_[t], slot_[edge.from.index()]);
        }
      }
    }
  }

  /// Tiles by (stack, slot, operator, number). Within one operator slots never go back.
  std::vector<std::uint32_t> in_slots() const {
    std::vector<std::uint64_t> keys(tiles_.tiles.size());
    for (std::size_t t = 0; t < keys.size(); ++t) {
      const std::uint64_t stack = tiles_.stack_of[tiles_.tiles[t].op.index()];
      keys[t] = stack << 32U | slot_[t];
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

  /// The tile, after all that it depends on.
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

  struct Visit {
    std::uint32_t tile = 0;
    std::uint32_t edge = 0;   ///< edges before this one are done
    std::uint32_t pair = 0;   ///< of its tile_readers_, those before this one are done
    std::uint32_t reader = 0; ///< tiles of readers before this one are done
  };

  /// A tile without a rank that must come before.
  std::optional<std::uint32_t> next_before(Visit& visit) {
    const auto edges = tiles_.edges_into(TileId(visit.tile));
    for (; visit.edge < edges.size(); ++visit.edge) {
      const std::uint32_t from = edges[visit.edge].from.value;
      if (tiles_.rank[from] == kNone)
        return from;
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
  std::vector<std::vector<OpId>> readers_; ///< per operator: those of which all comes first
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tile_readers_; ///< (tile, what comes first)
  std::vector<std::uint32_t> slot_;
  std::vector<Visit> pending_;
  std::uint32_t next_rank_ = 0;
};

} // namespace

void rank_tiles(TileGraph& tiles) {
  Ranker(tiles).rank();
}

} // namespace monet
