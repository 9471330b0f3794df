// Checks the invariants of a tile graph. Recomputes them from boxes, independently of the code that
// makes the graph.

#include "base/shared/union_volume.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/tiling/tiling.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

namespace monet {

namespace {

/// Maximum number of (producer tile, reader tile) pairs that are all compared. Beyond it, each edge
/// is checked, and all edges together must cover the elements that are read.
constexpr std::size_t kMaxPairs = std::size_t{1} << 20;

bool contributes(const Access& access, std::size_t dim) {
  if (access.opaque)
    return false;
  return std::ranges::any_of(access.axes, [&](const AxisExpr& axis) {
    return !axis.data_dependent && std::ranges::any_of(axis.terms, [&](const AffineTerm& term) {
      return term.dim == dim && term.coefficient != 0;
    });
  });
}

class Checker {
public:
  Checker(const TileGraph& tiles, const Graph& graph) : tiles_(tiles), graph_(graph) {}

  void check() {
    check_shape();
    for (std::size_t i = 0; i < tiles_.operators.size(); ++i) {
      check_stop();
      check_grid(OpId(i));
      check_edges(OpId(i));
    }
    check_ranks();
    check_overwrites();
  }

private:
  /// Region of a tensor that one tile writes.
  struct WrittenRegion {
    std::uint32_t tile = 0;
    Box box;
  };
  /// Regions of a tensor that an operator writes. Tiles that add into the same region count once,
  /// as the last of them.
  struct Written {
    std::vector<WrittenRegion> last;
    std::map<std::uint32_t, std::uint32_t> before; ///< adding tile -> the previous one
    bool recomputed = false;                       ///< regions overlap
    bool whole = false;                            ///< regions are disjoint and cover the tensor
  };

  void check_shape() const {
    internal_check(tiles_.operators.size() == graph_.operators().size(),
                   "the tile graph and the graph differ in operators");
    std::uint32_t at = 0;
    for (const OperatorTiling& op : tiles_.operators) {
      internal_check(op.first == at && op.last > at && op.last <= tiles_.tiles.size(),
                     "tiles of the operators do not lie side by side");
      at = op.last;
    }
    internal_check(at == tiles_.tiles.size(), "a tile belongs to no operator");
    internal_check(tiles_.first_edge.size() == tiles_.tiles.size() + 1 &&
                       tiles_.first_edge.front() == 0 &&
                       tiles_.first_edge.back() == tiles_.edges.size() &&
                       std::ranges::is_sorted(tiles_.first_edge),
                   "edges do not belong to tiles");
    internal_check(tiles_.rank.size() == tiles_.tiles.size() &&
                       tiles_.stack_of.size() == tiles_.operators.size(),
                   "ranks and stacks are incomplete");
  }

  /// Checks that the parts of each loop cover [0, size) in order. They may overlap only in loops
  /// over which no output is summed.
  void check_grid(OpId id) const {
    const Operator& op = graph_.op(id);
    const OperatorTiling& tiling = tiles_.operators[id.index()];
    const auto complain = [&](std::size_t d) {
      return fmt::format("tiles of '{}' do not partition loop {}", op.name, d);
    };
    internal_check(tiling.parts.size() == op.nest.dims.size(),
                   fmt::format("tiles of '{}' have the wrong number of ranges", op.name));
    std::vector<std::size_t> counts(op.nest.dims.size(), 1);
    std::size_t tiles = 1;
    for (const LoopCut& cut : tiling.cuts) {
      internal_check(cut.dim < counts.size() && cut.count > 0, "a cut is of no loop");
      counts[cut.dim] *= cut.count;
      tiles *= cut.count;
    }
    internal_check(tiles == tiling.size() && tiling.slice_cuts <= tiling.cuts.size(),
                   fmt::format("'{}' has another number of tiles than its cuts make", op.name));
    for (std::size_t d = 0; d < counts.size(); ++d) {
      internal_check(tiling.parts[d].size() == counts[d], complain(d));
      std::vector<Interval> parts = tiling.parts[d];
      std::ranges::stable_sort(parts, [](Interval a, Interval b) { return a.begin < b.begin; });
      std::int64_t end = 0;
      bool twice = false;
      for (const Interval part : parts) {
        internal_check(!part.empty() && part.begin <= end, complain(d));
        twice |= part.begin < end;
        end = std::max(end, part.end);
      }
      internal_check(!twice || summed_up_nowhere(op.nest, d),
                     fmt::format("'{}' adds iterations of loop {} twice", op.name, d));
      internal_check(parts.front().begin == 0 && end == op.nest.dims[d].size, complain(d));
      internal_check(
          parts.size() == 1 || !op.nest.dims[d].coupled,
          fmt::format("'{}' is cut along loop {}, whose iterations need each other", op.name, d));
    }
    for (std::uint32_t t = tiling.first; t < tiling.last; ++t)
      internal_check(tiles_.tiles[t].op == id,
                     fmt::format("tile {} is listed under '{}'", t, op.name));
  }

