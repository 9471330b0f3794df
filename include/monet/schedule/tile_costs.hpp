// What every tile of a tiling costs on its core.
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace monet {

/// What a tile costs: its problem (which operands pass by) and the cost of it.
struct TileCost {
  const CoreProblem* problem = nullptr;
  const CoreCost* cost = nullptr;
};

/// Costs of tiles: those that cannot differ share a row. Tiles of different operators have
/// different rows. The pointers are valid as long as what made them, or `owner`, lives.
struct TileCosts {
  std::vector<std::uint32_t> row_of; ///< per tile, of the step or of one operator
  std::vector<TileCost> rows;        ///< both pointers of every row are set
  std::shared_ptr<const void> owner;
};

/// The CoreProblem of a tile with these ranges on its core: operands larger than what the core's
/// top memory can hold beside the others are marked off-chip, largest first.
CoreProblem core_problem(const Tile& tile, std::span<const Interval> ranges,
                         const TrainingGraph& step, const Chip& chip);
/// The same problem with other operands off-chip, where that lets the others stay: core_problem()
/// first, then every smallest set of operands to stream, then all of them. One when nothing streams
/// or the operator is not an array's.
std::vector<CoreProblem> streaming_choices(const Tile& tile, std::span<const Interval> ranges,
                                           const TrainingGraph& step, const Chip& chip);

/// What the off-chip memory gives `core` while all cores of `together` stream: the least share of a
/// link or port.
OffchipRate offchip_rate(const Chip& chip, CoreId core, const std::vector<CoreId>& together);

/// The costs of all tiles, each distinct problem solved once, by `jobs` threads; of several ways to
/// stream operands the one with the best merit. InfeasibleError with the operator where tiles have
/// no mapping.
TileCosts tile_costs(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                     CoreCostCache& costs, const CoreCostOptions& options = {}, int jobs = 1);

/// tile_costs() for many tilings of one step on one chip, from any thread: what the tiles of an
/// operator cost is found once for each way in which it is cut and put on cores.
class TileCostCache {
public:
  /// Keeps references to step, chip and costs.
  TileCostCache(const TrainingGraph& step, const Chip& chip, CoreCostCache& costs,
                const CoreCostOptions& options = {}, int jobs = 1);
  ~TileCostCache();
  TileCostCache(const TileCostCache&) = delete;
  TileCostCache& operator=(const TileCostCache&) = delete;

  /// Equal to tile_costs() of the same; throws as that does. Valid as long as this object.
  TileCosts of(const TileGraph& tiles);
  /// Of the operator's tiles alone; null where some tile has no mapping.
  std::shared_ptr<const TileCosts> of(const TileGraph& tiles, OpId op);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace monet
