// What the collectives of a rank's step take.
#pragma once

#include "cluster/cost/blocks.hpp"
#include "cluster/cost/layout.hpp"

#include <cstddef>
#include <vector>

namespace monet::cluster_cost {

/// Of an operator before the update: the pass of its block.
PassCost& pass_of(const RankLayout& layout, std::vector<Block>& blocks, std::size_t op);

/// To passes and updates of `blocks`. `host_ns` is what the host takes to launch one.
void add_exchanges(const Cluster& cluster, const ParallelStrategy& strategy,
                   const RankLayout& layout, double host_ns, std::vector<Block>& blocks);

} // namespace monet::cluster_cost
