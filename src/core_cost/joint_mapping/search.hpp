// Best tiles of the best of several structures, and the choice of each technique.
#pragma once

#include "core_cost/joint_mapping/box_bound.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace monet::joint_mapping {

/// Maximum tiles of each product walked one by one when interleaved in different orders: in a
/// search, and with given tiles.
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

/// The fastest choice; ties go to the minimum traffic among those visited. Nothing if no choice
/// fits or is faster than `known`. Exact: splits ranges of tiles, lowest bound first, until no
/// bound is below the best.
std::optional<Choice> best_choice(const PairProblem& problem,
                                  const std::vector<Structure>& structures, const TileSpace& tiles,
                                  std::optional<Wide> known = std::nullopt,
                                  const SearchSpace& space = {});

/// Programs in running order: one if both products run together or only dW runs, otherwise dX and
/// dW.
struct Chosen {
  std::vector<Choice> programs;
  Wide hidden = 0; ///< time that the seam of two programs hides
  Wide time() const;
};

/// The fastest pair of single-product plans, the first from `first`. The seam hides transfers: the
/// first plan's last step computes while the second's first operands arrive, and the second's first
/// step computes while the first's last results leave. Nothing if no pair is faster than `known`.
/// Exact.
std::optional<Chosen> best_sequence(const PairProblem& problem, const std::vector<Structure>& first,
                                    const std::vector<Structure>& second, const TileSpace& tiles,
                                    Wide known);

/// Chooses the programs; throws InfeasibleError if nothing fits.
Chosen choose(const PairProblem& problem, Technique technique, const BackwardOptions& options);

/// dx_major, dw_major or interleave.
Technique by_rule(const PairProblem& problem, MajorRule rule);

} // namespace monet::joint_mapping
