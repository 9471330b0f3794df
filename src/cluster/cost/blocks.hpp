// Costs of a model's blocks on one device of a stage. They come from the step of a rank, operator
// by operator, in which identical layers are modelled once. Read by the step and the planner.
#pragma once

#include "cluster/shared/collectives.hpp"

#include "monet/cluster/cluster_step.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace monet::cluster_cost {

/// Cost of one pass of a block.
struct PassCost {
  double compute = 0;     ///< ns of kernels
  double sharded = 0;     ///< part of `compute` that ZeRO divides over data ranks
  double host = 0;        ///< ns of launches of kernels and collectives by the host
  double exchange = 0;    ///< ns of collectives that the pass waits for
  double gather = 0;      ///< ns of gathers and reductions over data ranks, which may overlap
  double gather_host = 0; ///< part of `host` for launching those
  double link = 0;        ///< ns of copies from or to host memory, which may overlap
  std::int64_t kernels = 0;
};

/// The cost of two passes run one after the other.
PassCost joined(PassCost a, const PassCost& b);

/// Costs of one block on one device.
struct Block {
  std::string name;
  PassCost forward, recompute, backward, weight;
  double gradients = 0;  ///< ns of exchanging gradients, once a step
  double parameters = 0; ///< ns of gathering updated parameters, once a step
  double update = 0;     ///< ns, once a step
  /// ns of the all-reduce of gradients with another stage that has the same weights, once a step.
  double between_stages = 0;
  double state_copy = 0; ///< ns of copying states from host memory; copying back takes as long
  std::int64_t parameter_count = 0;
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0;
  std::int64_t stored_bytes = 0, temporary_bytes = 0, output_bytes = 0;
  double model_flops = 0, masked_flops = 0, hardware_flops = 0;
  double pass_pj = 0, update_pj = 0; ///< energy of one micro-batch and of the update; chips only
  double sharded_pj = 0;             ///< part of `pass_pj` that ZeRO divides over data ranks
  /// Bytes that weight gradients read. They are kept from the end of the backward pass if weight
  /// gradients are split off.
  std::int64_t weight_bytes = 0;
};

/// Weights that two blocks share, such as a tied table. The sums of both blocks include their bytes
/// and their update; everything else is in the sums of the first block only.
struct SharedWeights {
  std::size_t first = 0, second = 0; ///< blocks
  std::int64_t count = 0, parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0;
  double update = 0, update_pj = 0;
  double gradients = 0, parameters = 0; ///< ns of exchanging them over data ranks, once a step
  PassCost sum;                         ///< adding both blocks' gradients, if they are on one stage
  PassCost accumulation;                ///< adding a micro-batch's gradient to the previous sum
};

/// Costs of all blocks of a model on one device.
struct Profile {
  std::vector<Block> blocks;         ///< distinct blocks
  std::vector<std::size_t> sequence; ///< the model's blocks in order, as indices of `blocks`
  std::vector<SharedWeights> shared;
  double peak_tflops = 0; ///< for the type of the products
};

/// The properties of a strategy that determine its profile.
struct ProfileKey {
  ParallelAxes axes; ///< neutral if the axis does not change the profile
  std::int64_t micro_batch = 1;
  bool accumulates = false; ///< sums gradients over several micro-batches
  RecomputeKind recompute = RecomputeKind::none;
  friend auto operator<=>(const ProfileKey&, const ProfileKey&) = default;
};
ProfileKey profile_key(const ParallelStrategy& strategy);

/// Computes profiles of a workload's strategies. Cluster, device and workload must outlive it.
class Profiler {
public:
  Profiler(const Cluster& cluster, const ClusterDevice& device, const ClusterWorkload& workload,
           std::shared_ptr<CoreCostCache> costs)
      : cluster_(cluster), device_(device), workload_(workload), costs_(std::move(costs)) {}

  /// The profile of a strategy, for which sizes_misfit() must be empty.
  Profile profile(const ParallelStrategy& strategy) const;

private:
  const Cluster& cluster_;
  const ClusterDevice& device_;
  const ClusterWorkload& workload_;
  std::shared_ptr<CoreCostCache> costs_; ///< of a chip's cores
};

/// The placement of a group of ranks along axes of the mesh.
GroupPlacement group_of(const Cluster& cluster, const ParallelStrategy& strategy,
                        std::span<const AxisRole> axes);
/// The placement of a rank and of the same rank of the next stage.
GroupPlacement neighbours(const Cluster& cluster, const ParallelStrategy& strategy);

} // namespace monet::cluster_cost
