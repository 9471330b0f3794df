// Finds dependencies over layout operators (for edges.cpp): the array of producing tiles is moved
// through the operators element by element, and every consumer reads its box.
#include "reference/stream/tiles/cell_array.hpp"
#include "reference/stream/tiles/layout_walk.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace monet::stream {

namespace {

/// Finds the producers of all elements in a box of an array, and caches them by box.
class BoxReader {
public:
  BoxReader(const CellArray& array, const ProducedCells& produced)
      : array_(array), produced_(produced), cell_seen_(produced.cells(), 0) {
    std::size_t stride = 1;
    strides_.resize(array.shape.size());
    for (std::size_t i = array.shape.size(); i-- > 0;) {
      strides_[i] = stride;
      stride *= static_cast<std::size_t>(array.shape[i]);
    }
  }

  /// Tiles in ascending order, limited to those in `slots`. Axes beyond the box count in full.
  const std::vector<std::uint32_t>& read(const std::vector<Interval>& box, Interval slots) {
    std::vector<Interval> key = box;
    key.push_back(slots);
    const auto [at, added] = known_.try_emplace(std::move(key));
    if (added)
      at->second = find(box, slots);
    return at->second;
  }

private:
  std::vector<std::uint32_t> find(const std::vector<Interval>& box, Interval slots) {
    std::vector<std::uint32_t> tiles;
    std::vector<Interval> ranges;
    for (std::size_t i = 0; i < array_.shape.size(); ++i) {
      ranges.push_back(i < box.size() ? box[i] : Interval{0, array_.shape[i]});
      if (ranges.back().empty())
        return tiles;
    }
    ++stamp_;
    std::vector<std::int64_t> at;
    std::size_t index = 0;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      at.push_back(ranges[i].begin);
      index += strides_[i] * static_cast<std::size_t>(ranges[i].begin);
    }
    bool more = true;
    while (more) {
      visit(array_.cells[index], slots, tiles);
      more = false;
      for (std::size_t i = ranges.size(); i-- > 0 && !more;) {
        index += strides_[i];
        more = ++at[i] < ranges[i].end;
        if (!more) {
          index -= strides_[i] * static_cast<std::size_t>(ranges[i].size());
          at[i] = ranges[i].begin;
        }
      }
    }
    std::ranges::sort(tiles);
    tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
    return tiles;
  }

  void visit(std::uint32_t cell, Interval slots, std::vector<std::uint32_t>& tiles) {
    if (cell == kEmptyCell || cell_seen_[cell] == stamp_)
      return;
    cell_seen_[cell] = stamp_;
    for (const std::uint32_t tile : produced_.tiles(cell)) {
      const std::int64_t slot = produced_.slot(tile);
      if (slot >= slots.begin && slot < slots.end)
        tiles.push_back(tile);
    }
  }

  const CellArray& array_;
  const ProducedCells& produced_;
  std::vector<std::size_t> strides_;
  std::vector<std::uint32_t> cell_seen_;
  std::uint32_t stamp_ = 0;
  std::map<std::vector<Interval>, std::vector<std::uint32_t>> known_;
};

constexpr Interval kAllSlots{0, std::int64_t{1} << 40};

class LayoutEdges {
public:
  LayoutEdges(const Workload& workload, const Graph& graph, const Network& network,
              const LayerPair& pair, bool exact)
      : workload_(workload), graph_(graph), network_(network), pair_(pair), exact_(exact),
        producer_(workload.layers[network.nodes[pair.producer].layer]),
        consumer_(workload.layers[network.nodes[pair.consumer].layer]) {}

  std::string stopped; ///< reason if no edges are found

  bool run(std::vector<RawEdge>& edges) {
    const std::optional<ProducedCells> produced = ProducedCells::of(producer_, exact_);
    if (!produced) {
      stopped = "a tensor too large to be followed";
      return false;
    }
    for (const auto& path : passive_paths(network_, pair_.producer, pair_.consumer, kMaxPaths)) {
      LayoutWalk walk(graph_, network_, produced->array, first_relevant(), exact_);
      bool through = merge_channels(walk);
      for (std::size_t at = 1; through && at + 1 < path.size(); ++at)
        through = walk.pass(path, at);
      if (!through || !read(walk, *produced, path[path.size() - 2], edges)) {
        if (stopped.empty())
          stopped = walk.stopped;
        return false;
      }
    }
    return true;
  }

private:
  static constexpr std::size_t kMaxPaths = 256;

  /// Whether each axis of the equation is cut; true for all if exact.
  std::vector<bool> first_relevant() const {
    if (exact_)
      return std::vector<bool>(tensor_axes(producer_, Operand::O).size(), true);
    std::vector<bool> relevant;
    const std::vector<Factor> loops = outer_loops(producer_);
    for (const std::uint32_t axis : producer_.operands[0].axes) {
      relevant.push_back(
          std::ranges::any_of(loops, [&](const Factor& loop) { return loop.dim == axis; }));
    }
    return relevant;
  }

