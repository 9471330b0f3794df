// Helpers of a pipeline problem that the simulation (simulate.cpp) and the fast evaluation
// (times.cpp) share, and the compiled schedules of the fast evaluation.
#pragma once

#include "monet/cluster/pipeline.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Throws InternalError if the problem has no valid schedule, vectors of a wrong length, negative
/// costs, or costs whose sum overflows 64 bits.
void check_pipeline_problem(const PipelineProblem& problem);

inline const ChunkCost& cost_of(const PipelineProblem& problem, std::int64_t stage,
                                std::int64_t chunk) {
  return problem.costs[static_cast<std::size_t>(stage * problem.chunks + chunk)];
}
/// Nanoseconds of a send from part `part` to the next one, or of the gradient back. 0 if the
/// problem has no sends, or if both parts are on one stage.
Nanoseconds send_between(const PipelineProblem& problem, std::int64_t part, bool gradient);

/// Nanoseconds of a backward pass without its weight gradient: recomputation, then input gradient.
inline Nanoseconds backward_time(const ChunkCost& cost) {
  return cost.recompute + cost.backward_input;
}

/// Nanoseconds after the last pass of a stage, without waiting for other stages.
Nanoseconds tail_time(const PipelineProblem& problem, std::int64_t stage);

/// Computes the times of a step from the begin and end of each stage's passes. Writes the time at
/// which each stage finishes to `finish`.
PipelineTimes finish_step(const PipelineProblem& problem, std::span<const Nanoseconds> begin,
                          std::span<const Nanoseconds> end, std::span<Nanoseconds> finish);

struct PipelineShape {
  PipelineKind kind = PipelineKind::one_f_one_b;
  std::int64_t stages = 1, chunks = 1, micro_batches = 1;
  friend auto operator<=>(const PipelineShape&, const PipelineShape&) = default;
};

/// One pass. If the schedule does not split backward passes, one pass computes both gradients.
struct CompiledPass {
  std::uint32_t input;  ///< slot of the arrival that it waits for; kNoInput for none
  std::uint32_t output; ///< slot of the arrival that it sends; kNoOutput for none
  std::uint32_t kind;   ///< (stage * chunks + chunk) * 3 + pass
  std::uint16_t stage;
  std::uint16_t link; ///< sending link: 1 + 2 * stage, plus 1 backwards; kNoLink for none
};

/// A schedule's shape as a list in which every pass comes after the passes that it waits for, for
/// any costs. It is compiled once per shape, then evaluated from front to back.
struct CompiledPipeline {
  static constexpr std::uint32_t kNoInput = 0, kNoOutput = 1;
  static constexpr std::uint16_t kNoLink = 0;
  std::vector<CompiledPass> passes;
  std::uint32_t slots = 2; ///< count; a slot is reused once its arrival has been read
  /// The index in `passes` of stage i's pass n, at [i][n]. Empty unless requested.
  std::vector<std::vector<std::uint32_t>> places;
};

CompiledPipeline compile_pipeline(const PipelineShape& shape, bool with_places);

/// The repetition in the orders of a schedule: each `step` of additional micro-batches adds one
/// round to every stage. A pass of round r waits only for passes of rounds r - reach to r + reach.
struct PipelineRounds {
  std::int64_t step = 1;         ///< micro-batches per round
  std::int64_t first = 0, count; ///< rounds [first, first + count) that all stages have
  std::int64_t reach = 1;
};
/// The rounds of a schedule. GPipe has none, because its phases grow with the micro-batches.
PipelineRounds rounds_of(const PipelineShape& shape);
/// The index of the first pass and the number of passes of a round, in the compiled order of a
/// stage.
struct RoundPlace {
  std::int64_t first = 0, passes = 0;
};
RoundPlace round_place(const PipelineShape& shape, std::int64_t stage, std::int64_t round);

} // namespace monet
