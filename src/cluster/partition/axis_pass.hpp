// One axis of the mesh: the step of a rank along it.
#pragma once

#include "cluster/partition/forms.hpp"

namespace monet::mesh {

/// What a pass has made, and where its tensors come from.
struct AxisStep {
  TrainingGraph step;
  std::vector<Forms::Source> sources;        ///< by tensor of the step
  std::vector<TensorId> rank_numbers;        ///< scalars that hold the rank's number
  std::vector<std::optional<Placement>> own; ///< by tensor of the source: as it was made or begun
};

/// Divides a step with divisors (see with_divisors()) over the axis' ranks, at least 2.
AxisStep divide_along(const TrainingGraph& source, const PassAxis& axis);

} // namespace monet::mesh
