// How the operators of a step run: one by one, fused, or whichever is best.
#pragma once

#include "monet/model/model_step.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/known_schedules.hpp"
#include "monet/tiling/covers.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

enum class StepMode {
  layer_by_layer, ///< operators one by one
  fused,          ///< the best of several ways to fuse them
  automatic,      ///< the best of these and layer by layer
};
std::string_view name_of(StepMode mode);
/// The mode called layer-by-layer, fused or auto.
std::optional<StepMode> step_mode_named(std::string_view name);

/// A way that was tried.
struct StepCandidate {
  std::string name;
  /// None where it cannot be scheduled, or was given up because it could not become the best.
  std::optional<StepFigures> figures;
  std::string why_not; ///< where it cannot be scheduled
};

struct StepChoice {
  TilingOptions tiling; ///< makes the best one's tiles
  StepFigures figures;  ///< of the best
  /// False where options.schedule.hopeless has given up; then nothing but `tried` counts.
  bool complete = true;
  std::vector<StepCandidate> tried;
  std::int64_t evaluations = 0; ///< schedules of the whole step, those given up included
};

/// What many chips share for which one step is chosen with the same options.
struct SharedPlans {
  FusionCovers covers;
  mutable KnownSchedules schedules;

  explicit SharedPlans(const TrainingGraph& step, Halo halo = Halo::cached) : covers(step, halo) {}
};

/// Told how far the choice is; may be empty.
using StepProgress = std::function<void(const SearchProgress&)>;

/// Schedules a handful of ways to run the step, and takes the best by the objective, the first of
/// equals. Layer by layer there is one way; fused these: FusionCovers::plans(), the same on some of
/// the cores (TilingOptions::idle), the best way for a part of the images in turns, and what
/// automatic_fusion() makes of the options; where the options give stacks, or their mapping gives
/// slices, the latter alone. What cannot become the best is given up half-way. From the best fused
/// way a brief search goes on, at an effort counted in tiles; where the limit of time of a
/// StopScope ends that, what is known counts. Where ways are free, options.schedule.hopeless is
/// asked once, with the figures of the best, else with floors of the step, whichever way it will
/// run.
///
/// `shared`, for many chips, may be null. With it there is one plan of FusionCovers, from estimates
/// alone, by latency neither that nor layer by layer is tried where what is expected of it is above
/// what is known, and there is no search. InfeasibleError, the first way's, where none can be
/// scheduled.
StepChoice choose_step(const TrainingGraph& step, const Chip& chip, const StepOptions& options,
                       StepMode mode, Objective objective, const ModelContext& context,
                       const SharedPlans* shared = nullptr, const StepProgress& progress = {});

/// Fused ways to begin a search with: what choose_step() finds by the objective, by that of the
/// cores' mappings where it is another, and, where the options give stacks, without them. With
/// layer by layer, none of the answers of choose_step() with these options is better. Without those
/// that cannot be scheduled.
std::vector<StepChoice> first_ways(const TrainingGraph& step, const Chip& chip,
                                   const StepOptions& options, Objective objective,
                                   CoreCostCache& costs, const StepProgress& progress = {});

} // namespace monet
