// The step of one rank of a strategy, and its division into blocks. Read by the cost models.
#pragma once

#include "cluster/shared/stages.hpp"

#include "monet/cluster/cluster_step.hpp"

#include <set>
#include <string>
#include <vector>

namespace monet::cluster_cost {

/// The step of a rank with one micro-batch, divided into blocks.
struct RankLayout {
  RankStep ranks;
  std::vector<OperatorPlace> places; ///< by operator; parts are blocks
  std::vector<std::string> names;    ///< by block
  std::vector<std::size_t> sequence; ///< the model's blocks in order
  std::set<TensorId> causal_masks;   ///< inputs of the rank's step
};

/// The sizes of the network that a strategy does not divide, with numbers, or empty if all fit.
std::string sizes_misfit(const ClusterWorkload& workload, const ParallelStrategy& strategy);

/// Builds the network with only its distinct layers, and partitions its training step. Requires
/// that sizes_misfit() is empty.
RankLayout lay_out(const ClusterWorkload& workload, const ParallelStrategy& strategy);

} // namespace monet::cluster_cost
