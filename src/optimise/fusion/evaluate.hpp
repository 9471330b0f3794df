// Scheduled figures of fusion plans and groups.
#pragma once

#include "monet/optimise/fusion.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// Tiles and schedules plans.
class FusionEvaluator {
public:
  explicit FusionEvaluator(const FusionProblem& problem);

  /// Sets the maximum number of tiles of a plan for try_group() and try_all().
  void limit_tiles(std::size_t most) { max_tiles_ = most; }

  /// Default for the maximum number of tiles of a plan.
  static constexpr std::size_t kMaxTiles = 200'000;
  /// Schedules a plan. Throws InfeasibleError if that fails, if the plan has more than `max_tiles`
  /// tiles, or if its live bytes exceed the limit.
  StepFigures evaluate_or_throw(const FusionPlan& plan, std::size_t max_tiles = kMaxTiles) const;
  StepFigures layer_by_layer() const; ///< without limits of tiles and live bytes
  bool fits(const StepFigures& figures) const {
    return problem_.max_live_bytes == 0 || figures.peak_memory_bytes <= problem_.max_live_bytes;
  }
  /// Figures of a plan of a group's step; nothing if it cannot be scheduled or has too many tiles.
  std::optional<StepFigures> try_group(const TrainingGraph& step, const FusionPlan& plan) const;
  /// Figures of plans of the whole step, evaluated in parallel.
  std::vector<std::optional<StepFigures>> try_all(std::span<const FusionPlan> plans,
                                                  const SearchControl& control) const;

private:
  StepFigures run_step(TilingOptions tiling, std::size_t max_tiles) const;
  StepFigures model(const TrainingGraph& step, TilingOptions tiling, std::size_t max_tiles,
                    TileCostCache* tile_costs) const;

  const FusionProblem& problem_;
  std::unique_ptr<TileCostCache> tile_costs_; ///< costs of tiles in whole steps
  std::size_t max_tiles_ = kMaxTiles;
};

/// Key that is equal only for plans that certainly have the same tiles.
std::string key_of(const FusionPlan& plan);

} // namespace monet