  static bool summed_up_nowhere(const LoopNest& nest, std::size_t dim) {
    return std::ranges::all_of(nest.operands, [&](const Access& access) {
      return access.mode == AccessMode::read || contributes(access, dim);
    });
  }

  /// Index of the part of each loop that makes up tile `number` of an operator.
  static std::vector<std::size_t> parts_of(const OperatorTiling& tiling, std::size_t number) {
    std::vector<std::size_t> parts(tiling.parts.size(), 0);
    std::vector<std::size_t> unit(tiling.parts.size(), 1);
    for (auto cut = tiling.cuts.rbegin(); cut != tiling.cuts.rend(); ++cut) {
      parts[cut->dim] += number % cut->count * unit[cut->dim];
      unit[cut->dim] *= cut->count;
      number /= cut->count;
    }
    return parts;
  }

  Written written(OpId id, TensorId tensor) const {
    Written result;
    const Operator& op = graph_.op(id);
    const OperatorTiling& tiling = tiles_.operators[id.index()];
    const Access* const access = written_access(op.nest, tensor);
    if (access == nullptr)
      return result;
    std::vector<std::size_t> moving; // cut loops that move the region
    for (std::size_t d = 0; d < tiling.parts.size(); ++d) {
      if (tiling.parts[d].size() > 1 && contributes(*access, d))
        moving.push_back(d);
      for (std::size_t i = 1; i < tiling.parts[d].size(); ++i)
        result.recomputed |= tiling.parts[d][i].begin < tiling.parts[d][i - 1].end;
    }
    std::map<std::vector<std::size_t>, std::uint32_t> places; // -> index into last
    std::int64_t sum = 0;
    for (std::uint32_t t = tiling.first; t < tiling.last; ++t) {
      const std::vector<Interval> ranges = tiles_.ranges(TileId(t));
      const std::vector<std::size_t> parts = parts_of(tiling, t - tiling.first);
      std::vector<std::size_t> place; // not the box: recomputed parts may have equal boxes
      for (const std::size_t d : moving)
        place.push_back(parts[d]);
      const auto [entry, added] =
          places.emplace(std::move(place), static_cast<std::uint32_t>(result.last.size()));
      if (added) {
        result.last.push_back({t, region(*access, ranges, graph_.tensor(tensor).shape)});
        sum += volume(result.last.back().box);
      } else {
        WrittenRegion& piece = result.last[entry->second];
        if (volume(piece.box) > 0) // a box in the padding adds nothing
          result.before[t] = piece.tile;
        piece.tile = t;
      }
    }
    result.whole = !result.recomputed && sum == element_count(graph_.tensor(tensor));
    return result;
  }

  /// Number of elements of the boxes that lie in the pieces.
  static std::int64_t common(const std::vector<Box>& boxes, const std::vector<const Box*>& pieces) {
    std::vector<Box> shared;
    for (const Box& box : boxes) {
      for (const Box* piece : pieces) {
        Box both = intersect(box, *piece);
        if (volume(both) > 0)
          shared.push_back(std::move(both));
      }
    }
    return shared.empty() ? 0 : union_volume(shared);
  }

