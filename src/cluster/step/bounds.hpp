// Lower bounds of a strategy's step. Their base profile has few data ranks, so strategies with
// different data degrees share it. Used by the planner.
#pragma once

#include "cluster/cost/blocks.hpp"

#include <cstdint>

namespace monet::cluster_step {

/// Lower bounds of a strategy's step: ns, bytes of the fullest device, and pJ of all devices.
struct StepBound {
  Nanoseconds time = 0;
  std::int64_t memory = 0;
  double energy_pj = 0;
};

/// The strategy whose profile bounds this one. It keeps the expert ranks, reduces the other data
/// ranks to the smallest prime factor of their number, and has at most two micro-batches. A rank
/// has the same samples and therefore the same kernels. Exchanges over data ranks only add time,
/// and ZeRO divides its shards at most by the number of data ranks.
ParallelStrategy base_of(const ParallelStrategy& strategy);

/// The lower bounds of a strategy's step. `base` is the profile of base_of(strategy).
StepBound step_bound(const Cluster& cluster, const ClusterDevice& device,
                     const cluster_cost::Profile& base, const ParallelStrategy& strategy);

/// The profile of a micro-batch with `samples` samples, extrapolated from those of two smaller
/// ones. Only its memory is valid: stored activations grow linearly, less a thousandth for rounding
/// up to whole bytes.
cluster_cost::Profile with_samples(const cluster_cost::Profile& one, std::int64_t samples_one,
                                   const cluster_cost::Profile& two, std::int64_t samples_two,
                                   std::int64_t samples);

} // namespace monet::cluster_step
