// Tiles on given cores, without the choices of make_tiles().
#pragma once

#include "tiling/shared/grid.hpp"

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
    OperatorTiling tiling = uncut(step.graph.operators()[i].nest);
    cut(tiling, {0, split.parts});
    std::vector<CoreId> cores;
    for (const std::size_t core : split.cores)
      cores.emplace_back(core);
    append_tiles(tiles, OpId(i), std::move(tiling), cores);
  }
  make_edges(tiles, step.graph);
  rank_in_order(tiles);
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
