// Builds the dependencies between tiles: data that are read, chains of tiles that add up, and
// storage that is overwritten. make_tiles() calls it after all tiles exist.
#include "base/shared/union_volume.hpp"
#include "tiling/dependencies/written_grid.hpp"
#include "tiling/shared/grid.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <algorithm>
#include <limits>

namespace monet {

namespace {

/// Overlaps of one reading operand with one group of the producer's axes, for every combination of
/// parts of the reader's loops that move those axes.
struct GroupOverlaps {
  struct Entry {
    std::uint32_t offset = 0; ///< added to the producer's tile number
    std::int64_t volume = 0;
  };
  PartCombos combos; ///< over the reader's loops
  std::vector<std::uint32_t> first;
  std::vector<Entry> entries;

  std::span<const Entry> of(std::span<const std::uint32_t> parts) const {
    const std::uint32_t combo = combos.combo_of(parts);
    return {entries.data() + first[combo], first[combo + 1] - first[combo]};
  }
};

/// Overlaps of one reading operand with the tiles of its tensor's producer.
struct ReadPlan {
  const Access* access = nullptr;
  std::vector<GroupOverlaps> groups;
};

/// All reads of one tensor by one operator.
struct TensorPlan {
  TensorId id;
  const Tensor* tensor = nullptr;
  std::uint32_t base = 0; ///< producer's tile number without group offsets
  std::vector<ReadPlan> reads;
};

/// An output into which several tiles add.
struct ChainPlan {
  TensorId id;
  const Tensor* tensor = nullptr;
  WrittenGrid grid;
};

/// Fills in the edges and anti-dependences of a tile graph, operator by operator.
class EdgeMaker {
public:
  EdgeMaker(TileGraph& tiles, const Graph& graph) : tiles_(tiles), graph_(graph) {
    for (const OperatorTiling& tiling : tiles.operators)
      indices_.emplace_back(tiling);
  }

  void make() {
    tiles_.edges.clear();
    tiles_.first_edge.assign(1, 0);
    tiles_.first_edge.reserve(tiles_.tiles.size() + 1);
    tiles_.anti_dependences.clear();
    for (std::size_t i = 0; i < tiles_.operators.size(); ++i) {
      check_stop();
      add_operator(OpId(i));
      add_anti_dependences(OpId(i));
      if (is_fetch(graph_.op(OpId(i))))
        add_wait_of_fetch(OpId(i));
    }
  }

private:
  /// Maximum tile pairs of an anti-dependence per tile of its two operators; beyond it, the writer
  /// waits for the whole reader.
  static constexpr std::size_t kMaxPairs = 16;

  const OperatorTiling& tiling(OpId op) const { return tiles_.operators[op.index()]; }
  const PartIndex& index(OpId op) const { return indices_[op.index()]; }

  void add_operator(OpId id) {
    const Operator& op = graph_.op(id);
    const std::vector<TensorPlan> plans = tensor_plans(id);
    const std::vector<ChainPlan> chains = chain_plans(id);
    parts_.assign(op.nest.dims.size(), 0);
    for (std::uint32_t number = 0; number < tiling(id).size(); ++number) {
      index(id).parts_of(number, parts_);
      const auto begin = static_cast<std::ptrdiff_t>(tiles_.edges.size());
      for (const TensorPlan& plan : plans) {
        if (plan.reads.size() == 1)
          add_single(plan);
        else
          add_several(id, number, plan);
      }
      for (const ChainPlan& chain : chains)
        add_chain(id, number, chain);
      const auto before = [](const TileEdge& a, const TileEdge& b) {
        return a.from != b.from ? a.from < b.from : a.tensor < b.tensor;
      };
      if (!std::is_sorted(tiles_.edges.begin() + begin, tiles_.edges.end(), before))
        std::sort(tiles_.edges.begin() + begin, tiles_.edges.end(), before);
      if (tiles_.edges.size() > std::numeric_limits<std::uint32_t>::max())
        throw InfeasibleError("there are more than 2^32 - 1 dependencies between tiles");
      tiles_.first_edge.push_back(static_cast<std::uint32_t>(tiles_.edges.size()));
    }
  }

