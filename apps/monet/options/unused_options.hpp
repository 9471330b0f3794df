// Warnings about options without an effect.
#pragma once

#include "options/cluster_experiment.hpp"

#include "monet/cluster/cluster_step.hpp"
#include "monet/training_graph/training.hpp"

namespace monet::cli {

/// make_training_graph(), with a warning for each option of the training file without which the
/// step is the same.
TrainingGraph make_step(const Graph& network, const TrainingOptions& options,
                        const SourceLoc& where);

/// Warns about each key of `parallel`, `cluster`, `workload` and `training` without which the step
/// has the same figures. For chips, keys of `training` are compared by the operators of the step.
void warn_of_unused(const ClusterExperiment& experiment, const ClusterInputs& inputs,
                    const ClusterStep& step);

} // namespace monet::cli
