// From the costs of blocks to a step of the whole cluster: its stages with their devices, the ways
// to the host's memory, and the blocks as the parts that stages run.
#pragma once

#include "cluster/cost/blocks.hpp"

#include "monet/cluster/cluster_step.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace monet::cluster_step {

/// `profile` is the strategy's. `tokens` are those of a sample; 0 where samples are no sequences.
ClusterStep build_step(const Cluster& cluster, const ClusterDevice& device,
                       const cluster_cost::Profile& profile, const ParallelStrategy& strategy,
                       std::int64_t tokens);

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

/// The cluster's, else the one that its device's table has; without bandwidth there is none.
HostLink host_link_of(const Cluster& cluster, const ClusterDevice& device);

/// Why the strategy's offload is impossible; empty where it is not.
std::string offload_misfit(const HostLink& link, const ParallelStrategy& strategy);

/// The same blocks with the copies that a strategy's offload makes. The link carries as much each
/// way at once: what a block stores goes out behind its forward pass while the next one computes,
/// and comes in before its backward pass; states come in and go out around the update.
cluster_cost::Profile offloaded(const cluster_cost::Profile& profile, const HostLink& link,
                                const ParallelStrategy& strategy);

/// Assigns the costs of shared weights to stages. A stage with both blocks updates the weights
/// once. If two stages have one block each, both accumulate, exchange and update a copy, and
/// all-reduce the gradients of the copies (Megatron-LM's embedding group). `begins`: first block of
/// each part, and the end. Without a cluster, the result is a lower bound for every assignment.
cluster_cost::Profile with_shared_weights(const cluster_cost::Profile& profile,
                                          const Cluster* cluster, const ParallelStrategy& strategy,
                                          std::span<const std::size_t> begins);

/// A pass on one device: kernels and collectives one after another, no faster than the host
/// launches them; what may run beside it, where it does, counts as far as it is longer.
struct PassTime {
  double total = 0;
  /// Of that: collectives, waiting for the host's launches, and for its copies.
  double exchange = 0, host = 0, link = 0;
};

PassTime time_of(const cluster_cost::PassCost& pass, bool overlap);

/// The passes of a block. Those after the forward pass run in a row, so that what runs beside one
/// of them runs beside all: the host's launches, copies and gathers.
struct BlockTimes {
  PassTime forward;
  PassTime backward; ///< recomputation and input gradient; weight gradients, too, if not split off
  PassTime weight;   ///< where they are split off
  double share_of_recompute = 0, share_of_weight = 0; ///< of `backward`
};
/// On devices of that speed: kernels are so much faster, exchanges and copies are not.
BlockTimes times_of(const cluster_cost::Block& block, const ParallelStrategy& strategy,
                    double speed = 1);
/// Copies of states move beside the update, as much each way at once, or around it.
double update_time(const cluster_cost::Block& block, bool overlap, double speed = 1);

/// True where every part has as many layers as the others: then the parts do not depend on costs.
bool has_even_parts(const cluster_cost::Profile& profile, const ParallelStrategy& strategy);

/// Where in the sequence each part of the model begins, and its end. InfeasibleError with more
/// parts than blocks.
std::vector<std::size_t> part_begins(const cluster_cost::Profile& profile,
                                     const ParallelStrategy& strategy);

/// Most that a part of the model needs beyond what all of the stage's keep: while a block is at it,
/// the later ones of `blocks` have not begun to store anything of the micro-batch, or are done with
/// it.
std::int64_t temporaries_of(const cluster_cost::Profile& profile,
                            std::span<const std::size_t> blocks);

/// Of what waits in the host block by block, most that is on the device: that of the block at work,
/// of the one before it and of the one behind it, one on its way out and one on its way in.
std::int64_t on_their_way(const cluster_cost::Profile& profile, std::span<const std::size_t> blocks,
                          std::int64_t cluster_cost::Block::*bytes);

/// A part of the model at its worst moment where what it stores waits in the host's memory.
struct OffloadPeak {
  std::int64_t temporaries = 0, stored = 0;
};
/// `kept`: what the stage stores without offload. Never more than without it.
OffloadPeak offload_peak(const cluster_cost::Profile& profile, std::span<const std::size_t> blocks,
                         std::int64_t kept);

} // namespace monet::cluster_step