  void check_edges(OpId id) const {
    const Operator& op = graph_.op(id);
    const OperatorTiling& tiling = tiles_.operators[id.index()];
    std::size_t expected = 0;
    std::set<TensorId> done;
    for (const Access& access : op.nest.operands) {
      const bool reads = access.mode == AccessMode::read;
      if (!done.insert(access.tensor).second)
        continue;
      if (!reads)
        expected += check_chain(id, access.tensor);
      else if (graph_.tensor(access.tensor).producer)
        expected += check_reads(id, access.tensor);
    }
    std::size_t found = 0;
    for (std::uint32_t t = tiling.first; t < tiling.last; ++t) {
      const auto edges = tiles_.edges_into(TileId(t));
      found += edges.size();
      for (std::size_t i = 0; i < edges.size(); ++i) {
        internal_check(edges[i].from < TileId(t), "an edge goes backwards");
        const bool ordered =
            i == 0 || edges[i - 1].from < edges[i].from ||
            (edges[i - 1].from == edges[i].from && edges[i - 1].tensor < edges[i].tensor);
        internal_check(ordered, "an edge is missing, superfluous or out of order");
      }
    }
    internal_check(expected == found,
                   fmt::format("'{}' has {} dependencies, but {} edges", op.name, expected, found));
  }

  /// Checks that each adding tile waits for the previous tile that adds into the same region.
  /// Returns the number of these waits.
  std::size_t check_chain(OpId id, TensorId tensor) const {
    const Written pieces = written(id, tensor);
    for (const auto& [tile, before] : pieces.before) {
      const TileEdge* edge = edge_of(tile, before, tensor);
      internal_check(edge != nullptr,
                     fmt::format("tile {} of '{}' does not wait for tile {}, which adds into the "
                                 "same piece",
                                 tile, graph_.op(id).name, before));
      internal_check(edge->bits.value > 0, "an edge carries more than its tensor, or nothing");
    }
    return pieces.before.size();
  }

  const TileEdge* edge_of(std::uint32_t tile, std::uint32_t from, TensorId tensor) const {
    for (const TileEdge& edge : tiles_.edges_into(TileId(tile))) {
      if (edge.from.value == from && edge.tensor == tensor)
        return &edge;
    }
    return nullptr;
  }

  std::size_t check_reads(OpId id, TensorId tensor) const {
    const OperatorTiling& tiling = tiles_.operators[id.index()];
    const Written pieces = written(*graph_.tensor(tensor).producer, tensor);
    std::map<std::uint32_t, const Box*> by_tile;
    std::vector<const Box*> all;
    for (const WrittenRegion& piece : pieces.last) {
      by_tile[piece.tile] = &piece.box;
      all.push_back(&piece.box);
    }
    const bool every_pair = pieces.last.size() * tiling.size() <= kMaxPairs;
    std::size_t found = 0;
    for (std::uint32_t t = tiling.first; t < tiling.last; ++t) {
      check_stop();
      const std::vector<Box> reads = boxes(TileId(t), tensor, AccessMode::read);
      std::vector<const Box*> chosen;
      for (const TileEdge& edge : tiles_.edges_into(TileId(t))) {
        if (edge.tensor != tensor)
          continue;
        const auto piece = by_tile.find(edge.from.value);
        const std::int64_t shared = piece == by_tile.end() ? 0 : common(reads, {piece->second});
        internal_check(shared > 0,
                       "an edge carries more than its tensor, or nothing: an edge is missing, "
                       "superfluous or out of order");
        internal_check(edge.bits == storage_of(graph_.tensor(tensor).type, shared),
                       "an edge carries more than its tensor, or nothing");
        chosen.push_back(piece->second);
      }
      found += chosen.size();
      check_cover(id, reads, chosen, all, pieces, every_pair);
    }
    return found;
  }

