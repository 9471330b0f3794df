// Builds a step of the whole cluster from the costs of blocks: the devices of stages, the copies to
// host memory, and the division of blocks into parts. Used by the planner and by ClusterModel.
#pragma once

#include "cluster/cost/blocks.hpp"

#include "monet/cluster/cluster_step.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace monet::cluster_step {

/// The step of a strategy, built from its profile. `tokens`: tokens per sample, or 0 if samples are
/// not sequences.
ClusterStep build_step(const Cluster& cluster, const ClusterDevice& device,
                       const cluster_cost::Profile& profile, const ParallelStrategy& strategy,
                       std::int64_t tokens);

/// The device limits of a stage. Its ranks wait for each other and store equal amounts.
struct StageDevices {
  double speed = 1;        ///< of the slowest
  std::int64_t memory = 0; ///< of the smallest; 0: not known
};

/// The device limits of a stage. Stage i has n = data * context * tensor devices, from i * n on.
StageDevices devices_of(const Cluster& cluster, const ClusterDevice& device,
                        const ParallelStrategy& strategy, std::int64_t stage);

/// The highest speed and the largest memory of any device of the cluster.
StageDevices best_devices(const Cluster& cluster, const ClusterDevice& device);

/// The reason why steps of the cluster cannot be modelled, or empty if they can.
std::string unequal_misfit(const Cluster& cluster);

/// The host link of the cluster, else that of its device's table. Its bandwidth is 0 if both lack
/// it.
HostLink host_link_of(const Cluster& cluster, const ClusterDevice& device);

/// The reason why the strategy's offload is impossible, or empty if it is possible.
std::string offload_misfit(const HostLink& link, const ParallelStrategy& strategy);

/// The profile with the copies of a strategy's offload. The link carries both directions at full
/// bandwidth at once. A block's stored activations leave after its forward pass, while the next
/// block computes, and return before its backward pass. States are copied in and out around the
/// update.
cluster_cost::Profile offloaded(const cluster_cost::Profile& profile, const HostLink& link,
                                const ParallelStrategy& strategy);

/// Assigns the costs of shared weights to stages. A stage with both blocks updates the weights
/// once. If two stages have one block each, both accumulate, exchange and update a copy, and
/// all-reduce the gradients of the copies (Megatron-LM's embedding group). `begins`: first block of
/// each part, and the end. Without a cluster, the result is a lower bound for every assignment.
cluster_cost::Profile with_shared_weights(const cluster_cost::Profile& profile,
                                          const Cluster* cluster, const ParallelStrategy& strategy,
                                          std::span<const std::size_t> begins);

/// The time of a pass on one device, in ns. Kernels and collectives run in sequence, no faster than
/// the host launches them. Overlapping gathers and copies count only as far as they are longer.
struct PassTime {
  double total = 0;
  /// Shares of `total`: collectives, waits for launches by the host, and waits for host copies.
  double exchange = 0, host = 0, link = 0;
};

PassTime time_of(const cluster_cost::PassCost& pass, bool overlap);

/// The times of a block's passes. The passes after the forward pass run back to back, so launches
/// by the host, copies and gathers overlap with all of them together.
struct BlockTimes {
  PassTime forward;
  PassTime backward; ///< recomputation and input gradient; weight gradients, too, if not split off
  PassTime weight;   ///< weight gradients, if split off
  double share_of_recompute = 0, share_of_weight = 0; ///< of `backward`
};
/// The times of a block on devices of relative speed `speed`, which scales kernels but neither
/// exchanges nor copies.
BlockTimes times_of(const cluster_cost::Block& block, const ParallelStrategy& strategy,
                    double speed = 1);
/// Nanoseconds of a block's update. With `overlap`, the copies of states run during the update,
/// both directions at once; otherwise before and after it.
double update_time(const cluster_cost::Block& block, bool overlap, double speed = 1);

/// Whether all parts have the same number of layers. The parts then do not depend on costs.
bool has_even_parts(const cluster_cost::Profile& profile, const ParallelStrategy& strategy);

/// The position in the sequence at which each part of the model begins, then the end of the
/// sequence. Throws InfeasibleError if there are more parts than blocks.
std::vector<std::size_t> part_begins(const cluster_cost::Profile& profile,
                                     const ParallelStrategy& strategy);

/// Maximum bytes that a part needs beyond the stored activations of its stage. While a block runs,
/// the later ones of `blocks` store nothing of the micro-batch yet, or have already released it.
std::int64_t temporaries_of(const cluster_cost::Profile& profile,
                            std::span<const std::size_t> blocks);

/// Maximum bytes on the device of data that is offloaded block by block: those of the running block
/// and of both its neighbours, one of which is copied out and one in.
std::int64_t on_their_way(const cluster_cost::Profile& profile, std::span<const std::size_t> blocks,
                          std::int64_t cluster_cost::Block::*bytes);

/// Bytes on the device at the peak of a part whose stored activations are offloaded.
struct OffloadPeak {
  std::int64_t temporaries = 0, stored = 0;
};
/// The peak of a part with offloaded activations, which never exceeds that without offload. `kept`:
/// bytes that the stage stores without offload.
OffloadPeak offload_peak(const cluster_cost::Profile& profile, std::span<const std::size_t> blocks,
                         std::int64_t kept);

} // namespace monet::cluster_step
