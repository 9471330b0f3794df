// choose_step(): selects how the operators of a step run: one by one or fused, whichever is best.
// Example:
//   StepFigures best_figures(const TrainingGraph& step, const Chip& chip) {
//     CoreCostCache costs;
//     const StepChoice choice =
//         choose_step(step, chip, {}, {StepMode::automatic, Objective::latency}, costs);
//     return choice.figures;
//   }
#pragma once

#include "monet/model/model_step.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/search.hpp"
#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Mode of running the operators of a step.
enum class StepMode {
  layer_by_layer, ///< operators one by one
  fused,          ///< best of several ways to fuse operators
  automatic,      ///< best of layer by layer and fused
};
std::string_view name_of(StepMode mode);
/// Parses layer-by-layer, fused or auto; nullopt for other names.
std::optional<StepMode> step_mode_named(std::string_view name);

/// How long choose_step() searches for fused plans.
enum class Effort {
  quick,    ///< one plan, selected by estimates, as in explorations: SharedPlans
  normal,   ///< several candidates, then a brief search
  thorough, ///< ten times the effort of the brief search
};
std::string_view name_of(Effort effort);

/// A candidate way to run the step, and its figures.
struct StepCandidate {
  std::string name;
  /// Figures; nullopt if the candidate cannot be scheduled, or if scheduling ended early because it
  /// could not become the best.
  std::optional<StepFigures> figures;
  std::string why_not; ///< reason why it cannot be scheduled
};

/// Result of choose_step().
struct StepChoice {
  TilingOptions tiling; ///< tiling options of the best candidate
  StepFigures figures;  ///< figures of the best candidate
  /// Whether the result is valid; false if options.schedule.hopeless ended the search, after which
  /// only `tried` is valid.
  bool complete = true;
  std::vector<StepCandidate> tried;
  std::int64_t evaluations = 0; ///< schedules of the whole step, including those that ended early
};

/// Data that many chips share when choose_step() runs for one step with the same options.
struct SharedPlans {
  FusionCovers covers;
  mutable KnownSchedules schedules;

  explicit SharedPlans(const TrainingGraph& step, Halo halo = Halo::cached) : covers(step, halo) {}
};

/// Callback for the progress of choose_step(); may be empty.
using StepProgress = std::function<void(const SearchProgress&)>;

/// Options of choose_step().
struct StepChoiceOptions {
  StepMode mode = StepMode::automatic;
  Objective objective = Objective::latency;
  /// Plans that many chips share; may be null. With them, the only fused candidate is one of these
  /// plans.
  const SharedPlans* shared = nullptr;
  StepProgress progress = {};
  Effort effort = Effort::normal; ///< `quick` requires `shared`
};

/// Schedules several candidate ways to run the step and returns the best by the objective (of equal
/// ones, the first).
///
/// Layer by layer has one candidate. The fused candidates are:
/// - the plans of FusionCovers::plans();
/// - these plans on some of the cores (TilingOptions::idle);
/// - the best plan for a part of the images, in turns;
/// - the result of automatic_fusion() for the options, which is the only candidate if the options
///   have stacks or their mapping has slices.
///
/// Scheduling ends early for candidates that cannot become the best. A brief search continues from
/// the best fused candidate, with an effort counted in tiles. If the time limit of a StopScope
/// interrupts it, the best result so far is used. If the options have neither stacks nor a mapping
/// with slices, options.schedule.hopeless is called once, with the figures of the best candidate.
/// Otherwise it is called with lower bounds for the step, however it will run.
///
/// With `choice.shared`, the only fused candidate is one plan of FusionCovers, selected by
/// estimates, and there is no search. For latency, neither this plan nor layer by layer is
/// scheduled if its estimate is worse than the best known value. If no candidate can be scheduled,
/// throws the InfeasibleError of the first. `costs`: core costs found so far, read and extended.
StepChoice choose_step(const TrainingGraph& step, const Chip& chip, const StepOptions& options,
                       const StepChoiceOptions& choice, CoreCostCache& costs);

/// Fused plans to start a search from: results of choose_step() for the objective and for the
/// objective of the cores' mappings, if it differs. If the options have stacks, also results
/// without them. No result of choose_step() with these options is better than the best of these and
/// layer by layer. Plans that cannot be scheduled are omitted.
std::vector<StepChoice> first_ways(const TrainingGraph& step, const Chip& chip,
                                   const StepOptions& options, Objective objective,
                                   CoreCostCache& costs, const StepProgress& progress = {});

} // namespace monet
