#include "schedule/element_edges.hpp"

#include "schedule/element_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace monet::testing {

namespace {

std::set<std::int64_t> touched(const PlainTile& tile, const Graph& graph, TensorId tensor,
                               bool writes) {
  return touched_elements(graph, tile.op, tile.ranges, tensor, writes);
}

/// True when the boxes around what each operand touches hold more than that.
bool has_gaps(const PlainTile& tile, const Graph& graph, TensorId tensor, bool writes) {
  const auto& shape = graph.tensor(tensor).shape;
  for (const Access& access : graph.op(tile.op).nest.operands) {
    if (access.tensor != tensor || (access.mode != AccessMode::read) != writes)
      continue;
    const std::size_t touches = ElementWalk(access, tile.ranges, shape).positions().size();
    if (volume(region(access, tile.ranges, shape)) > static_cast<std::int64_t>(touches))
      return true;
  }
  return false;
}

using Key = std::tuple<TileId, TileId, TensorId>; // to, from, tensor

struct Expected {
  std::int64_t bits = 0;
  bool gaps = false; ///< the reader's or the writer's box holds more than it touches
};

class EdgeWitness {
public:
  EdgeWitness(const PlainTiles& tiles, const Graph& graph) : tiles_(tiles), graph_(graph) {
    by_op_.resize(graph.operators().size());
    for (std::size_t t = 0; t < tiles.tiles.size(); ++t)
      by_op_[tiles.tiles[t].op.index()].push_back(t);
    for (auto& of_op : by_op_) {
      std::sort(of_op.begin(), of_op.end(),
                [&](std::size_t a, std::size_t b) { return tiles.rank[a] < tiles.rank[b]; });
    }
  }

  std::optional<std::string> compare() {
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t)
      expect_edges_of(TensorId(t));
    std::set<Key> seen;
    for (const PlainEdge& edge : tiles_.edges) {
      const Key key{edge.to, edge.from, edge.tensor};
      if (!seen.insert(key).second)
        return describe(edge, "is there twice");
      if (tiles_.rank[edge.from.index()] >= tiles_.rank[edge.to.index()])
        return describe(edge, "goes against the order");
      if (const auto wrong = check(edge, key))
        return wrong;
    }
    for (const auto& [key, expected] : expected_) {
      if (!seen.contains(key)) {
        const auto& [to, from, tensor] = key;
        return describe({from, to, tensor, expected.bits}, "is missing");
      }
    }
    return std::nullopt;
  }

private:
  std::optional<std::string> check(const PlainEdge& edge, const Key& key) const {
    const auto found = expected_.find(key);
    if (found == expected_.end()) {
      const bool gaps =
          gappy_.contains({edge.to, edge.tensor}) || gappy_.contains({edge.from, edge.tensor});
      return gaps ? std::nullopt : std::optional(describe(edge, "is superfluous"));
    }
    const Expected& expected = found->second;
    if (edge.bits < expected.bits || (edge.bits > expected.bits && !expected.gaps))
      return describe(edge, fmt::format("should carry {} bits", expected.bits));
    return std::nullopt;
  }

  std::string describe(const PlainEdge& edge, const std::string& what) const {
    const auto name = [&](TileId id) {
      return fmt::format("{} ('{}')", id.index(), graph_.op(tiles_.tiles[id.index()].op).name);
    };
    return fmt::format("edge of '{}' from {} to {}, {} bits, {}", graph_.tensor(edge.tensor).name,
                       name(edge.from), name(edge.to), edge.bits, what);
  }

  void add(std::size_t to, TensorId tensor, const std::set<std::int64_t>& elements,
           const std::map<std::int64_t, std::size_t>& writer, bool writes) {
    if (has_gaps(tiles_.tiles[to], graph_, tensor, writes))
      gappy_.insert({TileId(to), tensor});
    std::map<std::size_t, std::int64_t> shared;
    for (const std::int64_t element : elements) {
      if (const auto from = writer.find(element); from != writer.end())
        ++shared[from->second];
    }
    for (const auto& [from, count] : shared) {
      const Bits bits = storage_of(graph_.tensor(tensor).type, count);
      const bool gaps =
          gappy_.contains({TileId(to), tensor}) || gappy_.contains({TileId(from), tensor});
      expected_[{TileId(to), TileId(from), tensor}] = {bits.value, gaps};
    }
  }

  void expect_edges_of(TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    if (!tensor.producer)
      return;
    std::map<std::int64_t, std::size_t> writer; // of each element, the last so far
    for (const std::size_t t : by_op_[tensor.producer->index()]) {
      const std::set<std::int64_t> elements = touched(tiles_.tiles[t], graph_, id, true);
      add(t, id, elements, writer, true); // adds to what earlier ones wrote
      for (const std::int64_t element : elements)
        writer[element] = t;
    }
    for (const OpId reader : tensor.consumers) {
      for (const std::size_t t : by_op_[reader.index()]) {
        const std::set<std::int64_t> elements = touched(tiles_.tiles[t], graph_, id, false);
        add(t, id, elements, writer, false);
      }
    }
  }

  const PlainTiles& tiles_;
  const Graph& graph_;
  std::vector<std::vector<std::size_t>> by_op_; ///< tiles in order of rank
  std::map<Key, Expected> expected_;
  std::set<std::pair<TileId, TensorId>> gappy_;
};

} // namespace

std::optional<std::string> wrong_edges(const PlainTiles& tiles, const Graph& graph) {
  return EdgeWitness(tiles, graph).compare();
}

std::int64_t effort_of_edges(const Graph& graph) {
  std::int64_t effort = 0;
  for (const Operator& op : graph.operators()) {
    for (const Access& access : op.nest.operands) {
      std::set<std::uint32_t> loops;
      for (const AxisExpr& axis : access.axes) {
        for (const AffineTerm& term : axis.terms)
          loops.insert(term.dim);
      }
      std::int64_t iterations = access.opaque ? element_count(graph.tensor(access.tensor)) : 1;
      for (const std::uint32_t loop : loops)
        iterations *= op.nest.dims[loop].size;
      effort += iterations;
    }
  }
  return effort;
}

} // namespace monet::testing
