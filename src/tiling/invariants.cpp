// The invariants of a tile graph, recomputed without the code that makes it.
#include "monet/base/errors.hpp"
#include "monet/tiling/tiling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace monet {

namespace {

/// Tiles of an operator form a grid: per loop, the distinct ranges partition [0, size), and every
/// combination of them is there once.
void verify_partition(const TileGraph& tiles, const Graph& graph, OpId id) {
  const Operator& op = graph.op(id);
  const auto [first, last] = tiles.tiles_of(id);
  std::size_t cells = 1;
  std::set<std::vector<std::int64_t>> seen;
  for (std::uint32_t t = first; t < last; ++t) {
    const Tile& tile = tiles.tiles[t];
    internal_check(tile.op == id, fmt::format("tile {} is listed under '{}'", t, op.name));
    const std::vector<Interval> box = tiles.ranges(TileId(t));
    internal_check(box.size() == op.nest.dims.size(),
                   fmt::format("tile {} of '{}' has the wrong number of ranges", t, op.name));
    std::vector<std::int64_t> corner;
    for (const Interval& range : box)
      corner.push_back(range.begin);
    internal_check(seen.insert(std::move(corner)).second,
                   fmt::format("two tiles of '{}' begin alike", op.name));
  }
  for (std::size_t d = 0; d < op.nest.dims.size(); ++d) {
    std::set<std::pair<std::int64_t, std::int64_t>> ranges;
    for (std::uint32_t t = first; t < last; ++t) {
      const Interval range = tiles.ranges(TileId(t))[d];
      ranges.emplace(range.begin, range.end);
    }
    std::int64_t at = 0;
    for (const auto& [begin, end] : ranges) {
      internal_check(begin == at && end > begin,
                     fmt::format("tiles of '{}' do not partition loop {}", op.name, d));
      at = end;
    }
    internal_check(at == op.nest.dims[d].size,
                   fmt::format("tiles of '{}' do not partition loop {}", op.name, d));
    cells *= ranges.size();
  }
  internal_check(cells == seen.size(), fmt::format("tiles of '{}' leave a gap", op.name));
}

bool boxes_meet(const Box& a, const Box& b) {
  return std::equal(a.begin(), a.end(), b.begin(),
                    [](Interval x, Interval y) { return !intersect(x, y).empty(); });
}

using Triple = std::tuple<TileId, TileId, TensorId>; // to, from, tensor

/// Every pair of tiles that touch a common element, by comparing all pairs.
std::set<Triple> all_pairs(const TileGraph& tiles, const Graph& graph, OpId reader) {
  std::set<Triple> pairs;
  for (const Access& read : graph.op(reader).nest.operands) {
    const Tensor& tensor = graph.tensor(read.tensor);
    if (read.mode != AccessMode::read || !tensor.producer)
      continue;
    const auto [from, from_end] = tiles.tiles_of(*tensor.producer);
    for (const Access& write : graph.op(*tensor.producer).nest.operands) {
      if (write.mode == AccessMode::read || write.tensor != read.tensor)
        continue;
      std::vector<Box> written;
      for (std::uint32_t p = from; p < from_end; ++p) {
        written.push_back(region(write, tiles.ranges(TileId(p)), tensor.shape));
      }
      const auto [to, to_end] = tiles.tiles_of(reader);
      for (std::uint32_t c = to; c < to_end; ++c) {
        const Box box = region(read, tiles.ranges(TileId(c)), tensor.shape);
        for (std::uint32_t p = from; p < from_end; ++p) {
          if (boxes_meet(box, written[p - from])) {
            pairs.emplace(TileId(c), TileId(p), read.tensor);
          }
        }
      }
    }
  }
  return pairs;
}

} // namespace

void verify(const TileGraph& tiles, const TrainingGraph& step) {
  const Graph& graph = step.graph;
  internal_check(tiles.operators.size() == graph.operators().size(),
                 "the tile graph and the graph differ in operators");
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < tiles.operators.size(); ++i) {
    const auto [first, last] = tiles.tiles_of(OpId(i));
    internal_check(first == at && last > first && last <= tiles.tiles.size(),
                   "tiles of the operators do not lie side by side");
    at = last;
    verify_partition(tiles, graph, OpId(i));
  }
  internal_check(at == tiles.tiles.size(), "a tile belongs to no operator");

  std::set<Triple> expected;
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    expected.merge(all_pairs(tiles, graph, OpId(i)));
  }
  internal_check(expected.size() == tiles.edges.size(),
                 fmt::format("{} dependencies between tiles, but {} edges", expected.size(),
                             tiles.edges.size()));
  auto wanted = expected.begin();
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t) {
    for (const TileEdge& edge : tiles.edges_into(TileId(t))) {
      internal_check(edge.from < TileId(t), "an edge goes backwards");
      internal_check(Triple(TileId(t), edge.from, edge.tensor) == *wanted,
                     "an edge is missing, superfluous or out of order");
      internal_check(edge.bits.value > 0 &&
                         edge.bits.value <= size_of(graph.tensor(edge.tensor)).value,
                     "an edge carries more than its tensor, or nothing");
      ++wanted;
    }
  }
}

} // namespace monet
