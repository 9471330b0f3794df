// What the simulation and the fast evaluation read of a problem in the same way, and a schedule's
// shape as the fast evaluation has it.
#pragma once

#include "monet/cluster/pipeline.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

struct PipelineShape {
  PipelineKind kind = PipelineKind::one_f_one_b;
  std::int64_t stages = 1, chunks = 1, micro_batches = 1;
  friend auto operator<=>(const PipelineShape&, const PipelineShape&) = default;
};

/// A pass; where backward passes are not split, one for both gradients.
struct CompiledPass {
  std::uint32_t input;  ///< slot of the arrival that it waits for; kNoInput for none
  std::uint32_t output; ///< slot of what it makes; kNoOutput for none
  std::uint32_t kind;   ///< (stage * chunks + chunk) * 3 + pass
  std::uint16_t stage;
  std::uint16_t link; ///< that it sends on: 1 + 2 * stage, plus 1 backwards; kNoLink for none
};

/// A schedule's shape as a list in which every pass comes after those that it waits for, whatever
/// they cost: evaluated from front to back without asking. Made once a shape.
struct CompiledPipeline {
  static constexpr std::uint32_t kNoInput = 0, kNoOutput = 1;
  static constexpr std::uint16_t kNoLink = 0;
  std::vector<CompiledPass> passes;
  std::uint32_t slots = 2; ///< used again once what arrived there is used
  /// The place in `passes` of stage i's pass n at [i][n], where asked for.
  std::vector<std::vector<std::uint32_t>> places;
};

CompiledPipeline compile_pipeline(const PipelineShape& shape, bool with_places);

/// Where the orders of a kind repeat: with one more `step` of micro-batches every stage has one
/// more round. A pass of round r waits for passes of rounds r - reach to r + reach only.
struct PipelineRounds {
  std::int64_t step = 1;         ///< micro-batches a round
  std::int64_t first = 0, count; ///< rounds [first, first + count) that all stages have
  std::int64_t reach = 1;
};
/// No rounds for GPipe, whose phases grow.
PipelineRounds rounds_of(const PipelineShape& shape);
/// The first pass and the number of passes of a stage's round, in its list without splits.
struct RoundPlace {
  std::int64_t first = 0, passes = 0;
};
RoundPlace round_place(const PipelineShape& shape, std::int64_t stage, std::int64_t round);

} // namespace monet
