// Stages whose devices are not like the others'.
#pragma once

#include "monet/cluster/cluster_step.hpp"

#include <cstdint>
#include <string>

namespace monet::cluster_step {

/// What limits a stage: its ranks wait for each other, and keep as much each.
struct StageDevices {
  double speed = 1;        ///< of the slowest
  std::int64_t memory = 0; ///< of the smallest; 0: not known
};

/// Stage i has the devices from i * data * context * tensor on.
StageDevices devices_of(const Cluster& cluster, const ClusterDevice& device,
                        const ParallelStrategy& strategy, std::int64_t stage);

/// No device of the cluster is faster, or has more memory.
StageDevices best_devices(const Cluster& cluster, const ClusterDevice& device);

/// Why steps of the cluster are not modelled; empty where they are.
std::string unequal_misfit(const Cluster& cluster);

} // namespace monet::cluster_step
