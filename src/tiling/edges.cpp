#include "tiling/edges.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace monet {

namespace {

Box intersect_boxes(const Box& a, const Box& b) {
  Box box(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    box[i] = intersect(a[i], b[i]);
  return box;
}

bool overlap(const Box& a, const Box& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (intersect(a[i], b[i]).empty())
      return false;
  }
  return true;
}

/// What each tile of the producer writes of one tensor, and an axis along which the tiles lie in
/// order.
struct Writers {
  std::vector<Box> boxes; ///< per tile of the producer
  std::optional<std::size_t> axis;
};

bool ordered_along(const std::vector<Box>& boxes, std::size_t axis) {
  return std::adjacent_find(boxes.begin(), boxes.end(), [&](const Box& a, const Box& b) {
           return b[axis].begin < a[axis].begin || b[axis].end < a[axis].end;
         }) == boxes.end();
}

Writers writers_of(const TileGraph& tiles, const Graph& graph, TensorId tensor) {
  Writers writers;
  const OpId producer = *graph.tensor(tensor).producer;
  const auto [first, last] = tiles.tiles_of(producer);
  std::vector<Interval> ranges;
  for (std::uint32_t t = first; t < last; ++t) {
    tiles.ranges(TileId(t), ranges);
    writers.boxes.push_back(
        written_box(graph.op(producer), ranges, tensor, graph.tensor(tensor).shape));
  }
  for (std::size_t a = 0; a < graph.tensor(tensor).shape.size(); ++a) {
    const bool varies = writers.boxes.front()[a] != writers.boxes.back()[a];
    if (varies && ordered_along(writers.boxes, a)) {
      writers.axis = a;
      break;
    }
  }
  return writers;
}

/// Indices [first, last) of the writers that can overlap the box.
std::pair<std::size_t, std::size_t> candidates(const Writers& writers, const Box& box) {
  if (!writers.axis)
    return {0, writers.boxes.size()};
  const std::size_t axis = *writers.axis;
  const auto first =
      std::partition_point(writers.boxes.begin(), writers.boxes.end(),
                           [&](const Box& w) { return w[axis].end <= box[axis].begin; });
  const auto last = std::partition_point(
      first, writers.boxes.end(), [&](const Box& w) { return w[axis].begin < box[axis].end; });
  return {static_cast<std::size_t>(first - writers.boxes.begin()),
          static_cast<std::size_t>(last - writers.boxes.begin())};
}

class EdgeMaker {
public:
  EdgeMaker(const TileGraph& tiles, const Graph& graph) : tiles_(tiles), graph_(graph) {}

  void add_edges_into(TileId to, std::vector<TileEdge>& edges) {
    const std::size_t begin = edges.size();
    const Operator& op = graph_.op(tiles_.tiles[to.index()].op);
    tiles_.ranges(to, ranges_);
    std::vector<TensorId> done;
    for (const Access& access : op.nest.operands) {
      const bool produced = graph_.tensor(access.tensor).producer.has_value();
      if (access.mode != AccessMode::read || !produced)
        continue;
      if (std::find(done.begin(), done.end(), access.tensor) != done.end())
        continue;
      done.push_back(access.tensor);
      add_tensor(op, access.tensor, edges);
    }
    std::sort(edges.begin() + static_cast<std::ptrdiff_t>(begin), edges.end(),
              [](const TileEdge& a, const TileEdge& b) {
                return std::tie(a.from, a.tensor) < std::tie(b.from, b.tensor);
              });
  }

private:
  const Writers& writers(TensorId tensor) {
    const auto found = writers_.find(tensor);
    if (found != writers_.end())
      return found->second;
    return writers_.emplace(tensor, writers_of(tiles_, graph_, tensor)).first->second;
  }

  void add_tensor(const Operator& op, TensorId id, std::vector<TileEdge>& edges) {
    const Tensor& tensor = graph_.tensor(id);
    const Writers& sources = writers(id);
    const std::vector<Box> reads = read_boxes(op, ranges_, id, tensor.shape);
    std::size_t first = sources.boxes.size();
    std::size_t last = 0;
    for (const Box& read : reads) {
      const auto [a, b] = candidates(sources, read);
      first = std::min(first, a);
      last = std::max(last, b);
    }
    const std::uint32_t producer_first = tiles_.tiles_of(*tensor.producer).first;
    std::vector<Box> shared;
    for (std::size_t i = first; i < last; ++i) {
      shared.clear();
      for (const Box& read : reads) {
        if (overlap(read, sources.boxes[i]))
          shared.push_back(intersect_boxes(read, sources.boxes[i]));
      }
      if (shared.empty())
        continue;
      const Bits bits = storage_of(tensor.type, union_volume(shared));
      edges.push_back({TileId(producer_first + i), id, bits});
    }
  }

  const TileGraph& tiles_;
  const Graph& graph_;
  std::vector<Interval> ranges_;
  std::map<TensorId, Writers> writers_;
};

/// Cuts the axis at every border and adds up the slices; depth = number of axes of a tensor.
std::int64_t union_from(std::span<const Box> boxes, std::size_t axis) {
  if (boxes.empty())
    return 0;
  if (axis == boxes.front().size())
    return 1;
  std::vector<std::int64_t> borders;
  for (const Box& box : boxes) {
    borders.push_back(box[axis].begin);
    borders.push_back(box[axis].end);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::int64_t total = 0;
  std::vector<Box> inside;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    inside.clear();
    for (const Box& box : boxes) {
      if (box[axis].begin <= borders[i] && box[axis].end >= borders[i + 1])
        inside.push_back(box);
    }
    const std::int64_t rest = union_from(inside, axis + 1);
    total = checked_add(total, checked_multiply(borders[i + 1] - borders[i], rest));
  }
  return total;
}

} // namespace

std::int64_t union_volume(std::span<const Box> boxes) {
  if (boxes.size() == 1)
    return volume(boxes.front());
  std::vector<Box> distinct;
  for (const Box& box : boxes) {
    if (std::find(distinct.begin(), distinct.end(), box) == distinct.end())
      distinct.push_back(box);
  }
  return distinct.size() == 1 ? volume(distinct.front()) : union_from(distinct, 0);
}

std::vector<Box> read_boxes(const Operator& op, std::span<const Interval> tile, TensorId tensor,
                            std::span<const std::int64_t> shape) {
  std::vector<Box> boxes;
  for (const Access& access : op.nest.operands) {
    if (access.tensor != tensor || access.mode != AccessMode::read)
      continue;
    boxes.push_back(region(access, tile, shape));
  }
  return boxes;
}

Box written_box(const Operator& op, std::span<const Interval> tile, TensorId tensor,
                std::span<const std::int64_t> shape) {
  for (const Access& access : op.nest.operands) {
    if (access.tensor != tensor || access.mode == AccessMode::read)
      continue;
    return region(access, tile, shape);
  }
  // An output that the nest does not describe: nothing of it is known to be written.
  return Box(shape.size(), Interval{0, 0});
}

void make_edges(TileGraph& tiles, const Graph& graph) {
  std::vector<TileEdge> edges;
  std::vector<std::uint32_t> first_edge{0};
  EdgeMaker maker(tiles, graph);
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t) {
    maker.add_edges_into(TileId(t), edges);
    first_edge.push_back(static_cast<std::uint32_t>(edges.size()));
  }
  tiles.first_edge = std::move(first_edge);
  tiles.edges = std::move(edges);
}

} // namespace monet
