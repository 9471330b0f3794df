// Dependencies between layers with only dummies between them: tiles whose boxes overlap (for
// edges.cpp). Boxes are compared axis by axis in the order of the equations, ignoring loop names.
//
// The parts of one axis depend on few loops, so overlapping parts are found per axis. Their
// combinations are the overlapping tiles.
#include "reference/stream/tiles/stages.hpp"

#include <algorithm>
#include <numeric>

namespace monet::stream {

namespace {

/// Ranges of one box axis that the tiles of a layer access, for each combination of the parts of
/// the loops that index it.
struct AxisParts {
  std::vector<std::uint32_t> dims;    ///< loops, cut or uncut
  std::vector<Interval> ranges;       ///< [first, last], both included
  std::vector<std::uint32_t> offsets; ///< contribution to the tile's index
};

class BoxAxes {
public:
  BoxAxes(const Layer& layer, Operand operand)
      : layer_(layer), offsets_(part_offsets(layer)), uses_(layer.dims.size(), 0) {
    const std::vector<std::uint32_t>& axes = layer.use(operand).axes;
    const auto channel = channel_axes(axes);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (channel && i == channel->second)
        continue;
      if (channel && i == channel->first)
        parts.push_back(channel_parts(axes[channel->group], axes[channel->inner]));
      else
        parts.push_back(axes[i] < layer.dims.size()
                            ? plain(axes[i])
                            : partial(layer.partial[axes[i] - layer.dims.size()]));
    }
    for (const AxisParts& axis : parts) {
      for (const std::uint32_t dim : axis.dims)
        ++uses_[dim];
    }
  }

  std::vector<AxisParts> parts;

  /// Loops that index no axis of the box; for a producer, they only order its tiles.
  std::vector<std::uint32_t> other_dims() const {
    std::vector<std::uint32_t> others;
    for (std::uint32_t dim = 0; dim < uses_.size(); ++dim) {
      if (uses_[dim] == 0)
        others.push_back(dim);
    }
    return others;
  }

  /// Whether axes can be compared independently: no cut loop indexes two axes.
  bool separable() const {
    for (std::size_t dim = 0; dim < uses_.size(); ++dim) {
      if (uses_[dim] > 1 && offsets_[dim].size() > 1)
        return false;
    }
    return true;
  }

private:
  struct Channel {
    std::size_t first, second, group, inner; ///< positions in the operand's axes
  };

  /// Positions of G and the adjacent C or K, which form one axis, as in ONNX's tensors; empty if
  /// the operand has no such axes.
  std::optional<Channel> channel_axes(const std::vector<std::uint32_t>& axes) const {
    const auto position = [&](std::string_view name) {
      return static_cast<std::size_t>(
          std::ranges::find_if(axes,
                               [&](std::uint32_t axis) { return layer_.axis_name(axis) == name; }) -
          axes.begin());
    };
    const std::size_t group = position("G");
    const std::size_t inner = position("C") < axes.size() ? position("C") : position("K");
    if (group >= axes.size() || inner >= axes.size())
      return std::nullopt;
    return Channel{std::min(group, inner), std::max(group, inner), group, inner};
  }

  Interval part_range(std::uint32_t dim, std::size_t part) const {
    const std::int64_t tile = layer_.dims[dim].tile;
    const std::int64_t begin = static_cast<std::int64_t>(part) * tile;
    return {begin, begin + tile - 1};
  }

  AxisParts plain(std::uint32_t dim) const {
    AxisParts axis{{dim}, {}, offsets_[dim]};
    for (std::size_t part = 0; part < offsets_[dim].size(); ++part)
      axis.ranges.push_back(part_range(dim, part));
    return axis;
  }

  template <class Range>
  AxisParts of_two(std::uint32_t outer, std::uint32_t inner, Range range) const {
    AxisParts axis{{outer, inner}, {}, {}};
    for (std::size_t a = 0; a < offsets_[outer].size(); ++a) {
      for (std::size_t b = 0; b < offsets_[inner].size(); ++b) {
        axis.ranges.push_back(range(part_range(outer, a), part_range(inner, b)));
        axis.offsets.push_back(offsets_[outer][a] + offsets_[inner][b]);
      }
    }
    return axis;
  }

  AxisParts partial(const PartialDim& axis) const {
    return of_two(axis.dims[0], axis.dims[1], [&](Interval a, Interval b) -> Interval {
      return {axis.coefficients[0] * a.begin + axis.coefficients[1] * b.begin - axis.pad_begin,
              axis.coefficients[0] * a.end + axis.coefficients[1] * b.end - axis.pad_begin};
    });
  }

  /// Ranges of the axis formed by G and C or K. Like the reference, the lower end omits the factor.
  AxisParts channel_parts(std::uint32_t group, std::uint32_t inner) const {
    const std::int64_t size = layer_.dims[inner].size;
    return of_two(group, inner, [&](Interval g, Interval c) -> Interval {
      return {g.begin + c.begin, g.end * size + c.end};
    });
  }

  const Layer& layer_;
  std::vector<std::vector<std::uint32_t>> offsets_;
  std::vector<int> uses_; ///< by loop: number of box axes that it indexes
};

/// For each part of the producer's axis: index contributions of overlapping consumer parts.
std::vector<std::vector<std::uint32_t>> meeting_parts(const AxisParts& producer,
                                                      const AxisParts& consumer) {
  std::vector<std::uint32_t> order(consumer.ranges.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return consumer.ranges[a].begin < consumer.ranges[b].begin;
  });
  std::int64_t longest = 0;
  for (const Interval& range : consumer.ranges)
    longest = std::max(longest, range.end - range.begin);
  std::vector<std::vector<std::uint32_t>> meeting(producer.ranges.size());
  for (std::size_t i = 0; i < producer.ranges.size(); ++i) {
    const Interval& made = producer.ranges[i];
    const auto first = std::ranges::lower_bound(order, made.begin - longest,
                                                [&](std::uint32_t part, std::int64_t begin) {
                                                  return consumer.ranges[part].begin < begin;
                                                });
    for (auto at = first; at != order.end() && consumer.ranges[*at].begin <= made.end; ++at) {
      if (consumer.ranges[*at].end >= made.begin)
        meeting[i].push_back(consumer.offsets[*at]);
    }
  }
  return meeting;
}

