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
  std::int64_t least = 0; ///< elements that the reader can get from this tile alone
  std::int64_t most = 0;  ///< elements that it can get from it
  bool gaps = false;      ///< the reader's or the writer's box holds more than it touches
};

/// Of each element the tiles that hold it when all have run. Several of them have computed it, each
/// for itself.
using Holders = std::map<std::int64_t, std::vector<std::size_t>>;

class EdgeWitness {
public:
  EdgeWitness(const PlainTiles& tiles, const Graph& graph, bool recomputed)
      : tiles_(tiles), graph_(graph), recomputed_(recomputed) {
    edges_into_.resize(tiles.tiles.size());
    for (const PlainEdge& edge : tiles.edges)
      edges_into_[edge.to.index()].push_back(edge);
    by_op_.resize(graph.operators().size());
    for (std::size_t t = 0; t < tiles.tiles.size(); ++t)
      by_op_[tiles.tiles[t].op.index()].push_back(t);
    for (auto& of_op : by_op_) {
      std::sort(of_op.begin(), of_op.end(),
                [&](std::size_t a, std::size_t b) { return tiles.rank[a] < tiles.rank[b]; });
    }
  }

  std::optional<std::string> compare() {
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
      if (const auto wrong = expect_edges_of(TensorId(t)))
        return wrong;
    }
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
      const auto& [to, from, tensor] = key;
      if (expected.least > 0 && !seen.contains(key))
        return describe({from, to, tensor, bits(tensor, expected.least)}, "is missing");
    }
    for (const auto& [to, tensor, holders] : choices_) {
      const bool one = std::any_of(holders.begin(), holders.end(), [&](std::size_t from) {
        return seen.contains({to, TileId(from), tensor});
      });
      if (!one)
        return describe({TileId(holders.front()), to, tensor},
                        "or one that makes it as well is missing");
    }
    return std::nullopt;
  }

