// The step of one rank of a strategy, and its blocks.
#pragma once

#include "monet/cluster/cluster_step.hpp"
#include "monet/cluster/stages.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace monet::cluster_cost {

/// One micro-batch of a rank.
struct RankLayout {
  RankStep ranks;
  std::vector<OperatorPlace> places; ///< parts are blocks
  std::vector<std::string> names;    ///< of blocks
  std::vector<std::size_t> sequence; ///< of the model: which block comes when
  std::set<TensorId> causal_masks;   ///< of the rank's step
};

/// Which sizes of the network a strategy does not divide, with numbers; empty where all fits.
std::string sizes_misfit(const ClusterWorkload& workload, const ParallelStrategy& strategy);

/// Makes the network, with no more layers than differ, its training step, and divides it. The
/// strategy divides its sizes.
RankLayout lay_out(const ClusterWorkload& workload, const ParallelStrategy& strategy);

} // namespace monet::cluster_cost