  /// Checks that the regions with edges contain all elements that are read and written by some
  /// tile.
  void check_cover(OpId id, const std::vector<Box>& reads, const std::vector<const Box*>& chosen,
                   const std::vector<const Box*>& all, const Written& pieces,
                   bool every_pair) const {
    const auto complaint = [&](std::size_t dependencies) {
      return fmt::format("'{}' has {} dependencies on one tensor, but {} edges", graph_.op(id).name,
                         dependencies, chosen.size());
    };
    if (every_pair && !pieces.recomputed) {
      const auto meeting = static_cast<std::size_t>(
          std::ranges::count_if(all, [&](const Box* piece) { return meets(reads, *piece); }));
      internal_check(meeting == chosen.size(), complaint(meeting));
    } else if (every_pair) {
      internal_check(common(reads, chosen) == common(reads, all), complaint(all.size()));
    } else if (pieces.whole) {
      std::vector<Box> some;
      std::copy_if(reads.begin(), reads.end(), std::back_inserter(some),
                   [](const Box& box) { return volume(box) > 0; });
      const std::int64_t wanted = some.empty() ? 0 : union_volume(some);
      internal_check(common(reads, chosen) == wanted, complaint(all.size()));
    }
  }

  static bool meets(const std::vector<Box>& reads, const Box& piece) {
    return std::ranges::any_of(reads,
                               [&](const Box& read) { return volume(intersect(read, piece)) > 0; });
  }

  /// Checks that ranks are a permutation in which every tile follows the tiles it depends on.
  void check_ranks() const {
    std::vector<bool> taken(tiles_.tiles.size(), false);
    for (std::size_t t = 0; t < tiles_.tiles.size(); ++t) {
      const std::uint32_t rank = tiles_.rank[t];
      internal_check(rank < taken.size() && !taken[rank], "two tiles have one rank");
      taken[rank] = true;
      for (const TileEdge& edge : tiles_.edges_into(TileId(t)))
        internal_check(
            tiles_.rank[edge.from.index()] < rank,
            fmt::format("tile {} comes before tile {}, which it depends on", t, edge.from.index()));
    }
  }

  /// Checks that each reader tile ranks before every tile that overwrites elements it reads.
  void check_overwrites() const {
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      for (const TensorId output : present(graph_.operators()[i].outputs)) {
        const auto storage = graph_.tensor(output).alias_of;
        if (!storage)
          continue;
        for (const OpId reader : graph_.tensor(*storage).consumers) {
          if (reader < OpId(i))
            check_overwritten(reader, *storage, OpId(i), output);
        }
      }
    }
  }

  void check_overwritten(OpId reader, TensorId storage, OpId writer, TensorId output) const {
    const auto [first, last] = tiles_.tiles_of(reader);
    const auto [from, to] = tiles_.tiles_of(writer);
    const auto rank = tiles_.rank.begin();
    if (*std::max_element(rank + first, rank + last) < *std::min_element(rank + from, rank + to))
      return;
    for (std::uint32_t r = first; r < last; ++r) {
      for (std::uint32_t w = from; w < to; ++w) {
        internal_check(tiles_.rank[r] < tiles_.rank[w] ||
                           !meet(boxes(TileId(r), storage, AccessMode::read),
                                 boxes(TileId(w), output, AccessMode::write)),
                       fmt::format("tile {} overwrites what tile {} reads later", w, r));
      }
    }
  }

  std::vector<Box> boxes(TileId tile, TensorId tensor, AccessMode mode) const {
    std::vector<Box> result;
    const std::vector<Interval> ranges = tiles_.ranges(tile);
    for (const Access& access : graph_.op(tiles_.tiles[tile.index()].op).nest.operands) {
      if (access.tensor == tensor &&
          (access.mode == AccessMode::read) == (mode == AccessMode::read))
        result.push_back(region(access, ranges, graph_.tensor(tensor).shape));
    }
    return result;
  }

  static bool meet(const std::vector<Box>& some, const std::vector<Box>& others) {
    return std::ranges::any_of(others, [&](const Box& box) { return meets(some, box); });
  }

  const TileGraph& tiles_;
  const Graph& graph_;
};

} // namespace

void verify(const TileGraph& tiles, const TrainingGraph& step) {
  Checker(tiles, step.graph).check();
}

} // namespace monet
