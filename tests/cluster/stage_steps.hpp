// The steps of the stages of a pipeline, in their schedules' order.
#pragma once

#include "cluster/networks.hpp"
#include "cluster/shared/stages.hpp"

#include "monet/cluster/pipeline.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet::test {

/// A tensor that one stage makes and another reads.
struct StageTransfer {
  TensorId tensor;       ///< of the stage's own step
  std::int64_t peer = 0; ///< stage
};

/// What one stage runs, in its order; tensors of other stages are inputs or outputs of its step.
struct StageStep : StepPart {
  std::vector<StageTransfer> receives; ///< in no order
  std::vector<StageTransfer> sends;    ///< by operator that makes the tensor
};

/// One for each stage. What a part recomputes is for that part alone: another keeps what it was
/// sent in the forward pass, since it needs it before. `places` as place_operators() says for this
/// step; the step's micro-batches are the schedule's. InternalError where why_not() has a reason or
/// the parts are not stages * chunks.
std::vector<StageStep> stage_steps(const TrainingGraph& step, std::span<const OperatorPlace> places,
                                   PipelineKind kind, std::int64_t stages, std::int64_t chunks);
/// The stages of a pipeline whose parts have as many operators each.
std::vector<StageStep> even_stages(const RankStep& ranks, const PipelineCase& pipeline);

} // namespace monet::test
