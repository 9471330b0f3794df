// The files that an experiment on a cluster names, read.
#pragma once

#include "options/cluster_experiment.hpp"

#include "monet/cluster/cluster_step.hpp"
#include "monet/report/result.hpp"

#include <string>
#include <vector>

namespace monet::cli {

/// The files of an experiment, read.
struct ClusterInputs {
  Cluster cluster;
  ClusterDevice device;
  ClusterWorkload workload;
};

/// One InputError with the problems of all files. InfeasibleError where the cluster cannot have so
/// many devices.
ClusterInputs read_cluster_inputs(const ClusterExperiment& experiment);

/// Files, without options.
Provenance provenance_of(const ClusterExperiment& experiment, const ClusterInputs& inputs);
/// What --set says.
void add_settings(const std::vector<std::string>& settings, Provenance& provenance);

} // namespace monet::cli
