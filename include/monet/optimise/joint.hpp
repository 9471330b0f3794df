// optimise_jointly(): optimises fusion, checkpointing and allocation of one step together. Each
// search starts from the results of the others, and schedules decide.
// Example:
//   StepFigures best_within(std::int64_t bytes, const TrainingGraph& step, const Chip& chip) {
//     JointOptions options;
//     options.objective = Objective::energy;
//     options.budget = [bytes](std::int64_t) { return bytes; };
//     return optimise_jointly(step, chip, options, {}).both.figures;
//   }
#pragma once

#include "monet/model/model_step.hpp"
#include "monet/optimise/checkpoint_search.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// Options of optimise_jointly().
struct JointOptions {
  Objective objective = Objective::latency;
  /// Function that returns the budget of live bytes in a schedule, each tensor counted once, for
  /// the peak of the base schedule. Empty: no limit.
  std::function<std::int64_t(std::int64_t)> budget;
  TilingOptions tiling; ///< mapping and halo mode
  ScheduleOptions schedule;
  /// Number of amounts of memory for which plans are made, for either measure of memory.
  std::int64_t levels = 6;
  std::int64_t plan_effort = 30'000'000; ///< of each plan, see RecomputeSearchOptions
  /// Number of rounds; each one after the first makes plans with the costs of the best schedule so
  /// far.
  std::int64_t rounds = 2;
  /// Options of the search for groups of the unmodified step, which optimise_fusion() runs. All
  /// other searches for groups have together the same number of evaluations. 0 evaluations: no such
  /// search.
  FusionOptions fusion;
  /// Evaluations of search_allocation() for the better of layer by layer and fused. All other
  /// searches for allocations have together half that number. 0: no such search.
  std::int64_t allocation_evaluations = 2000;
  CheckpointOptions checkpointing; ///< of the plan for the budget itself
};

/// One way to run the step, and its figures.
struct JointPoint {
  std::string name;
  std::shared_ptr<const TrainingGraph> step; ///< with recomputations as operators
  /// Runs of the original step's operators, in order; empty: each operator once.
  std::vector<OpId> runs;
  std::shared_ptr<const CoreAllocation> allocation; ///< null: make_tiles() selects cores
  TilingOptions tiling;                             ///< points to `allocation`
  Priority priority = Priority::latency;
  StepFigures figures; ///< result of model_step()
};

/// Result of optimise_jointly().
struct JointResult {
  /// Four results. `base`: layer by layer, unmodified. `fused`: the best fused one, which may
  /// exceed the budget if no result without recomputation is within it. `checkpointed`: the best
  /// with recomputation within the budget, layer by layer. `both`: the best of all, within the
  /// budget. If no recomputation is found within the budget, `checkpointed` has the minimum peak.
  JointPoint base, fused, checkpointed, both;
  /// Budget of live bytes; nullopt: no limit.
  std::optional<std::int64_t> budget_bytes;
  /// A schedule that was tried.
  struct Trial {
    std::string name;
    StepFigures figures;
  };
  /// Schedules in the order in which they were tried; each search contributes its front.
  std::vector<Trial> trials;
  std::int64_t evaluations = 0; ///< schedules of the whole step
  Certificate found;            ///< with the value of `both` as best

  /// Whether the peak memory is within the budget.
  bool within_budget(const StepFigures& figures) const {
    return !budget_bytes || figures.peak_memory_bytes <= *budget_bytes;
  }
};

/// Searches for the best combination of recomputation, fusion and allocation.
///
/// The budget selects among candidates and has no influence on them, except for one recomputation
/// plan, checkpoint_front()'s for the budget itself. A larger budget thus has no worse result,
/// unless that plan is the result for the smaller one. If their results are within the budget, the
/// result is no worse than those of optimise_fusion() with options.fusion and search_allocation()
/// with the same evaluations. It is also no worse than checkpoint_front()'s plan, run with
/// choose_step() and all priorities. Without a budget, the search for groups is the first.
///
/// The number of jobs has no influence. An interrupted search returns the best candidate so far,
/// which is no worse than choose_step() in any mode if that is within the budget.
///
/// Throws InfeasibleError if no candidate is within the budget, with the minimum peak found and
/// whether infeasibility is proven. Also throws it if not even the base can be scheduled. Throws
/// Stopped if control.stop ended the search before any candidate was within the budget.
///
/// The bound covers every way to run the step: any recomputation, fusion and allocation.
JointResult optimise_jointly(const TrainingGraph& step, const Chip& chip,
                             const JointOptions& options, const SearchControl& control);

} // namespace monet