  std::vector<TensorPlan> tensor_plans(OpId id) const {
    std::vector<TensorPlan> plans;
    const auto& operands = graph_.op(id).nest.operands;
    for (auto access = operands.begin(); access != operands.end(); ++access) {
      const Tensor& tensor = graph_.tensor(access->tensor);
      if (access->mode != AccessMode::read || !tensor.producer)
        continue;
      const bool known = std::ranges::any_of(
          plans, [&](const TensorPlan& plan) { return plan.id == access->tensor; });
      if (known)
        continue;
      const OpId producer = *tensor.producer;
      const auto grid = written_grid(graph_.op(producer), tiling(producer), index(producer),
                                     access->tensor, tensor);
      if (!grid)
        continue;
      TensorPlan plan{access->tensor, &tensor, tiling(producer).first + grid->last_repeat(), {}};
      for (auto read = access; read != operands.end(); ++read) {
        if (read->tensor == plan.id && read->mode == AccessMode::read && !repeated(plan, *read))
          plan.reads.push_back(read_plan(id, producer, *grid, *read, tensor));
      }
      plans.push_back(std::move(plan));
    }
    return plans;
  }

  static bool repeated(const TensorPlan& plan, const Access& read) {
    return std::ranges::any_of(plan.reads, [&](const ReadPlan& known) {
      return known.access->opaque == read.opaque && known.access->axes == read.axes;
    });
  }

  ReadPlan read_plan(OpId reader, OpId producer, const WrittenGrid& grid, const Access& read,
                     const Tensor& tensor) const {
    ReadPlan plan{&read, {}};
    for (const WrittenGroup& group : grid.groups)
      plan.groups.push_back(group_overlaps(reader, producer, group, read, tensor));
    return plan;
  }

  GroupOverlaps group_overlaps(OpId reader, OpId producer, const WrittenGroup& group,
                               const Access& read, const Tensor& tensor) const {
    std::vector<std::uint32_t> dims;
    for (const std::uint32_t a : group.axes) {
      if (read.opaque || read.axes[a].data_dependent)
        continue;
      for (const AffineTerm& term : read.axes[a].terms) {
        if (term.coefficient != 0 && index(reader).is_cut(term.dim))
          dims.push_back(term.dim);
      }
    }
    std::sort(dims.begin(), dims.end());
    dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
    GroupOverlaps result{PartCombos(index(reader), std::move(dims)), {0}, {}};
    std::vector<Interval> ranges = full_tile(graph_.op(reader).nest);
    std::vector<std::uint32_t> parts(ranges.size(), 0);
    std::vector<Interval> box(tensor.shape.size());
    std::vector<Overlap> overlaps;
    std::vector<std::uint32_t> preferred;
    for (std::uint32_t combo = 0; combo < result.combos.size(); ++combo) {
      check_stop();
      result.combos.parts_of(combo, parts);
      for (const std::uint32_t dim : result.combos.dims())
        ranges[dim] = tiling(reader).parts[dim][parts[dim]];
      for (const std::uint32_t a : group.axes) {
        box[a] = read.opaque ? Interval{0, tensor.shape[a]}
                             : axis_range(read.axes[a], ranges, tensor.shape[a]);
      }
      preferred_parts(reader, producer, group, result.combos, parts, preferred);
      find_overlaps(group, box, preferred, overlaps);
      for (const Overlap& overlap : overlaps)
        result.entries.push_back({group.combos.offset(overlap.combo), overlap.volume});
      result.first.push_back(static_cast<std::uint32_t>(result.entries.size()));
    }
    return result;
  }

  /// Number of parts of a loop within one slice.
  std::uint32_t parts_per_slice(OpId op, std::uint32_t dim) const {
    std::uint32_t parts = index(op).parts(dim);
    for (std::uint32_t i = 0; i < tiling(op).slice_cuts; ++i) {
      if (tiling(op).cuts[i].dim == dim)
        parts /= tiling(op).cuts[i].count;
    }
    return parts;
  }

  /// Selects the producer's parts of the reader's own slice if slices of the stack recompute the
  /// same elements.
  void preferred_parts(OpId reader, OpId producer, const WrittenGroup& group,
                       const PartCombos& read_by, std::span<const std::uint32_t> parts,
                       std::vector<std::uint32_t>& preferred) const {
    preferred.clear();
    const bool one_loop = group.combos.dims().size() == 1 && read_by.dims().size() == 1;
    if (!group.recomputed || !one_loop || tiles_.stack_of.empty() ||
        tiles_.stack_of[reader.index()] != tiles_.stack_of[producer.index()])
      return;
    const std::uint32_t to = read_by.dims().front();
    const std::uint32_t from = group.combos.dims().front();
    const std::uint32_t to_each = parts_per_slice(reader, to);
    const std::uint32_t from_each = parts_per_slice(producer, from);
    if (index(reader).parts(to) / to_each != index(producer).parts(from) / from_each)
      return;
    const std::uint32_t slice = parts[to] / to_each;
    for (std::uint32_t i = 0; i < from_each; ++i)
      preferred.push_back(slice * from_each + i);
  }