  /// Reshapes outputs of 2-D convolutions and pooling to B, all channels, OX, OY. As in the
  /// reference, sizes are those before rounding, and elements are not reordered.
  bool merge_channels(LayoutWalk& walk) {
    if (exact_ || producer_.partial.size() != 2)
      return true;
    Shape shape{0, 0, 0, 0};
    for (const Dim& dim : producer_.dims) {
      if (dim.name == "B")
        shape[0] = dim.parsed;
      if (dim.name == "OX")
        shape[2] = dim.parsed;
      if (dim.name == "OY")
        shape[3] = dim.parsed;
    }
    const std::int64_t known = shape[0] * shape[2] * shape[3];
    const auto all = static_cast<std::int64_t>(walk.array.cells.size());
    if (known == 0 || all % known != 0) {
      walk.stopped = "a reshape whose sizes do not fit the rounded ones";
      return false;
    }
    shape[1] = all / known;
    walk.array.shape = shape;
    return true;
  }

  bool read(const LayoutWalk& walk, const ProducedCells& produced, std::uint32_t last,
            std::vector<RawEdge>& edges) {
    for (const NodeSource& source : network_.nodes[pair_.consumer].sources) {
      if (source.node != last)
        continue;
      if (!read_operand(walk, produced, source.operand, edges))
        return false;
      if (!exact_)
        break; // the reference uses only the first operand
    }
    return true;
  }

  bool read_operand(const LayoutWalk& walk, const ProducedCells& produced, Operand operand,
                    std::vector<RawEdge>& edges) {
    const auto& axes = consumer_.use(operand).axes;
    const auto merged = tensor_axes(consumer_, operand);
    const std::size_t rank = walk.array.shape.size();
    if (exact_ ? merged.size() != rank
               : axes.size() != walk.relevant.size() || axes.size() > rank + 1) {
      stopped = "other axes than the layer that reads them";
      return false;
    }
    std::int64_t slots = 8; // as in the reference's array: doubled when full
    for (std::uint32_t tile = 0; tile < producer_.tiles; ++tile) {
      while (produced.slot(tile) >= slots)
        slots *= 2;
    }
    BoxReader reader(walk.array, produced);
    std::vector<Interval> box;
    for (std::uint32_t tile = 0; tile < consumer_.tiles; ++tile) {
      const auto ranges = workload_.ranges(consumer_.first_tile + tile);
      box.clear();
      Interval wanted = kAllSlots;
      for (std::size_t i = 0; exact_ && i < merged.size(); ++i)
        box.push_back(intersect(exact_range(merged[i], ranges), {0, walk.array.shape[i]}));
      for (std::size_t i = 0; !exact_ && i < axes.size(); ++i) {
        const Interval range = walk.relevant[i] ? ranges[axes[i]] : Interval{0, 1};
        if (i < rank)
          box.push_back(python_slice(range.begin, range.end, walk.array.shape[i]));
        else
          wanted = python_slice(range.begin, range.end, slots);
      }
      for (const std::uint32_t from : reader.read(box, wanted))
        edges.push_back({producer_.first_tile + from, consumer_.first_tile + tile, operand});
      check_edge_count(edges.size());
    }
    return true;
  }

  Interval exact_range(const std::vector<std::uint32_t>& axis,
                       std::span<const Interval> ranges) const {
    Interval range = ranges[axis[0]];
    for (std::size_t i = 1; i < axis.size(); ++i) {
      const std::int64_t size = consumer_.dims[axis[i]].parsed;
      range = {range.begin * size + ranges[axis[i]].begin,
               (range.end - 1) * size + ranges[axis[i]].end};
    }
    return range;
  }

  const Workload& workload_;
  const Graph& graph_;
  const Network& network_;
  const LayerPair& pair_;
  bool exact_;
  const Layer& producer_;
  const Layer& consumer_;
};

} // namespace

bool add_layout_edges(const Workload& workload, const Graph& graph, Network& network,
                      const LayerPair& pair, bool exact, std::vector<RawEdge>& edges) {
  const std::size_t before = edges.size();
  LayoutEdges layout(workload, graph, network, pair, exact);
  if (layout.run(edges))
    return true;
  edges.resize(before);
  const Layer& consumer = workload.layers[network.nodes[pair.consumer].layer];
  network.notes.push_back({exact ? "all-depend" : "layout", consumer.name,
                           fmt::format("from layer {}: {}", pair.producer, layout.stopped)});
  return false;
}

} // namespace monet::stream
