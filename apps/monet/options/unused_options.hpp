// Warnings of options that change nothing of what they are given for.
#pragma once

#include "options/cluster_experiment.hpp"

#include "monet/cluster/cluster_step.hpp"
#include "monet/training/training.hpp"

namespace monet::cli {

/// make_training_graph(), with a warning for each option of the training file without which the
/// step is the same.
TrainingGraph make_step(const Graph& network, const TrainingOptions& options,
                        const SourceLoc& where);

/// Warns of each key of `parallel`, `cluster`, `workload` and `training` without which the step of
/// the cluster has the same figures. On chips `training` is looked at for its operators alone.
void warn_of_unused(const ClusterExperiment& experiment, const ClusterInputs& inputs,
                    const ClusterStep& step);

} // namespace monet::cli