  /// Position in the overlaps of one group.
  struct Cursor {
    const GroupOverlaps::Entry* begin = nullptr;
    const GroupOverlaps::Entry* at = nullptr;
    const GroupOverlaps::Entry* end = nullptr;
  };

  /// Calls `found(number, volume)` for every producer tile that the current tile's read overlaps.
  template <class Found>
  void for_each_overlap(const TensorPlan& plan, const ReadPlan& read, Found found) {
    cursors_.clear();
    for (const GroupOverlaps& group : read.groups) {
      const std::span<const GroupOverlaps::Entry> list = group.of(parts_);
      if (list.empty())
        return;
      cursors_.push_back({list.data(), list.data(), list.data() + list.size()});
    }
    while (true) {
      std::uint32_t number = plan.base;
      std::int64_t volume = 1;
      for (const Cursor& cursor : cursors_) {
        number += cursor.at->offset;
        volume *= cursor.at->volume;
      }
      found(number, volume);
      auto cursor = cursors_.rbegin();
      for (; cursor != cursors_.rend() && ++cursor->at == cursor->end; ++cursor)
        cursor->at = cursor->begin;
      if (cursor == cursors_.rend())
        return;
    }
  }

  void add_single(const TensorPlan& plan) {
    for_each_overlap(plan, plan.reads.front(), [&](std::uint32_t number, std::int64_t volume) {
      tiles_.edges.push_back({TileId(number), plan.id, storage_of(plan.tensor->type, volume)});
    });
  }

  /// Adds edges for several reads of one tensor; elements that the reads share count once.
  void add_several(OpId reader, std::uint32_t number, const TensorPlan& plan) {
    sources_.clear();
    for (const ReadPlan& read : plan.reads) {
      for_each_overlap(plan, read, [&](std::uint32_t source, std::int64_t /*volume*/) {
        sources_.push_back(source);
      });
    }
    std::sort(sources_.begin(), sources_.end());
    sources_.erase(std::unique(sources_.begin(), sources_.end()), sources_.end());
    tiles_.ranges(TileId(tiling(reader).first + number), ranges_);
    std::vector<Box> read_boxes;
    for (const ReadPlan& read : plan.reads)
      read_boxes.push_back(region(*read.access, ranges_, plan.tensor->shape));
    std::vector<Box> shared;
    for (const std::uint32_t source : sources_) {
      const Box written = written_box(*plan.tensor, plan.id, TileId(source));
      shared.clear();
      for (const Box& read : read_boxes) {
        Box box = intersect(read, written);
        if (volume(box) > 0)
          shared.push_back(std::move(box));
      }
      tiles_.edges.push_back(
          {TileId(source), plan.id, storage_of(plan.tensor->type, union_volume(shared))});
    }
  }

  Box written_box(const Tensor& tensor, TensorId id, TileId tile) {
    const Access* const access = written_access(graph_.op(*tensor.producer).nest, id);
    internal_check(access != nullptr, "an edge leaves an operator that does not write its tensor");
    tiles_.ranges(tile, ranges_);
    return region(*access, ranges_, tensor.shape);
  }

  std::vector<ChainPlan> chain_plans(OpId id) const {
    std::vector<ChainPlan> chains;
    for (const Access& access : graph_.op(id).nest.operands) {
      if (access.mode == AccessMode::read || index(id).cut_dims().empty())
        continue;
      const Tensor& tensor = graph_.tensor(access.tensor);
      auto grid = written_grid(graph_.op(id), tiling(id), index(id), access.tensor, tensor);
      if (grid && grid->repeats.size() > 1)
        chains.push_back({access.tensor, &tensor, std::move(*grid)});
    }
    return chains;
  }

  void add_chain(OpId id, std::uint32_t number, const ChainPlan& chain) {
    const std::uint32_t own = chain.grid.repeats.offset(chain.grid.repeats.combo_of(parts_));
    const auto& offsets = chain.grid.repeat_offsets;
    const auto at = std::lower_bound(offsets.begin(), offsets.end(), own);
    if (at == offsets.begin())
      return;
    std::int64_t volume = 1;
    for (const WrittenGroup& group : chain.grid.groups) {
      for (const Interval side : group.box(group.combos.combo_of(parts_)))
        volume *= side.size();
    }
    if (volume == 0)
      return;
    tiles_.edges.push_back({TileId(tiling(id).first + number - own + *std::prev(at)), chain.id,
                            storage_of(chain.tensor->type, volume)});
  }

