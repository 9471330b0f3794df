// What the blocks of a model cost one device of a stage: the step of a rank, with few layers where
// all are alike, priced operator by operator.
#pragma once

#include "monet/cluster/cluster_step.hpp"
#include "monet/cluster/collectives.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace monet::cluster_cost {

/// One pass of a block.
struct PassCost {
  double compute = 0;     ///< ns of kernels
  double sharded = 0;     ///< of `compute`, what ZeRO divides over data ranks
  double host = 0;        ///< ns that the host takes to launch them and the collectives
  double exchange = 0;    ///< ns of collectives that the pass waits for
  double gather = 0;      ///< ns of gathers and reductions over data ranks, which may run beside
  double gather_host = 0; ///< of `host`, what launching those takes
  double link = 0;        ///< ns of copies from or to the host's memory, which may run beside
  std::int64_t kernels = 0;
};

/// Both one after the other.
PassCost joined(PassCost a, const PassCost& b);

/// Sums of one block.
struct Block {
  std::string name;
  PassCost forward, recompute, backward, weight;
  double gradients = 0;  ///< ns of exchanging gradients, once a step
  double parameters = 0; ///< ns of gathering updated parameters, once a step
  double update = 0;     ///< ns, once a step
  /// ns of the all-reduce of gradients with another stage that has the same weights, once a step.
  double between_stages = 0;
  double state_copy = 0; ///< ns of copying states from the host's memory, and of copying them back
  std::int64_t parameter_count = 0;
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0;
  std::int64_t stored_bytes = 0, temporary_bytes = 0, output_bytes = 0;
  double model_flops = 0, masked_flops = 0, hardware_flops = 0;
  double pass_pj = 0, update_pj = 0; ///< energy of a micro-batch's passes, of the update; of chips
  double sharded_pj = 0;             ///< of `pass_pj`, what ZeRO divides over data ranks
  /// What weight gradients read: kept from the end of the backward pass where they are split off.
  std::int64_t weight_bytes = 0;
};

/// Weights that two blocks share, such as a tied table. The sums of both blocks include their bytes
/// and their update; everything else is in the sums of the first block only.
struct SharedWeights {
  std::size_t first = 0, second = 0; ///< blocks
  std::int64_t count = 0, parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0;
  double update = 0, update_pj = 0;
  double gradients = 0, parameters = 0; ///< ns of exchanging them over data ranks, once a step
  PassCost sum;          ///< adding up both blocks' gradients: where they are on one stage
  PassCost accumulation; ///< adding a micro-batch's gradient to those before
};

struct Profile {
  std::vector<Block> blocks;         ///< different ones
  std::vector<std::size_t> sequence; ///< of the model: which block comes when
  std::vector<SharedWeights> shared;
  double peak_tflops = 0; ///< of the type that products are in
};

/// What decides a strategy's profile.
struct ProfileKey {
  std::int64_t data = 1, tensor = 1, context = 1, expert = 1, micro_batch = 1;
  int zero = 0;
  bool sequence = false;
  bool accumulates = false; ///< gradients of several micro-batches
  RecomputeKind recompute = RecomputeKind::none;
  friend auto operator<=>(const ProfileKey&, const ProfileKey&) = default;
};
ProfileKey profile_key(const ParallelStrategy& strategy);

/// The networks of a workload, cut into blocks, and how they are priced.
class Profiler {
public:
  Profiler(const Cluster& cluster, const ClusterDevice& device, const ClusterWorkload& workload,
           std::shared_ptr<CoreCostCache> costs)
      : cluster_(cluster), device_(device), workload_(workload), costs_(std::move(costs)) {}

  /// The strategy divides the workload: see check_divides().
  Profile profile(const ParallelStrategy& strategy) const;

private:
  const Cluster& cluster_;
  const ClusterDevice& device_;
  const ClusterWorkload& workload_;
  std::shared_ptr<CoreCostCache> costs_; ///< of a chip's cores
};

/// Where the ranks along axes of the mesh stand: data, expert, context and tensor.
GroupPlacement group_of(const Cluster& cluster, const ParallelStrategy& strategy,
                        std::span<const std::string_view> axes);
/// A stage and the next one.
GroupPlacement neighbours(const Cluster& cluster, const ParallelStrategy& strategy);

} // namespace monet::cluster_cost
