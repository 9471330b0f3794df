// What waits in the host's memory: the ways between it and the device.
#pragma once

#include "cluster/cost/blocks.hpp"

#include <string>

namespace monet::cluster_step {

/// The cluster's, else the one that its device's table has; without bandwidth there is none.
HostLink host_link_of(const Cluster& cluster, const ClusterDevice& device);

/// Why the strategy's offload is impossible; empty where it is not.
std::string offload_misfit(const HostLink& link, const ParallelStrategy& strategy);

/// The same blocks with the copies that a strategy's offload makes. The link carries as much each
/// way at once: what a block stores goes out behind its forward pass while the next one computes,
/// and comes in before its backward pass; states come in and go out around the update.
cluster_cost::Profile offloaded(const cluster_cost::Profile& profile, const HostLink& link,
                                const ParallelStrategy& strategy);

} // namespace monet::cluster_step
