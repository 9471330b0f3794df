// The step of a rank in a pipeline: which part of the model an operator belongs to, in which pass
// it runs, and the step of some of its operators.
#pragma once

#include "monet/cluster/partition.hpp"
#include "monet/cluster/pipeline.hpp"

#include <cstdint>
#include <functional>
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

/// The step of some of a step's operators.
struct StepPart {
  TrainingGraph step;
  std::vector<TensorId> of;          ///< by tensor: that of the whole step
  std::map<TensorId, TensorId> made; ///< the other way round
};
/// The tensor of the whole step that an operator of a part reads in place of another.
using StandIn = std::function<TensorId(TensorId, OpId reader)>;
/// Takes the operators in the given order; what others compute for them is an input.
StepPart part_of_step(const TrainingGraph& step, std::span<const OpId> ops,
                      const StandIn& stand_in = {});

} // namespace monet