  void add_anti_dependences(OpId writer) {
    std::vector<std::pair<OpId, TensorId>> reads; // (reader, output that overwrites its input)
    for (const TensorId output : present(graph_.op(writer).outputs)) {
      if (!graph_.tensor(output).alias_of)
        continue;
      for (const OpId reader : graph_.tensor(*graph_.tensor(output).alias_of).consumers) {
        if (reader < writer)
          reads.emplace_back(reader, output);
      }
    }
    std::ranges::sort(reads);
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    for (auto read = reads.begin(); read != reads.end();) {
      AntiDependence order{read->first, writer, {}};
      bool by_tiles = together(order.reader, writer);
      for (; read != reads.end() && read->first == order.reader; ++read)
        by_tiles = by_tiles && add_pairs(read->second, order);
      if (!by_tiles)
        order.tiles.clear();
      std::ranges::sort(order.tiles, [](const auto& a, const auto& b) {
        return std::pair(a.second, a.first) < std::pair(b.second, b.first);
      });
      order.tiles.erase(std::unique(order.tiles.begin(), order.tiles.end()), order.tiles.end());
      tiles_.anti_dependences.push_back(std::move(order));
    }
  }

  /// Delays an operator that fetches a tensor back from the host: it may overlap the operator
  /// directly before it, but waits for the one before that. Other fetches and operators of the same
  /// stack are not counted.
  void add_wait_of_fetch(OpId fetch) {
    std::size_t extra_fetches = 1;
    for (std::size_t i = fetch.index(); i-- > 0;) {
      if (is_fetch(graph_.op(OpId(i))) || together(OpId(i), fetch) || extra_fetches-- > 0)
        continue;
      tiles_.anti_dependences.push_back({OpId(i), fetch, {}});
      return;
    }
  }

  bool together(OpId a, OpId b) const {
    return !tiles_.stack_of.empty() && tiles_.stack_of[a.index()] == tiles_.stack_of[b.index()];
  }

  /// Adds the pairs of tiles whose regions overlap. False if they cannot be determined or are too
  /// many.
  bool add_pairs(TensorId output, AntiDependence& order) {
    const Tensor& tensor = graph_.tensor(output);
    const auto grid = written_grid(graph_.op(order.writer), tiling(order.writer),
                                   index(order.writer), output, tensor);
    if (!grid || grid->repeats.size() > 1 ||
        graph_.tensor(*tensor.alias_of).shape.size() != tensor.shape.size())
      return false;
    TensorPlan plan{output, &tensor, tiling(order.writer).first, {}};
    for (const Access& read : graph_.op(order.reader).nest.operands) {
      if (read.tensor == tensor.alias_of && read.mode == AccessMode::read)
        plan.reads.push_back(read_plan(order.reader, order.writer, *grid, read, tensor));
    }
    const OperatorTiling& reader = tiling(order.reader);
    const std::size_t most = kMaxPairs * (reader.size() + tiling(order.writer).size());
    parts_.assign(graph_.op(order.reader).nest.dims.size(), 0);
    for (std::uint32_t number = 0; number < reader.size() && order.tiles.size() <= most; ++number) {
      check_stop();
      index(order.reader).parts_of(number, parts_);
      for (const ReadPlan& read : plan.reads) {
        for_each_overlap(plan, read, [&](std::uint32_t tile, std::int64_t /*volume*/) {
          order.tiles.emplace_back(reader.first + number, tile);
        });
      }
    }
    return order.tiles.size() <= most;
  }

  TileGraph& tiles_;
  const Graph& graph_;
  std::vector<PartIndex> indices_;   ///< per operator
  std::vector<std::uint32_t> parts_; ///< of the current tile, per loop
  std::vector<Cursor> cursors_;      ///< per group of a read
  std::vector<std::uint32_t> sources_;
  std::vector<Interval> ranges_;
};

} // namespace

void make_edges(TileGraph& tiles, const Graph& graph) {
  EdgeMaker(tiles, graph).make();
  tiles.edges.shrink_to_fit(); // saves a third of the memory of a million tiles
}

} // namespace monet
