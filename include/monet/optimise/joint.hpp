// Fusion, checkpointing and allocation of one step together: each search on what the others made of
// the step, judged by the schedule.
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

struct JointOptions {
  Objective objective = Objective::latency;
  /// On the most bytes that live at once in the schedule, every tensor counted once: made from the
  /// base schedule's peak. Empty: no limit.
  std::function<std::int64_t(std::int64_t)> budget;
  TilingOptions tiling; ///< the mapping, and how halos are treated
  ScheduleOptions schedule;
  std::int64_t levels = 6; ///< amounts of memory, of either measure, that plans are made for
  std::int64_t plan_effort = 30'000'000; ///< of each, see RecomputeSearchOptions
  std::int64_t rounds = 2; ///< in which plans are made anew with the costs of the best schedule
  /// Of the search for groups of the step as it is, as optimise_fusion() alone makes it; all others
  /// together have as many evaluations. Of 0 evaluations: none.
  FusionOptions fusion;
  /// Of the search for cores of the better of layer by layer and fused, as search_allocation()
  /// alone makes it; all others together have half as many. 0: none.
  std::int64_t allocation_evaluations = 2000;
  CheckpointOptions checkpointing; ///< of the plan for the budget itself
};

/// One way to run the step.
struct JointPoint {
  std::string name;
  std::shared_ptr<const TrainingGraph> step; ///< with what runs again as operators
  std::vector<OpId> runs; ///< of the operators of the step given; empty: each once, in order
  std::shared_ptr<const CoreAllocation> allocation; ///< null: make_tiles() chooses
  TilingOptions tiling;                             ///< points into `allocation`
  Priority priority = Priority::latency;
  StepFigures figures; ///< model_step() of it
};

struct JointResult {
  /// Layer by layer, as it is; the best fused; the best recomputed within the budget, layer by
  /// layer; and the best of everything, which is within the budget. A corner with
  /// recomputation that nothing within the budget was found for is the one with the least peak; the
  /// budget does not count for `fused` where nothing without recomputation is within it.
  JointPoint base, fused, checkpointed, both;
  std::optional<std::int64_t> budget_bytes;
  struct Trial {
    std::string name;
    StepFigures figures;
  };
  std::vector<Trial> trials;    ///< in the order they were made; of the parts their fronts
  std::int64_t evaluations = 0; ///< schedules of the whole step
  Certificate found;            ///< best: of `both`

  bool within_budget(const StepFigures& figures) const {
    return !budget_bytes || figures.peak_memory_bytes <= *budget_bytes;
  }
};

/// What is tried does not depend on the budget, which chooses from it, but for one plan of
/// recomputation, checkpoint_front()'s for the budget itself. So a larger budget has no worse
/// answer, unless that plan is the answer for the smaller one. Never worse than
/// optimise_fusion() with options.fusion, where its answer is within the budget, than
/// search_allocation() with as many evaluations, likewise, and than checkpoint_front()'s plan as
/// choose_step() and the priorities make it run. The same answer for any number of jobs; cut short,
/// the best of what was tried, and no worse than choose_step() in any mode, where that is within
/// the budget. Without a budget the search for groups comes first.
///
/// InfeasibleError where nothing is within the budget, with whether that is proven and the least
/// peak that was found, and where not even the base can be scheduled. Stopped where control.stop
/// ended the search before anything was within the budget.
///
/// The bound holds for every way to run the step: any recomputation, fusion and allocation.
JointResult optimise_jointly(const TrainingGraph& step, const Chip& chip,
                             const JointOptions& options, const SearchControl& control);

} // namespace monet
