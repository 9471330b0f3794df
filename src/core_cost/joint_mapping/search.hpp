// The best tiles of the best of several structures, and the choice of each technique.
#pragma once

#include "core_cost/joint_mapping/box_bound.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace monet::joint_mapping {

/// Interleaved in different orders, tiles are walked one by one: so many of each product at most
/// are tried in a search, and with given tiles.
inline constexpr double kMaxEnumerated = 1024;
inline constexpr double kMaxEnumeratedTechnique = 1 << 26;

struct Choice {
  Structure structure;
  Tile tile{};
  Wide time = 0;
  std::int64_t moved = 0; ///< 1/256 bit
};

/// Every tile of the space (see tile_sizes()), or those that divide. With TileTiming::core, at most
/// six a dimension: 1, 4, 16, 64, 256 parts of multiples of the array, and the array's side.
TileSpace searched_tiles(const PairProblem& problem, bool divisors = false);
/// That of the array alone: rows of m, columns of k and of n.
TileSpace array_tiles(const PairProblem& problem);

struct SearchSpace {
  double walked = kMaxEnumerated; ///< steps of one product, of orders that are walked
  /// With a structure, all are there that differ from it in orders and flags.
  bool complete = false;
  bool both_turns = false; ///< each structure also with the other product first
};

/// The fastest choice, of equally fast ones that are met the one that moves least; nothing where
/// none fits, or none is faster than `known`. Exact: ranges of tiles are split, those with the
/// least bound first, until no bound is below the best.
std::optional<Choice> best_choice(const PairProblem& problem,
                                  const std::vector<Structure>& structures, const TileSpace& tiles,
                                  std::optional<Wide> known = std::nullopt,
                                  const SearchSpace& space = {});

/// One program after another: one where both products run together or only dW runs, else dX and dW,
/// in the order in which they run.
struct Chosen {
  std::vector<Choice> programs;
  Wide hidden = 0; ///< of the times of two programs, what their seam hides
  Wide time() const;
};

/// The fastest pair of plans of one product each, the first of `first`, where the seam hides what
/// it can: the last step of the first plan computes while the second plan's first operands come,
/// and the first step of the second while the last results go. Nothing where no pair is faster than
/// `known`. Exact.
std::optional<Chosen> best_sequence(const PairProblem& problem, const std::vector<Structure>& first,
                                    const std::vector<Structure>& second, const TileSpace& tiles,
                                    Wide known);

/// InfeasibleError where nothing fits.
Chosen choose(const PairProblem& problem, Technique technique, const BackwardOptions& options);

/// dx_major, dw_major or interleave.
Technique by_rule(const PairProblem& problem, MajorRule rule);

} // namespace monet::joint_mapping
