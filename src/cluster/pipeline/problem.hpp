// What the simulation and the fast evaluation read of a problem in the same way.
#pragma once

#include "monet/cluster/pipeline.hpp"

#include <cstddef>
#include <span>

namespace monet {

/// InternalError where no schedule is asked for, or its numbers are none that can be added up.
void check_pipeline_problem(const PipelineProblem& problem);

inline const ChunkCost& cost_of(const PipelineProblem& problem, std::int64_t stage,
                                std::int64_t chunk) {
  return problem.costs[static_cast<std::size_t>(stage * problem.chunks + chunk)];
}
/// From part `part` to the next one, and back. 0 where none are given, or both are on one stage.
Nanoseconds send_between(const PipelineProblem& problem, std::int64_t part, bool gradient);

/// The recomputation comes first. Without the weight gradient where that is a pass of its own.
inline Nanoseconds backward_time(const ChunkCost& cost) {
  return cost.recompute + cost.backward_input;
}

/// What follows the last pass of a stage, waiting for others left out.
Nanoseconds tail_time(const PipelineProblem& problem, std::int64_t stage);

/// When stages are through with the step, into `finish`, from when they begin and end their passes.
PipelineTimes finish_step(const PipelineProblem& problem, std::span<const Nanoseconds> begin,
                          std::span<const Nanoseconds> end, std::span<Nanoseconds> finish);

} // namespace monet
