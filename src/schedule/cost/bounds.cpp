// Lower bounds on the latency and off-chip traffic of any schedule of given tiles. verify() checks
// that no timeline beats them.
#include "schedule/shared/bounds.hpp"

#include "base/shared/checked.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <tuple>
#include <utility>

namespace monet {

namespace {

/// Values of a sum of terms: `teeth` intervals of `width` values each. The first interval starts at
/// `begin`, and each next one `step` later.
struct Comb {
  std::int64_t begin = 0;
  std::int64_t step = 1; ///< at least the width
  std::int64_t teeth = 1;
  std::int64_t width = 1;
};

/// Number of the comb's values in [0, extent).
std::int64_t inside(const Comb& comb, std::int64_t extent) {
  const auto floored = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  const std::int64_t first =
      std::max<std::int64_t>(0, floored(-comb.begin - comb.width, comb.step) + 1);
  const std::int64_t last = std::min(comb.teeth - 1, floored(extent - 1 - comb.begin, comb.step));
  if (extent <= 0 || first > last)
    return 0;
  const std::int64_t before = -(comb.begin + comb.step * first);
  const std::int64_t behind = comb.begin + comb.step * last + comb.width - extent;
  return (last - first + 1) * comb.width - std::max<std::int64_t>(0, before) -
         std::max<std::int64_t>(0, behind);
}

/// A term without its sign and the begin of its loop.
struct Step {
  std::int64_t step = 0;
  std::int64_t size = 1;
};

/// Number of different values in [0, extent), counted one by one; nullopt if the loops are too
/// long.
std::optional<std::int64_t> counted(std::span<const Step> steps, std::int64_t begin,
                                    std::int64_t extent) {
  constexpr std::int64_t kFew = 256;
  std::int64_t combinations = 1;
  for (const Step& step : steps) {
    if (step.size > kFew / combinations)
      return std::nullopt;
    combinations *= step.size;
  }
  std::array<std::int64_t, kFew> values{begin};
  std::size_t count = 1;
  for (const Step& step : steps) {
    const std::size_t before = count;
    for (std::int64_t i = 1; i < step.size; ++i) {
      for (std::size_t v = 0; v < before; ++v)
        values[count++] = values[v] + step.step * i;
    }
  }
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(values.begin(), end);
  return std::count_if(values.begin(), std::unique(values.begin(), end),
                       [&](std::int64_t value) { return value >= 0 && value < extent; });
}

/// Lower bound on the number of different values in [0, extent). Exact for short loops; else the
/// maximum over combs of one term with the other terms fixed.
std::int64_t touched_with_gaps(std::span<const Step> steps, std::int64_t begin,
                               std::int64_t extent) {
  if (const auto count = counted(steps, begin, extent))
    return *count;
  constexpr std::int64_t kMaxValues = 16; // of another term that are tried
  std::int64_t most = 0;
  for (std::size_t t = 0; t < steps.size(); ++t) {
    most = std::max(most, inside({begin, steps[t].step, steps[t].size, 1}, extent));
    for (std::size_t other = 0; other < steps.size(); ++other) {
      const std::int64_t tried = other == t ? 0 : std::min(steps[other].size, kMaxValues);
      for (std::int64_t i = 1; i < tried; ++i) {
        const std::int64_t value = i * (steps[other].size - 1) / (tried - 1);
        const std::int64_t moved = begin + steps[other].step * value;
        most = std::max(most, inside({moved, steps[t].step, steps[t].size, 1}, extent));
      }
    }
  }
  return most;
}

/// Lower bound on the number of different elements along an axis that the loops touch.
std::int64_t touched(const AxisExpr& axis, std::span<const Interval> box, std::int64_t extent) {
  const Interval range = axis_range(axis, box, extent);
  if (axis.data_dependent || range.empty())
    return std::min<std::int64_t>(1, range.size());
  std::int64_t begin = axis.offset;
  std::vector<Step> steps;
  for (const AffineTerm& term : axis.terms) {
    const Interval& loop = box[term.dim];
    begin += term.coefficient * (term.coefficient > 0 ? loop.begin : loop.end - 1);
    if (term.coefficient != 0 && loop.size() > 1)
      steps.push_back({std::abs(term.coefficient), loop.size()});
  }
  std::ranges::sort(steps, {}, &Step::step);
  std::int64_t span = 1; // number of values without a gap
  for (const Step& step : steps) {
    if (step.step > span)
      return touched_with_gaps(steps, begin, extent);
    span = checked_add(span, checked_multiply(step.step, step.size - 1));
  }
  return range.size();
}

} // namespace

std::int64_t touched_elements(const Access& access, std::span<const Interval> box,
                              std::span<const std::int64_t> shape) {
  if (access.opaque)
    return volume(region(access, box, shape));
  std::vector<int> axes_of(box.size(), 0);
  bool diagonal = false;
  for (const AxisExpr& axis : access.axes) {
    for (const AffineTerm& term : axis.terms)
      diagonal = diagonal || ++axes_of[term.dim] > 1;
  }
  std::int64_t all = 1;
  std::int64_t most = 1;
  for (std::size_t a = 0; a < access.axes.size(); ++a) {
    const std::int64_t count = touched(access.axes[a], box, shape[a]);
    all = checked_multiply(all, count);
    most = all == 0 ? 0 : std::max(most, count);
  }
  return diagonal ? most : all;
}

std::vector<bool> required_offchip(const Graph& graph) {
  std::vector<bool> required(graph.tensors().size(), false);
  for (const TensorId output : graph.outputs)
    required[output.index()] = true;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const auto root = graph.tensors()[i].alias_of;
    if (root && !graph.tensor(*root).producer)
      required[i] = true;
  }
  return required;
}

