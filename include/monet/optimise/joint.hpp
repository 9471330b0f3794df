// Fusion, checkpointing and allocation of one step together: each search on what the others made of
// the step, judged by the schedule.
#pragma once

#include "monet/model/model_step.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <functional>
#include <memory>
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
  std::int64_t levels = 6; ///< limits of live memory for which a plan of recomputation is tried
  std::int64_t plan_effort = 30'000'000; ///< of each, see RecomputeSearchOptions
  std::int64_t rounds = 2; ///< in which plans are made anew with the costs of the best schedule
  std::int64_t fusion_evaluations = 100;    ///< of a search for groups, see FusionOptions; 0: none
  std::int64_t allocation_evaluations = 60; ///< of one for cores; 0: none
};

/// One way to run the step, modelled.
struct JointPoint {
  std::string name;
  std::shared_ptr<const TrainingGraph> step; ///< with what runs again as operators
  std::vector<OpId> runs; ///< of the operators of the step given; empty: each once, in order
  std::shared_ptr<const CoreAllocation> allocation; ///< null: make_tiles() chooses
  TilingOptions tiling;                             ///< points into `allocation`
  Priority priority = Priority::latency;
  ModelledStep modelled;
};

struct JointResult {
  /// Layer by layer, as it is; the best fused; the best recomputed within the budget, layer by
  /// layer; and the best of everything within the budget. A corner with
  /// recomputation that nothing within the budget was found for is the one with the least peak; the
  /// budget does not count for `fused` where nothing without recomputation is within it.
  JointPoint base, fused, checkpointed, both;
  std::int64_t budget_bytes = 0; ///< 0: none
  struct Trial {
    std::string name;
    StepFigures figures;
  };
  std::vector<Trial> trials; ///< in the order they were made
  Certificate found;         ///< best: of `both`; infinite when it is above the budget
};

/// Searches within `options`. Never worse than fusion alone or recomputation alone, by the
/// schedule. The same answer for any number of jobs; cut short, the best of what was tried, which
/// is the base at least. InfeasibleError when not even the base can be scheduled.
///
/// The bound holds for every way to run the step: any recomputation, fusion and allocation.
JointResult optimise_jointly(const TrainingGraph& step, const Chip& chip,
                             const JointOptions& options, const SearchControl& control);

} // namespace monet
