// From the costs of blocks to a step of the whole cluster.
#pragma once

#include "cluster/cost/blocks.hpp"

#include <cstdint>

namespace monet::cluster_step {

/// `profile` is the strategy's. `tokens` are those of a sample; 0 where samples are no sequences.
ClusterStep build_step(const Cluster& cluster, const ClusterDevice& device,
                       const cluster_cost::Profile& profile, const ParallelStrategy& strategy,
                       std::int64_t tokens);

} // namespace monet::cluster_step
