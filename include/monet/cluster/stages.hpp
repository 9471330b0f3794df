// The step of a rank cut into the stages of a pipeline: which part of the model an operator belongs
// to, in which pass it runs, and what each stage runs in its schedule's order.
#pragma once

#include "monet/cluster/partition.hpp"
#include "monet/cluster/pipeline.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace monet {

/// Where an operator of a step runs.
struct OperatorPlace {
  std::int64_t part = 0; ///< of the model, in the order of the data
  PipelinePass pass = PipelinePass::forward;
  std::int64_t micro_batch = 0;
  /// Of the update phase: the parts that read the weight in their passes. Each of them keeps it and
  /// updates its own copy.
  std::vector<std::int64_t> updates;
};

/// Cuts a step, with all its micro-batches, into parts. `begins`: the first operator of each part,
/// counted among those of the first forward pass; the first is 0, they ascend. An input gradient is
/// what an earlier part or another input gradient needs; what only gradients of parameters need is
/// the weight pass.
std::vector<OperatorPlace> place_operators(const TrainingGraph& step,
                                           std::span<const std::int64_t> begins);
/// Computes again, or exchanges again, what the forward part has.
bool is_repeated(const Operator& op);
/// Operators of the first forward pass.
std::int64_t forward_operators(const TrainingGraph& step);

/// A tensor that one stage makes and another reads.
struct StageTransfer {
  TensorId tensor;       ///< of the stage's own step
  std::int64_t peer = 0; ///< stage
};

/// What one stage runs, in its order; tensors of other stages are inputs or outputs of its step.
struct StageStep {
  TrainingGraph step;
  std::vector<TensorId> of;            ///< by tensor: that of the rank's step
  std::map<TensorId, TensorId> made;   ///< the other way round
  std::vector<std::int64_t> part;      ///< by operator
  std::vector<PipelinePass> pass;      ///< by operator; of updates it says nothing
  std::vector<StageTransfer> receives; ///< in no order
  std::vector<StageTransfer> sends;    ///< by operator that makes the tensor
};

/// The step of some of a step's operators, in that order: what others make for them is fed in.
TrainingGraph step_of(const TrainingGraph& step, std::span<const OpId> ops);

/// One for each stage. What a part recomputes is for that part alone: another keeps what it was
/// sent in the forward pass, since it needs it before. `places` as place_operators() says for this
/// step; the step's micro-batches are the schedule's. InternalError where why_not() has a reason or
/// the parts are not stages * chunks.
std::vector<StageStep> stage_steps(const TrainingGraph& step, std::span<const OperatorPlace> places,
                                   PipelineKind kind, std::int64_t stages, std::int64_t chunks);

} // namespace monet