CompulsoryTraffic compulsory_traffic(const Graph& graph) {
  const std::size_t count = graph.tensors().size();
  const std::vector<bool> left_behind = required_offchip(graph);
  CompulsoryTraffic traffic{std::vector<std::int64_t>(count), std::vector<std::int64_t>(count)};
  for (const Operator& op : graph.operators()) {
    const std::vector<Interval> all = full_tile(op.nest);
    for (const Access& access : op.nest.operands) {
      const Tensor& tensor = graph.tensor(access.tensor);
      const std::size_t i = access.tensor.index();
      const bool read = access.mode == AccessMode::read;
      if (read ? tensor.producer.has_value() : !left_behind[i])
        continue;
      std::int64_t& bits = tensor.producer ? traffic.written[i] : traffic.read[i];
      bits = std::max(bits, touched_elements(access, all, tensor.shape) * bits_of(tensor.type));
    }
  }
  return traffic;
}

namespace {

class BoundFinder {
public:
  BoundFinder(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
              const Chip& chip)
      : tiles_(tiles), graph_(step.graph), chip_(chip) {
    latency_.assign(tiles.tiles.size(), 0);
    for (const TileRun& run : timeline.runs)
      latency_[run.tile.index()] = timeline.cost_of(run).latency.value;
    for (std::size_t i = 0; i < chip.cores.size(); ++i)
      pool_of_.push_back(chip.memory_of(CoreId(i)).index());
  }

  Bounds find() {
    add_critical_path();
    add_cores();
    add_offchip();
    std::vector<std::int64_t> in(chip_.cores.size(), 0);
    std::vector<std::int64_t> out(chip_.cores.size(), 0);
    add_sources(in);
    add_pieces(in, out);
    for (std::size_t pool = 0; pool < chip_.compute_cores(); ++pool) {
      if (pool_of_[pool] == pool)
        add_links(pool, in[pool], out[pool]);
    }
    return bounds_;
  }

private:
  struct Entry {
    std::uint64_t group; ///< counted once per pool
    std::uint32_t pool;
    std::uint32_t maker; ///< pool that the bits come from
    std::int64_t bits;
    auto key() const { return std::tuple(group, pool, bits); }
  };

  std::size_t pool_of(std::size_t tile) const { return pool_of_[tiles_.tiles[tile].core.index()]; }

