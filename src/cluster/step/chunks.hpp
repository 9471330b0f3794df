// A model's blocks as the parts that stages of a pipeline run.
#pragma once

#include "cluster/cost/blocks.hpp"

#include <cstddef>
#include <vector>

namespace monet::cluster_step {

/// A pass on one device: kernels and collectives one after another, no faster than the host
/// launches them; what may run beside it, where it does, counts as far as it is longer.
struct PassTime {
  double total = 0, exchange = 0, host = 0;
};

PassTime time_of(const cluster_cost::PassCost& pass, bool overlap);

/// True where every part has as many layers as the others: then the parts do not depend on costs.
bool has_even_parts(const cluster_cost::Profile& profile, const ParallelStrategy& strategy);

/// Where in the sequence each part of the model begins, and its end. InfeasibleError with more
/// parts than blocks.
std::vector<std::size_t> part_begins(const cluster_cost::Profile& profile,
                                     const ParallelStrategy& strategy);

} // namespace monet::cluster_step