/// Enumerates overlapping tiles: all combinations over the axes of overlapping parts.
class Combiner {
public:
  Combiner(const BoxAxes& producer, const BoxAxes& consumer,
           std::vector<std::uint32_t> producer_others, std::vector<std::uint32_t> consumer_others)
      : producer_(producer), producer_others_(std::move(producer_others)),
        consumer_others_(std::move(consumer_others)) {
    for (std::size_t i = 0; i < producer.parts.size(); ++i)
      meeting_.push_back(meeting_parts(producer.parts[i], consumer.parts[i]));
  }

  /// Calls visit(producer tile, consumer tile) with indices within the layers.
  template <class Visit>
  void run(Visit visit) const {
    std::vector<std::size_t> part(meeting_.size(), 0);
    std::vector<std::uint32_t> made, sums, longer;
    do {
      std::uint32_t from = 0;
      sums = consumer_others_;
      for (std::size_t i = 0; i < part.size(); ++i) {
        from += producer_.parts[i].offsets[part[i]];
        longer.clear();
        for (const std::uint32_t share : meeting_[i][part[i]]) {
          for (const std::uint32_t sum : sums)
            longer.push_back(sum + share);
        }
        std::swap(sums, longer);
      }
      for (const std::uint32_t other : producer_others_) {
        for (const std::uint32_t to : sums)
          visit(from + other, to);
      }
    } while (advance(part));
  }

private:
  bool advance(std::vector<std::size_t>& part) const {
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (++part[i] < meeting_[i].size())
        return true;
      part[i] = 0;
    }
    return false;
  }

  const BoxAxes& producer_;
  std::vector<std::vector<std::vector<std::uint32_t>>> meeting_; ///< [axis][part of the producer]
  std::vector<std::uint32_t> producer_others_, consumer_others_;
};

/// Operands of the consumer that the reference attributes to the producer: made by it, or by a
/// passive node that is reached from it over dummies.
std::vector<Operand> operands_from(const Network& network, const LayerPair& pair) {
  std::vector<Operand> operands;
  for (const NodeSource& source : network.nodes[pair.consumer].sources) {
    if (source.node == pair.producer) {
      operands.push_back(source.operand);
      continue;
    }
    if (network.nodes[source.node].kind == NodeKind::compute)
      continue;
    std::vector<std::uint32_t> open{source.node};
    std::vector<bool> seen(network.nodes.size(), false);
    bool found = false;
    while (!open.empty() && !found) {
      const std::uint32_t node = open.back();
      open.pop_back();
      for (const std::uint32_t before : network.nodes[node].predecessors) {
        found = found || before == pair.producer;
        if (!seen[before] && network.nodes[before].kind == NodeKind::dummy)
          open.push_back(before);
        seen[before] = true;
      }
    }
    if (found)
      operands.push_back(source.operand);
  }
  return operands;
}

/// Adds edges by comparing all pairs of tiles, for axes that share loops (an Einsum with a repeated
/// letter in an operand).
void compare_all(const Workload& workload, const Layer& producer, const Layer& consumer,
                 Operand operand, std::vector<RawEdge>& edges) {
  const auto& made = producer.operands[0].axes;
  const auto& read = consumer.use(operand).axes;
  for (std::uint32_t from = producer.first_tile; from < producer.first_tile + producer.tiles;
       ++from) {
    if (!is_complete(workload, from))
      continue;
    const auto from_ranges = workload.ranges(from);
    for (std::uint32_t to = consumer.first_tile; to < consumer.first_tile + consumer.tiles; ++to) {
      const auto to_ranges = workload.ranges(to);
      bool meet = true;
      for (std::size_t i = 0; i < made.size() && meet; ++i)
        meet = !intersect(from_ranges[made[i]], to_ranges[read[i]]).empty();
      if (meet)
        edges.push_back({from, to, operand});
    }
  }
}

} // namespace

bool add_box_edges(const Workload& workload, const Network& network, const LayerPair& pair,
                   std::vector<RawEdge>& edges) {
  const Layer& producer = workload.layers[network.nodes[pair.producer].layer];
  const Layer& consumer = workload.layers[network.nodes[pair.consumer].layer];
  const BoxAxes made(producer, Operand::O);
  const std::vector<std::uint32_t> complete = combinations(producer, made.other_dims(), true);
  const auto operands = operands_from(network, pair);
  for (const Operand operand : operands) {
    const BoxAxes read(consumer, operand);
    if (made.parts.size() != read.parts.size())
      return false;
  }
  for (const Operand operand : operands) {
    const BoxAxes read(consumer, operand);
    if (!made.separable() || !read.separable()) {
      compare_all(workload, producer, consumer, operand, edges);
      continue;
    }
    const std::vector<std::uint32_t> any = combinations(consumer, read.other_dims(), false);
    Combiner(made, read, complete, any).run([&](std::uint32_t from, std::uint32_t to) {
      edges.push_back({producer.first_tile + from, consumer.first_tile + to, operand});
      check_edge_count(edges.size());
    });
  }
  return true;
}

} // namespace monet::stream