  void add_critical_path() {
    std::vector<std::uint32_t> order(tiles_.tiles.size());
    for (std::size_t t = 0; t < order.size(); ++t)
      order[tiles_.rank[t]] = static_cast<std::uint32_t>(t);
    std::vector<std::int64_t> end(tiles_.tiles.size(), 0);
    std::int64_t longest = 0;
    for (const std::uint32_t t : order) {
      std::int64_t start = 0;
      for (const TileEdge& edge : tiles_.edges_into(TileId(t)))
        start = std::max(start, end[edge.from.index()]);
      end[t] = start + latency_[t];
      longest = std::max(longest, end[t]);
    }
    bounds_.critical_path = {longest};
  }

  void add_cores() {
    std::vector<std::int64_t> busy(chip_.cores.size(), 0);
    for (std::size_t t = 0; t < latency_.size(); ++t)
      busy[tiles_.tiles[t].core.index()] += latency_[t];
    const auto most = std::ranges::max_element(busy);
    bounds_.busiest_core = {*most};
    bounds_.core = CoreId(static_cast<std::size_t>(most - busy.begin()));
  }

  /// Bounds the traffic through the ports of the off-chip memory; see Bounds.
  void add_offchip() {
    const CompulsoryTraffic traffic = compulsory_traffic(graph_);
    for (const std::int64_t bits : traffic.read)
      bounds_.offchip_read.value = checked_add(bounds_.offchip_read.value, bits);
    for (const std::int64_t bits : traffic.written)
      bounds_.offchip_written.value = checked_add(bounds_.offchip_written.value, bits);
    bounds_.offchip_port = {
        offchip_port(chip_).min_cycles(bounds_.offchip_read.value, bounds_.offchip_written.value)};
  }

  /// Loops whose parts read disjoint elements: alone on their axis, and cut into disjoint parts.
  std::vector<std::size_t> telling_loops(const Access& access, const OperatorTiling& tiling) const {
    std::vector<std::size_t> loops;
    if (access.opaque)
      return loops;
    std::vector<int> axes_of(tiling.parts.size(), 0);
    for (const AxisExpr& axis : access.axes) {
      for (const AffineTerm& term : axis.terms)
        ++axes_of[term.dim];
    }
    for (const AxisExpr& axis : access.axes) {
      if (axis.data_dependent || axis.terms.size() != 1 || axis.terms[0].coefficient == 0)
        continue;
      const std::size_t dim = axis.terms[0].dim;
      std::vector<Interval> parts = tiling.parts[dim];
      std::ranges::sort(parts, [](Interval a, Interval b) { return a.begin < b.begin; });
      bool disjoint = axes_of[dim] == 1 && parts.size() > 1;
      for (std::size_t i = 1; i < parts.size(); ++i)
        disjoint = disjoint && parts[i - 1].end <= parts[i].begin;
      if (disjoint)
        loops.push_back(dim);
    }
    return loops;
  }

  /// Adds the bits that each memory must receive of tensors without producer: per tensor, the
  /// maximum over the operators that read it.
  void add_sources(std::vector<std::int64_t>& in) {
    const std::size_t pools = chip_.cores.size();
    std::vector<std::int64_t> most(graph_.tensors().size() * pools, 0);
    std::vector<std::int64_t> of_operator(pools, 0);
    std::vector<Entry> entries;
    std::vector<Interval> box;
    for (std::size_t o = 0; o < graph_.operators().size(); ++o) {
      const OperatorTiling& tiling = tiles_.operators[o];
      for (const Access& access : graph_.operators()[o].nest.operands) {
        const Tensor& tensor = graph_.tensor(access.tensor);
        if (access.mode != AccessMode::read || tensor.producer)
          continue;
        const std::vector<std::size_t> loops = telling_loops(access, tiling);
        entries.clear();
        for (std::uint32_t t = tiling.first; t < tiling.last; ++t) {
          tiles_.ranges(TileId(t), box);
          std::uint64_t group = 0;
          for (const std::size_t loop : loops)
            group = group * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(box[loop].begin) + 1;
          const std::int64_t bits =
              touched_elements(access, box, tensor.shape) * bits_of(tensor.type);
          entries.push_back({group, static_cast<std::uint32_t>(pool_of(t)), 0, bits});
        }
        for (const Entry& entry : largest_of_groups(entries))
          of_operator[entry.pool] += entry.bits;
        for (std::size_t pool = 0; pool < pools; ++pool) {
          std::int64_t& bits = most[access.tensor.index() * pools + pool];
          bits = std::max(bits, std::exchange(of_operator[pool], 0));
        }
      }
    }
    for (std::size_t i = 0; i < most.size(); ++i)
      in[i % pools] += most[i];
  }

