// Tiles on given cores, without the choices of make_tiles().
#pragma once

#include "tiling/edges.hpp"
#include "tiling/split.hpp"

#include "monet/tiling/tiling.hpp"

#include <vector>

namespace monet::testing {

struct HandSplit {
  std::int64_t parts = 1; ///< of the operator's first loop
  std::vector<std::size_t> cores{0};
};

inline TileGraph hand_tiles(const TrainingGraph& step, const std::vector<HandSplit>& splits) {
  TileGraph tiles;
  for (std::size_t i = 0; i < step.graph.operators().size(); ++i) {
    const HandSplit& split = splits[i];
    const SplitFactor factor{0, split.parts};
    const auto first = static_cast<std::uint32_t>(tiles.tiles.size());
    std::size_t at = 0;
    for (auto& ranges : split_ranges(step.graph.operators()[i].nest, {&factor, 1})) {
      const CoreId core(split.cores[at++ % split.cores.size()]);
      tiles.tiles.push_back({OpId(i), std::move(ranges), core});
    }
    tiles.tiles_of.emplace_back(first, static_cast<std::uint32_t>(tiles.tiles.size()));
  }
  tiles.edges = make_edges(tiles, step.graph);
  return tiles;
}

/// One tile per operator.
inline TileGraph whole_tiles(const TrainingGraph& step, const std::vector<std::size_t>& cores) {
  std::vector<HandSplit> splits;
  for (const std::size_t core : cores)
    splits.push_back({1, {core}});
  return hand_tiles(step, splits);
}

} // namespace monet::testing
