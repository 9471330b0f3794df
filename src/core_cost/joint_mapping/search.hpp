// The best tiles of the best of several structures.
#pragma once

#include "core_cost/joint_mapping/plan.hpp"
#include "core_cost/joint_mapping/tile_sizes.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace monet::joint_mapping {

/// Interleaved in different orders, tiles are walked one by one: so many of each product at most
/// are tried in a search, and with given tiles.
inline constexpr double kMostWalked = 4096;
inline constexpr double kMostWalkedGiven = 1 << 26;

struct Choice {
  Structure structure;
  Tile tile{};
  Wide time = 0;
  std::int64_t moved = 0; ///< 1/256 bit
};

/// Tiles to choose from, by dimension.
using TileSpace = std::array<TileRanges, kDims>;

/// Every tile of the space (see tile_sizes()), or those that divide. With TileTiming::core, at most
/// five a dimension: 1, 4, 16, ... parts of multiples of the array.
TileSpace searched_tiles(const PairProblem& problem, bool divisors = false);
/// That of the array alone: rows of m, columns of k and of n.
TileSpace array_tiles(const PairProblem& problem);
Tile array_tile(const PairProblem& problem);

/// The fastest choice, of equally fast ones the first found; nothing where none fits, or none is
/// faster than `known`. Exact: ranges of tiles are split, those with the least bound first, until
/// no bound is below the best. `walked`: largest number of steps that is walked. `complete`: with a
/// structure, all that differ from it in orders and flags are there.
std::optional<Choice> best_choice(const PairProblem& problem,
                                  const std::vector<Structure>& structures, const TileSpace& tiles,
                                  std::optional<Wide> known = std::nullopt,
                                  double walked = kMostWalked, bool complete = false);

} // namespace monet::joint_mapping
