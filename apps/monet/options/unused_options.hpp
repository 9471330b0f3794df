// Warnings about options that have no effect.
#pragma once

#include "options/cluster_experiment.hpp"

#include "monet/cluster/cluster_step.hpp"
#include "monet/training_graph/training.hpp"

namespace monet::cli {

/// Builds the training graph (make_training_graph()), and warns about each option of the training
/// file that does not change it.
TrainingGraph make_step(const Graph& network, const TrainingOptions& options,
                        const SourceLoc& where);

/// Warns about each key of `parallel`, `cluster`, `workload` and `training` that does not change
/// the figures of the step. For chips, keys of `training` are compared by the operators of the
/// step.
void warn_of_unused(const ClusterExperiment& experiment, const ClusterInputs& inputs,
                    const ClusterStep& step);

} // namespace monet::cli