  /// Reduces the entries to those with the most bits for each group and pool.
  static const std::vector<Entry>& largest_of_groups(std::vector<Entry>& entries) {
    std::ranges::sort(entries, std::greater{}, &Entry::key);
    const auto last =
        std::unique(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
          return a.group == b.group && a.pool == b.pool;
        });
    entries.erase(last, entries.end());
    return entries;
  }

  /// Adds the pieces that tiles read from other memories: each piece leaves its memory once and
  /// enters each reader's memory once.
  void add_pieces(std::vector<std::int64_t>& in, std::vector<std::int64_t>& out) const {
    std::vector<Entry> entries;
    for (std::size_t t = 0; t < tiles_.tiles.size(); ++t) {
      const std::size_t pool = pool_of(t);
      for (const TileEdge& edge : tiles_.edges_into(TileId(t))) {
        const std::size_t maker = pool_of(edge.from.index());
        if (maker == pool)
          continue;
        entries.push_back({(std::uint64_t{edge.from.value} << 32U) | edge.tensor.value,
                           static_cast<std::uint32_t>(pool), static_cast<std::uint32_t>(maker),
                           edge.bits.value});
      }
    }
    largest_of_groups(entries);
    for (std::size_t i = 0; i < entries.size();) {
      std::int64_t most = 0;
      const Entry& first = entries[i];
      for (; i < entries.size() && entries[i].group == first.group; ++i) {
        in[entries[i].pool] += entries[i].bits;
        most = std::max(most, entries[i].bits);
      }
      out[first.maker] += most;
    }
  }

  void add_links(std::size_t pool, std::int64_t in, std::int64_t out) {
    const auto inside = [&](CoreId core) { return pool_of_[core.index()] == pool; };
    std::int64_t width_in = 0;
    std::int64_t width_out = 0;
    for (const Link& link : chip_.links) {
      if (std::ranges::none_of(link.cores, inside))
        continue;
      const bool forward = link.reach == LinkReach::forward;
      if (link.reach != LinkReach::offchip_write && (!forward || inside(link.cores[1])))
        width_in += link.bandwidth_bits_per_cycle;
      if (link.reach != LinkReach::offchip_read && (!forward || inside(link.cores[0])))
        width_out += link.bandwidth_bits_per_cycle;
    }
    const std::int64_t cycles = std::max(width_in > 0 ? ceil_div(in, width_in) : 0,
                                         width_out > 0 ? ceil_div(out, width_out) : 0);
    if (cycles > bounds_.busiest_links.value) {
      bounds_.busiest_links = {cycles};
      bounds_.links_of = CoreId(pool);
    }
  }

  const TileGraph& tiles_;
  const Graph& graph_;
  const Chip& chip_;
  std::vector<std::int64_t> latency_; ///< per tile
  std::vector<std::size_t> pool_of_;  ///< per core: first core that shares its memory
  Bounds bounds_;
};

} // namespace

Cycles Bounds::latency() const {
  return std::max({critical_path, busiest_core, busiest_links, offchip_port});
}

Bounds lower_bounds(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
                    const Chip& chip) {
  return BoundFinder(timeline, tiles, step, chip).find();
}

OffchipTotals offchip_traffic(const Timeline& timeline, const Chip& chip) {
  OffchipTotals totals;
  for (const Transfer& t : timeline.transfers) {
    const Route& route = timeline.route_of(t);
    if (route.from == chip.offchip)
      totals.read += timeline.bits_of(t);
    if (std::ranges::find(route.to, chip.offchip) != route.to.end())
      totals.written += timeline.bits_of(t);
  }
  return totals;
}

} // namespace monet