private:
  std::int64_t bits(TensorId tensor, std::int64_t elements) const {
    return storage_of(graph_.tensor(tensor).type, elements).value;
  }

  std::optional<std::string> check(const PlainEdge& edge, const Key& key) const {
    const auto found = expected_.find(key);
    if (found == expected_.end()) {
      const bool gaps =
          gappy_.contains({edge.to, edge.tensor}) || gappy_.contains({edge.from, edge.tensor});
      return gaps ? std::nullopt : std::optional(describe(edge, "is superfluous"));
    }
    const Expected& expected = found->second;
    if (edge.bits < bits(edge.tensor, expected.least) || edge.bits <= 0 ||
        (edge.bits > bits(edge.tensor, expected.most) && !expected.gaps)) {
      return describe(edge,
                      fmt::format("should carry {} to {} elements", expected.least, expected.most));
    }
    return std::nullopt;
  }

  std::string describe(const PlainEdge& edge, const std::string& what) const {
    const auto name = [&](TileId id) {
      return fmt::format("{} ('{}')", id.index(), graph_.op(tiles_.tiles[id.index()].op).name);
    };
    return fmt::format("edge of '{}' from {} to {}, {} bits, {}", graph_.tensor(edge.tensor).name,
                       name(edge.from), name(edge.to), edge.bits, what);
  }

  void add_gaps(std::size_t tile, TensorId tensor, bool writes) {
    if (has_gaps(tiles_.tiles[tile], graph_, tensor, writes))
      gappy_.insert({TileId(tile), tensor});
  }

  void add(std::size_t to, std::size_t from, TensorId tensor, bool alone) {
    Expected& expected = expected_[{TileId(to), TileId(from), tensor}];
    expected.least += alone ? 1 : 0;
    ++expected.most;
    expected.gaps =
        gappy_.contains({TileId(to), tensor}) || gappy_.contains({TileId(from), tensor});
  }

  /// True for loops that decide which elements of the tensor the operator writes.
  std::vector<bool> moving(OpId op, TensorId tensor) const {
    const LoopNest& nest = graph_.op(op).nest;
    std::vector<bool> moves(nest.dims.size(), false);
    for (const Access& access : nest.operands) {
      if (access.tensor != tensor || access.mode == AccessMode::read || access.opaque)
        continue;
      for (const AxisExpr& axis : access.axes) {
        for (const AffineTerm& term : axis.terms)
          moves[term.dim] = moves[term.dim] || !axis.data_dependent;
      }
    }
    return moves;
  }

  /// The tile before in a chain of those that add into one piece.
  std::optional<std::size_t> before(std::size_t tile, TensorId tensor) const {
    for (const PlainEdge& edge : edges_into_[tile]) {
      const bool own = tiles_.tiles[edge.from.index()].op == tiles_.tiles[tile].op;
      if (own && edge.tensor == tensor)
        return edge.from.index();
    }
    return std::nullopt;
  }

  /// A chain is of tiles with one place among the moving loops, which together do every iteration
  /// of the others once.
  std::optional<std::string> wrong_chain(std::size_t last, TensorId tensor) const {
    const PlainTile& tile = tiles_.tiles[last];
    const std::vector<bool> moves = moving(tile.op, tensor);
    const auto& dims = graph_.op(tile.op).nest.dims;
    std::int64_t wanted = 1;
    for (std::size_t d = 0; d < dims.size(); ++d)
      wanted *= moves[d] ? tile.ranges[d].size() : dims[d].size;
    std::int64_t done = 0;
    std::set<std::vector<std::int64_t>> seen;
    for (std::optional<std::size_t> at = last; at; at = before(*at, tensor)) {
      const auto& ranges = tiles_.tiles[*at].ranges;
      std::vector<std::int64_t> corner;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        corner.push_back(ranges[d].begin);
        if (moves[d] && ranges[d] != tile.ranges[d])
          return fmt::format("tile {} does not add into what tile {} makes", last, *at);
      }
      if (!seen.insert(corner).second)
        return fmt::format("tile {} adds the same twice", last);
      done += volume(ranges);
    }
    if (done != wanted)
      return fmt::format("tile {} of '{}' ends a sum of {} iterations out of {}", last,
                         graph_.op(tile.op).name, done, wanted);
    return std::nullopt;
  }

  std::optional<std::string> expect_edges_of(TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    if (!tensor.producer)
      return std::nullopt;
    std::set<std::size_t> continued;
    for (const std::size_t t : by_op_[tensor.producer->index()]) {
      if (const auto earlier = before(t, id); earlier && !continued.insert(*earlier).second)
        return fmt::format("two tiles add into what tile {} made", *earlier);
    }
    Holders holders;
    for (const std::size_t t : by_op_[tensor.producer->index()]) {
      add_gaps(t, id, true);
      const std::set<std::int64_t> elements = touched(tiles_.tiles[t], graph_, id, true);
      if (const auto earlier = before(t, id)) {
        for (std::size_t i = 0; i < elements.size(); ++i)
          add(t, *earlier, id, true);
      }
      if (continued.contains(t) || elements.empty())
        continue;
      if (const auto wrong = wrong_chain(t, id))
        return wrong;
      for (const std::int64_t element : elements) {
        std::vector<std::size_t>& of = holders[element];
        if (!of.empty() && !recomputed_)
          return fmt::format("tiles {} and {} of '{}' both make element {} of '{}'", of.front(), t,
                             graph_.op(*tensor.producer).name, element, tensor.name);
        of.push_back(t);
      }
    }
    for (const OpId reader : tensor.consumers) {
      for (const std::size_t t : by_op_[reader.index()])
        expect_edges_into(t, id, holders);
    }
    return std::nullopt;
  }

  void expect_edges_into(std::size_t reader, TensorId id, const Holders& holders) {
    add_gaps(reader, id, false);
    for (const std::int64_t element : touched(tiles_.tiles[reader], graph_, id, false)) {
      const auto found = holders.find(element);
      if (found == holders.end())
        continue; // nobody makes it: zeros
      for (const std::size_t from : found->second)
        add(reader, from, id, found->second.size() == 1);
      if (found->second.size() > 1)
        choices_.insert({TileId(reader), id, found->second});
    }
  }

  const PlainTiles& tiles_;
  const Graph& graph_;
  bool recomputed_;
  std::vector<std::vector<PlainEdge>> edges_into_;
  std::vector<std::vector<std::size_t>> by_op_; ///< tiles in order of rank
  std::map<Key, Expected> expected_;
  std::set<std::pair<TileId, TensorId>> gappy_;
  std::set<std::tuple<TileId, TensorId, std::vector<std::size_t>>> choices_; ///< one of these each
};

} // namespace

std::optional<std::string> wrong_edges(const PlainTiles& tiles, const Graph& graph,
                                       bool recomputed) {
  return EdgeWitness(tiles, graph, recomputed).compare();
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
