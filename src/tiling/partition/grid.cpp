// Cuts loops, appends the tiles of an operator and converts tile ids to loop ranges; tiling.cpp
// builds tile graphs with it.
#include "tiling/shared/grid.hpp"

#include "base/shared/checked.hpp"
#include "tiling/partition/split.hpp"

#include <algorithm>
#include <numeric>

namespace monet {

std::vector<Interval> TileGraph::ranges(TileId tile) const {
  std::vector<Interval> out;
  ranges(tile, out);
  return out;
}

void TileGraph::ranges(TileId tile, std::vector<Interval>& out) const {
  const OperatorTiling& tiling = operators[tiles[tile.index()].op.index()];
  // The index of each loop's part consists of digits of the tile index, outermost cut first.
  // `begin` holds this index until all digits are known.
  out.assign(tiling.parts.size(), Interval{0, 0});
  const std::span<Interval> ranges = out;
  std::uint32_t below = tiling.size();
  std::uint32_t index = tile.value - tiling.first;
  for (const LoopCut& cut : tiling.cuts) {
    below /= cut.count;
    std::int64_t& part = ranges[cut.dim].begin;
    part = part * cut.count + index / below;
    index %= below;
  }
  auto parts = tiling.parts.begin();
  for (Interval& range : ranges) { // every loop has parts, most only one
    range = range.begin == 0 ? *parts->begin() : (*parts)[static_cast<std::size_t>(range.begin)];
    ++parts;
  }
}

OperatorTiling uncut(const LoopNest& nest) {
  OperatorTiling tiling;
  tiling.last = 1;
  tiling.parts.reserve(nest.dims.size());
  for (const LoopDim& dim : nest.dims)
    tiling.parts.push_back({{0, dim.size}});
  return tiling;
}

void cut(OperatorTiling& tiling, const SplitFactor& factor) {
  if (factor.parts == 1)
    return;
  std::vector<Interval> finer;
  finer.reserve(tiling.parts[factor.dim].size() * static_cast<std::size_t>(factor.parts));
  for (const Interval whole : tiling.parts[factor.dim]) {
    for (std::int64_t i = 0; i < factor.parts; ++i) {
      const Interval part = even_part(whole.size(), factor.parts, i);
      finer.push_back({whole.begin + part.begin, whole.begin + part.end});
    }
  }
  tiling.parts[factor.dim] = std::move(finer);
  tiling.cuts.push_back(
      {static_cast<std::uint32_t>(factor.dim), static_cast<std::uint32_t>(factor.parts)});
}

std::int64_t shortest_part(const OperatorTiling& tiling, std::size_t dim) {
  const auto& parts = tiling.parts[dim];
  return std::ranges::min_element(parts, [](Interval a, Interval b) { return a.size() < b.size(); })
      ->size();
}

std::int64_t tile_count(const OperatorTiling& tiling) {
  std::int64_t count = 1;
  for (const LoopCut& cut : tiling.cuts)
    count = checked_multiply(count, cut.count);
  return count;
}

void append_tiles(TileGraph& tiles, OpId op, OperatorTiling tiling, std::span<const CoreId> cores) {
  tiling.first = static_cast<std::uint32_t>(tiles.tiles.size());
  tiling.last = tiling.first + static_cast<std::uint32_t>(tile_count(tiling));
  std::uint32_t slice = 1; // tiles per slice
  for (std::size_t i = tiling.slice_cuts; i < tiling.cuts.size(); ++i)
    slice *= tiling.cuts[i].count;
  for (std::uint32_t i = 0; i < tiling.size(); ++i)
    tiles.tiles.push_back({op, cores[i % slice % cores.size()]});
  tiles.operators.push_back(std::move(tiling));
}

void rank_in_order(TileGraph& tiles) {
  tiles.rank.resize(tiles.tiles.size());
  std::iota(tiles.rank.begin(), tiles.rank.end(), 0U);
  tiles.stack_of.resize(tiles.operators.size());
  std::iota(tiles.stack_of.begin(), tiles.stack_of.end(), 0U);
}

std::int64_t recomputed_macs(const TileGraph& tiles, const Graph& graph) {
  std::int64_t more = 0;
  for (std::size_t i = 0; i < tiles.operators.size(); ++i) {
    const LoopNest& nest = graph.op(OpId(i)).nest;
    if (nest.compute != ComputeKind::mac)
      continue;
    std::int64_t done =
        products(nest); // tiles form a grid: the sum of products is the product of sums
    for (const auto& parts : tiles.operators[i].parts) {
      std::int64_t sum = 0;
      for (const Interval part : parts)
        sum += part.size();
      done = checked_multiply(done, sum);
    }
    more = checked_add(more, done - macs(nest));
  }
  return more;
}

} // namespace monet
