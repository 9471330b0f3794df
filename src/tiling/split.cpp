#include "tiling/split.hpp"

#include "monet/base/checked.hpp"

#include <algorithm>
#include <tuple>

namespace monet {

namespace {

/// One step of `dim` on this axis leaves behind everything the other loops reach.
bool separates(const AxisExpr& axis, const LoopNest& nest, std::size_t dim) {
  if (axis.data_dependent)
    return false;
  std::int64_t step = 0;
  std::int64_t reach = 0;
  for (const AffineTerm& term : axis.terms) {
    const std::int64_t size = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    if (term.dim == dim) {
      step = size;
    } else {
      reach = checked_add(reach, checked_multiply(size, nest.dims[term.dim].size - 1));
    }
  }
  return step > reach;
}

/// Bits touched by all tiles together; what several tiles touch counts for each.
std::int64_t traffic(const Graph& graph, const LoopNest& nest,
                     std::span<const std::vector<Interval>> tiles) {
  std::int64_t bits = 0;
  for (const auto& tile : tiles) {
    for (const Access& access : nest.operands) {
      const Tensor& tensor = graph.tensor(access.tensor);
      const Box box = region(access, tile, tensor.shape);
      bits = checked_add(bits, checked_multiply(volume(box), bits_of(tensor.type)));
    }
  }
  return bits;
}

/// Cores from strongest to weakest, and the numbers of them worth trying: all cores at least as
/// strong as the n-th.
struct RankedCores {
  std::vector<CoreId> cores;
  std::vector<std::int64_t> counts;
};

RankedCores rank(const Chip& chip, std::span<const CoreId> cores) {
  RankedCores ranked{{cores.begin(), cores.end()}, {}};
  const auto lanes = [&](CoreId id) { return chip.cores[id.index()].lanes(); };
  std::stable_sort(ranked.cores.begin(), ranked.cores.end(),
                   [&](CoreId a, CoreId b) { return lanes(a) > lanes(b); });
  for (std::size_t n = 1; n <= cores.size(); ++n) {
    if (n == cores.size() || lanes(ranked.cores[n]) != lanes(ranked.cores[n - 1])) {
      ranked.counts.push_back(static_cast<std::int64_t>(n));
    }
  }
  return ranked;
}

/// The first `count` of the ranking, back in order of id so that the same parts meet the same
/// cores.
std::vector<CoreId> strongest(const RankedCores& ranked, std::int64_t count) {
  std::vector<CoreId> chosen(ranked.cores.begin(), ranked.cores.begin() + count);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::int64_t slowest(const LoopNest& nest, std::span<const Interval> tile, const Chip& chip,
                     std::span<const CoreId> cores) {
  std::int64_t cycles = 0;
  for (const CoreId id : cores) {
    cycles = std::max(cycles, estimated_cycles(nest, tile, chip.cores[id.index()]));
  }
  return cycles;
}

} // namespace

bool may_split(const LoopNest& nest, std::size_t dim) {
  if (nest.dims[dim].coupled)
    return false;
  for (const Access& access : nest.operands) {
    if (access.mode == AccessMode::read)
      continue;
    if (access.opaque)
      return false;
    const bool separated =
        std::any_of(access.axes.begin(), access.axes.end(),
                    [&](const AxisExpr& axis) { return separates(axis, nest, dim); });
    if (!separated)
      return false;
  }
  return true;
}

Interval even_part(std::int64_t size, std::int64_t parts, std::int64_t index) {
  const std::int64_t small = size / parts;
  const std::int64_t larger = size % parts; // so many parts have one more
  const std::int64_t begin = index * small + std::min(index, larger);
  return {begin, begin + small + (index < larger ? 1 : 0)};
}

std::vector<std::vector<Interval>> split_ranges(const LoopNest& nest,
                                                std::span<const SplitFactor> factors) {
  std::vector<std::vector<Interval>> tiles{full_tile(nest)};
  for (const SplitFactor& factor : factors) {
    std::vector<std::vector<Interval>> finer;
    finer.reserve(tiles.size() * static_cast<std::size_t>(factor.parts));
    for (const auto& tile : tiles) {
      for (std::int64_t i = 0; i < factor.parts; ++i) {
        finer.push_back(tile);
        finer.back()[factor.dim] = even_part(nest.dims[factor.dim].size, factor.parts, i);
      }
    }
    tiles = std::move(finer);
  }
  return tiles;
}

std::int64_t estimated_cycles(const LoopNest& nest, std::span<const Interval> tile,
                              const Core& core) {
  const bool unrolled = nest.compute == ComputeKind::mac && !core.dataflow.empty();
  std::int64_t cycles = 1;
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    std::int64_t factor = 1;
    for (std::size_t a = 0; unrolled && a < core.dataflow.size(); ++a) {
      for (const Unrolling& unrolling : core.dataflow[a]) {
        if (unrolling.dim == nest.dims[d].name) {
          factor = checked_multiply(factor, std::max<std::int64_t>(1, unrolling.factor));
        }
      }
    }
    cycles = checked_multiply(cycles, ceil_div(tile[d].size(), factor));
  }
  return unrolled ? cycles : ceil_div(cycles, std::max<std::int64_t>(1, core.lanes()));
}

Split choose_split(const Graph& graph, const Operator& op, const Chip& chip,
                   std::span<const CoreId> cores) {
  const LoopNest& nest = op.nest;
  const RankedCores ranked = rank(chip, cores);
  const std::vector<Interval> whole = full_tile(nest);
  const std::int64_t alone =
      estimated_cycles(nest, whole, chip.cores[ranked.cores.front().index()]);
  Split best{{}, strongest(ranked, ranked.counts.front())}; // the caller picks one of them
  if (cores.size() == 1 || alone < kSmallestSplitCycles)
    return best;

  const std::vector<std::vector<Interval>> one{whole};
  auto best_key = std::make_tuple(alone, traffic(graph, nest, one), std::int64_t{1});
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    const std::int64_t size = nest.dims[d].size;
    if (size < 2 || !may_split(nest, d))
      continue;
    for (const std::int64_t count : ranked.counts) {
      // As few parts as give the same largest part.
      const std::int64_t parts = ceil_div(size, ceil_div(size, std::min(size, count)));
      if (parts < 2)
        continue;
      const SplitFactor factor{d, parts};
      const auto tiles = split_ranges(nest, {&factor, 1});
      const std::vector<CoreId> chosen = strongest(ranked, parts);
      const auto key = std::make_tuple(slowest(nest, tiles.front(), chip, chosen),
                                       traffic(graph, nest, tiles), parts);
      if (key < best_key) {
        best_key = key;
        best = {{factor}, chosen};
      }
    }
  }
  return best;
}

} // namespace monet
