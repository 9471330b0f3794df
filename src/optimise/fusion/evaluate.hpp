// What plans and groups come to on the schedule.
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

  /// Tiles beyond which a plan is not worth its time.
  void limit_tiles(std::size_t most) { max_tiles_ = most; }

  /// InfeasibleError where the plan cannot be scheduled, or has more tiles than that.
  static constexpr std::size_t kMaxTiles = 200'000;
  StepFigures evaluate_or_throw(const FusionPlan& plan, std::size_t max_tiles = kMaxTiles) const;
  StepFigures layer_by_layer() const; ///< whatever lives
  bool fits(const StepFigures& figures) const {
    return problem_.max_live_bytes == 0 || figures.peak_memory_bytes <= problem_.max_live_bytes;
  }
  /// A plan of a group's own step; none where it cannot be scheduled, or has too many tiles.
  std::optional<StepFigures> try_group(const TrainingGraph& step, const FusionPlan& plan) const;
  /// Plans of the whole step, several at a time.
  std::vector<std::optional<StepFigures>> try_all(std::span<const FusionPlan> plans,
                                                  const SearchControl& control) const;

private:
  StepFigures run_step(TilingOptions tiling, std::size_t max_tiles) const;
  StepFigures model(const TrainingGraph& step, TilingOptions tiling, std::size_t max_tiles,
                    TileCostCache* tile_costs) const;

  const FusionProblem& problem_;
  std::unique_ptr<TileCostCache> tile_costs_; ///< of whole steps
  std::size_t max_tiles_ = kMaxTiles;
};

/// Equal for plans that make the same tiles for certain.
std::string key_of(const FusionPlan& plan);

} // namespace monet
