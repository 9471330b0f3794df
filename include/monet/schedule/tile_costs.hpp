// tile_costs(): the cost of every tile of a tiling on its core.
// Example:
//   Picojoules tile_energy(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip) {
//     CoreCostCache cache;
//     const TileCosts costs = tile_costs(tiles, step, chip, cache);
//     Picojoules sum;
//     for (const std::uint32_t row : costs.row_of)
//       sum += costs.rows[row].cost->energy();
//     return sum;
//   }
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace monet {

/// Cost of a tile, with its problem, which marks the operands that stream.
struct TileCost {
  const CoreProblem* problem = nullptr;
  const CoreCost* cost = nullptr;
};

/// Costs of tiles; tiles whose costs cannot differ share a row. Tiles of different operators have
/// different rows. The pointers are valid as long as the object that made them, or `owner`, exists.
struct TileCosts {
  /// Index into `rows` per tile, of the step or of one operator.
  std::vector<std::uint32_t> row_of;
  std::vector<TileCost> rows; ///< both pointers of every row are set
  std::shared_ptr<const void> owner;
};

/// Makes the CoreProblem of a tile with these ranges on its core. If the operands do not fit into
/// the core's top memory together, the largest are marked off-chip until the rest fits.
CoreProblem core_problem(const Tile& tile, std::span<const Interval> ranges,
                         const TrainingGraph& step, const Chip& chip);
/// Variants of a tile's problem with different operands off-chip. The first is core_problem(). The
/// next stream every smallest set of operands with which the others fit; for pairs of gradients,
/// every such set. The last streams all operands. There is a single variant if nothing streams, for
/// operators other than products, and for more than 4 operands (5 in pairs of gradients).
std::vector<CoreProblem> streaming_choices(const Tile& tile, std::span<const Interval> ranges,
                                           const TrainingGraph& step, const Chip& chip);

/// Off-chip bandwidth of `core` while all cores of `together` stream: the minimum of its shares of
/// links and ports.
OffchipRate offchip_rate(const Chip& chip, CoreId core, const std::vector<CoreId>& together);

/// Computes the costs of all tiles. Each distinct problem is solved once, by `jobs` threads. The
/// way to stream operands is the best of streaming_choices() by options.objective. Throws
/// InfeasibleError with the operator if tiles have no mapping.
TileCosts tile_costs(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                     CoreCostCache& costs, const CoreCostOptions& options = {}, int jobs = 1);

/// Computes tile_costs() for many tilings of one step on one chip. The costs of an operator's tiles
/// are computed once for each partition and placement. Thread-safe.
class TileCostCache {
public:
  /// Keeps references to step, chip and costs.
  TileCostCache(const TrainingGraph& step, const Chip& chip, CoreCostCache& costs,
                const CoreCostOptions& options = {}, int jobs = 1);
  ~TileCostCache();
  TileCostCache(const TileCostCache&) = delete;
  TileCostCache& operator=(const TileCostCache&) = delete;

  /// Result of tile_costs() for these tiles, with the same exceptions. Valid as long as this
  /// object.
  TileCosts of(const TileGraph& tiles);
  /// Costs of one operator's tiles; null if some tile has no mapping.
  std::shared_ptr<const TileCosts> of(const TileGraph& tiles, OpId op);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace monet
