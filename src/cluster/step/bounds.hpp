// Bounds of a strategy's step that need no division over all data ranks: data degrees share them.
#pragma once

#include "cluster/cost/blocks.hpp"

#include <cstdint>

namespace monet::cluster_step {

/// Nothing of the strategy's step is below.
struct StepBound {
  Nanoseconds time = 0;
  std::int64_t memory = 0;
  double energy_pj = 0;
};

/// The strategy whose profile bounds this one: with as few data ranks as can be, but for those that
/// share experts, and one micro-batch or two. A rank's samples, and so its kernels, are the same;
/// what data ranks exchange comes on top, and what ZeRO shards is divided by them at most.
ParallelStrategy base_of(const ParallelStrategy& strategy);

/// `base` is the profile of base_of(strategy).
StepBound step_bound(const Cluster& cluster, const ClusterDevice& device,
                     const cluster_cost::Profile& base, const ParallelStrategy& strategy);

/// A profile of more samples, of which only memory is known: activations grow by as much a sample
/// as from `one` to `two`, less a thousandth for what is rounded up to whole bytes.
cluster_cost::Profile with_samples(const cluster_cost::Profile& one, std::int64_t samples_one,
                                   const cluster_cost::Profile& two, std::int64_t samples_two,
                                   std::int64_t samples);

} // namespace monet::cluster_step
