// Sorts tiles into classes of equal cost without writing down their core problems. tile_costs.cpp
// then solves one problem per class.
#include "schedule/cost/tile_classes.hpp"

#include "schedule/cost/intern_table.hpp"

#include "monet/base/stop.hpp"
#include "monet/workload/loop_nest.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace monet {

namespace {

/// Properties of a part of a loop on which core problems depend. Parts with equal keys are
/// interchangeable.
using PartKey = std::vector<std::int64_t>;

struct AxisUse {
  const AxisExpr* axis = nullptr;
  std::int64_t extent = 0;
};

/// Axes that the given loop moves, either alone or together with other cut loops.
struct AxesOfLoop {
  std::vector<AxisUse> alone;
  bool clipped_together = false; ///< an axis shared with another cut loop exceeds its tensor
};

bool is_cut(const OperatorTiling& tiling, std::size_t dim) {
  return tiling.parts[dim].size() > 1;
}

/// Range from the first to the last iteration of all parts of each loop.
std::vector<Interval> reach_of(const OperatorTiling& tiling) {
  std::vector<Interval> reach;
  for (const auto& parts : tiling.parts) {
    reach.push_back(parts.front());
    for (const Interval part : parts)
      reach.back() = {std::min(reach.back().begin, part.begin),
                      std::max(reach.back().end, part.end)};
  }
  return reach;
}

AxesOfLoop axes_of(const Graph& graph, const Operator& op, const OperatorTiling& tiling,
                   std::size_t dim) {
  AxesOfLoop result;
  const std::vector<Interval> whole = reach_of(tiling);
  for (const Access& access : op.nest.operands) {
    if (access.opaque)
      continue;
    const auto& shape = graph.tensor(access.tensor).shape;
    for (std::size_t a = 0; a < access.axes.size(); ++a) {
      const AxisExpr& axis = access.axes[a];
      if (axis.data_dependent)
        continue;
      bool moves = false;
      bool others = false;
      for (const AffineTerm& term : axis.terms) {
        moves = moves || term.dim == dim;
        others = others || (term.dim != dim && is_cut(tiling, term.dim));
      }
      if (!moves)
        continue;
      if (!others) {
        result.alone.push_back({&axis, shape[a]});
        continue;
      }
      const std::int64_t anything = std::numeric_limits<std::int64_t>::max() / 4;
      AxisExpr shifted = axis; // so far from zero that nothing is clipped
      shifted.offset += anything / 2;
      const Interval reach = axis_range(shifted, whole, anything);
      result.clipped_together = result.clipped_together || reach.begin < anything / 2 ||
                                reach.end > anything / 2 + shape[a];
    }
  }
  return result;
}

/// Class of each part of a loop. Sets `count` to the number of classes.
std::vector<std::uint32_t> classes_of_parts(const Graph& graph, const Operator& op,
                                            const OperatorTiling& tiling, std::size_t dim,
                                            std::uint32_t& count) {
  const AxesOfLoop axes = axes_of(graph, op, tiling, dim);
  std::vector<Interval> tile = reach_of(tiling);
  std::map<PartKey, std::uint32_t> known;
  std::vector<std::uint32_t> classes;
  classes.reserve(tiling.parts[dim].size());
  PartKey key;
  for (const Interval part : tiling.parts[dim]) {
    tile[dim] = part;
    key.assign(1, part.size());
    if (axes.clipped_together)
      key.push_back(part.begin);
    for (const AxisUse& use : axes.alone) {
      const Interval range = axis_range(*use.axis, tile, use.extent);
      std::int64_t origin = use.axis->offset;
      for (const AffineTerm& term : use.axis->terms)
        origin += term.coefficient * tile[term.dim].begin;
      key.push_back(origin - range.begin);
      key.push_back(range.size());
    }
    classes.push_back(known.emplace(key, static_cast<std::uint32_t>(known.size())).first->second);
  }
  count = static_cast<std::uint32_t>(known.size());
  return classes;
}

/// Numbers the classes. The shape of a tile combines the classes of its parts; tiles of an operator
/// with equal shape and core are in one class.
class Classifier {
public:
  Classifier(const TileGraph& tiles, const Graph& graph) : tiles_(tiles), graph_(graph) {}

  TileClasses classify(std::span<const OpId> ops) {
    result_.class_of.resize(tiles_.tiles.size());
    for (const OpId op : ops) {
      check_stop();
      add_operator(op);
    }
    return std::move(result_);
  }

private:
  /// Contribution of one loop's parts to the number of a shape.
  struct Loop {
    std::vector<std::uint32_t> classes;
    std::uint64_t stride = 1;
  };

  void add_operator(OpId id) {
    const OperatorTiling& tiling = tiles_.operators[id.index()];
    const Operator& op = graph_.op(id);
    std::vector<Loop> loops(tiling.parts.size());
    std::uint64_t stride = 1;
    for (std::size_t d = 0; d < loops.size(); ++d) {
      if (!is_cut(tiling, d))
        continue;
      std::uint32_t count = 1;
      loops[d].classes = classes_of_parts(graph_, op, tiling, d, count);
      loops[d].stride = stride;
      stride *= count; // no overflow: fewer than 2^32 tiles, hence shapes
    }
    InternTable known;
    std::uint32_t next = tiling.first;
    for (std::uint32_t& found :
         std::span(result_.class_of).subspan(tiling.first, tiling.last - tiling.first))
      found = class_of(tiling, loops, TileId(next++), known);
  }

  std::uint32_t class_of(const OperatorTiling& tiling, std::span<const Loop> loops, TileId tile,
                         InternTable& known) {
    digits_.assign(loops.size(), 0);
    const std::span<std::uint32_t> digits = digits_;
    std::uint32_t below = tiling.size();
    std::uint32_t index = tile.value - tiling.first;
    for (const LoopCut& cut : tiling.cuts) {
      below /= cut.count;
      std::uint32_t& digit = digits[cut.dim];
      digit = digit * cut.count + index / below;
      index %= below;
    }
    std::uint64_t shape = 0;
    for (const LoopCut& cut : tiling.cuts) {
      std::uint32_t& digit = digits[cut.dim];
      if (digit == kCounted)
        continue;
      const Loop& loop = loops[cut.dim];
      shape += loop.stride * loop.classes[digit];
      digit = kCounted; // a loop that is cut twice counts once
    }
    const CoreId core = tiles_.tiles[tile.index()].core;
    const auto next = static_cast<std::uint32_t>(result_.example.size());
    const std::uint64_t hash = mix(mix(shape, core.value), 0);
    const std::uint32_t found =
        known.find(hash, next, [&](std::uint32_t c) { return seen_[c] == std::pair(shape, core); });
    if (found == next) {
      result_.example.push_back(tile);
      result_.shape.push_back(shape);
      seen_.emplace_back(shape, core);
    }
    return found;
  }

  static constexpr std::uint32_t kCounted = 0xFFFFFFFFU;
  const TileGraph& tiles_;
  const Graph& graph_;
  TileClasses result_;
  std::vector<std::pair<std::uint64_t, CoreId>> seen_; ///< per class: shape and core
  std::vector<std::uint32_t> digits_;                  ///< per loop: index of its part
};

} // namespace

TileClasses classify_tiles(const TileGraph& tiles, const Graph& graph, std::span<const OpId> ops) {
  return Classifier(tiles, graph).classify(ops);
}

} // namespace monet
