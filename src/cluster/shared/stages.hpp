// Partition of a rank's step into pipeline parts: the part and pass of each operator, and the
// extraction of some operators as a step.
#pragma once

#include "monet/cluster/partition.hpp"
#include "monet/cluster/pipeline.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace monet {

/// Place of an operator in a pipeline: its part, pass and micro-batch.
struct OperatorPlace {
  std::int64_t part = 0; ///< index of the part, in the order of the data
  PipelinePass pass = PipelinePass::forward;
  std::int64_t micro_batch = 0;
  /// For an operator of the update phase: the parts that read its weight in their passes. Each has
  /// a copy of the weight and updates it.
  std::vector<std::int64_t> updates;
};

/// Partitions a step, with all its micro-batches, into parts. `begins` holds the first operator of
/// each part, counted among those of the first forward pass; it starts with 0 and ascends. An
/// operator belongs to the input gradient if an earlier part or another input gradient needs its
/// result. It belongs to the weight pass if only gradients of parameters need it.
std::vector<OperatorPlace> place_operators(const TrainingGraph& step,
                                           std::span<const std::int64_t> begins);
/// Whether an operator repeats a computation or an exchange of the forward part.
bool is_repeated(const Operator& op);
/// Number of operators in the first forward pass.
std::int64_t forward_operators(const TrainingGraph& step);

/// A step made of some operators of a whole step.
struct StepPart {
  TrainingGraph step;
  std::vector<TensorId> of;          ///< tensor of the whole step, by tensor of this one
  std::map<TensorId, TensorId> made; ///< tensor of this step, by tensor of the whole one
};
/// Function that returns the tensor of the whole step that `reader` reads in place of another.
using StandIn = std::function<TensorId(TensorId, OpId reader)>;
/// Extracts operators, in the given order, as a step. Results of other operators become its inputs.
StepPart part_of_step(const TrainingGraph& step, std::span<const OpId> ops,
                      const StandIn& stand_in = {});

} // namespace monet
