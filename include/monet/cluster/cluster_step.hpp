// One training step on a cluster: its time, the memory of each stage, and the breakdown of both.
// Example:
//   ClusterStep model_transformer(const Cluster& cluster, const TransformerShape& shape,
//                                 const ParallelStrategy& strategy) {
//     const ClusterDevice device = read_cluster_device(cluster.device);
//     ClusterWorkload workload;
//     workload.transformer = shape;
//     return ClusterModel(cluster, device, workload).model(strategy);
//   }
#pragma once

#include "monet/cluster/cluster.hpp"
#include "monet/cluster/kernel_table.hpp"
#include "monet/cluster/pipeline.hpp"
#include "monet/cluster/strategy.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/transformer.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace monet {

class CoreCostCache;

/// The network to train, with its training options.
struct ClusterWorkload {
  std::optional<TransformerShape> transformer; ///< its `batch` is the strategy's
  /// Builds a network other than a transformer for a number of samples: one micro-batch of all data
  /// ranks together.
  std::function<Graph(std::int64_t samples)> network;
  TrainingOptions training;
  /// Whether the gradient of the logits overwrites the log-probabilities, as in Megatron-LM.
  /// Otherwise the gradient of the log-probabilities is kept in addition to both, as in eager
  /// PyTorch.
  bool in_place_loss = true;
};

/// Peak memory of one device of a stage, in bytes.
struct StageMemory {
  std::array<std::int64_t, kMemoryOwners> bytes{}; ///< bytes by owner, in the order of MemoryOwner
  std::int64_t in_flight = 0; ///< maximum of a chunk's micro-batches held at a time
  std::int64_t workspace = 0; ///< workspace of the device's libraries
  /// Host memory used for the device: offloaded activations and optimiser states. The activations
  /// are also counted in `bytes`.
  std::int64_t host = 0;
  std::int64_t total() const; ///< sum on the device
  std::int64_t limit = 0;     ///< memory of the stage's smallest device; 0: unknown
  bool fits() const { return limit == 0 || total() <= limit; }
};

/// Breakdown of a stage's step; the parts add up to the step's time.
struct StageShare {
  Nanoseconds compute = 0;     ///< kernels, without recomputation
  Nanoseconds recompute = 0;   ///< kernels of recomputation
  Nanoseconds host = 0;        ///< kernels waiting for the host to launch them
  Nanoseconds collectives = 0; ///< exposed: tensor, context, expert ranks; gathers
  Nanoseconds offload = 0;     ///< passes waiting for copies from and to the host's memory
  Nanoseconds sends = 0;       ///< waiting for data from another stage
  Nanoseconds gradients = 0;   ///< exposed time of the exchange of gradients and updated parameters
  Nanoseconds update = 0;      ///< update, with copies of states that are in the host's memory
  Nanoseconds bubble = 0;
};

/// Memory and time of one stage.
struct StageResult {
  StageMemory memory;
  StageShare share;
  std::int64_t first_block = 0, blocks = 0; ///< first block of chunk 0, and blocks of all chunks
  std::int64_t parameters = 0;              ///< elements stored on one of its devices
};

/// Cost of a block: a transformer layer, the part before or after the layers, or an operator group
/// of another network.
struct BlockCost {
  std::string name;
  std::int64_t count = 1; ///< number of consecutive identical blocks
  Nanoseconds forward = 0, backward_input = 0, backward_weight = 0, recompute = 0;
  Nanoseconds collectives = 0; ///< within the above: exposed time in all passes of a micro-batch
  Nanoseconds host = 0;        ///< within the above: waiting for the host
  Nanoseconds offload = 0; ///< within the above: waiting for copies from or to the host's memory
  Nanoseconds update = 0;
  std::int64_t kernels = 0;    ///< number of kernels in all passes
  std::int64_t parameters = 0; ///< elements on one device
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0;
  std::int64_t stored_bytes = 0;    ///< stored for one micro-batch between its passes
  std::int64_t temporary_bytes = 0; ///< maximum of further tensors alive at a time
  std::int64_t output_bytes = 0;    ///< passed to the next block, per device
  /// FLOPs of one micro-batch on one device: without masked scores and recomputation; the
  /// additional FLOPs of masked scores; and the FLOPs that are executed.
  double model_flops = 0, masked_flops = 0, hardware_flops = 0;
};

/// The model of one training step under one strategy.
struct ClusterStep {
  ParallelStrategy strategy;
  Nanoseconds time = 0;
  double samples_per_second = 0;
  double tokens_per_second = 0; ///< 0 if samples are not sequences
  /// Utilisation of the devices' peak rate. `mfu` counts the products that the network needs, and
  /// `mfu_with_masked` also masked scores (12 layers sequence hidden per token; Chowdhery et al.
  /// 2022, "PaLM", appendix B). `hfu` counts all executed products. 0 if the device has no peak
  /// rate.
  double mfu = 0, mfu_with_masked = 0, hfu = 0;
  double energy_pj = 0; ///< energy of all devices, if a chip is modelled
  std::vector<BlockCost> blocks;
  std::vector<StageResult> stages;
  PipelineTimeline timeline;
  std::int64_t largest_memory = 0; ///< maximum of the stages' totals
  std::int64_t largest_host = 0;   ///< maximum host memory used for one device
  /// Stage with the least free memory, which may be negative; if limits are unknown, the stage that
  /// uses most.
  const StageResult& fullest() const;
  bool fits() const { return fullest().memory.fits(); }
};

/// Models steps of one workload on one cluster, and shares block costs between strategies.
class ClusterModel {
public:
  /// All arguments must outlive the model. `costs` caches costs of tiles on a chip's cores, and
  /// models may share it; null: a private cache. Throws InfeasibleError if a chip cannot run the
  /// network.
  ClusterModel(const Cluster& cluster, const ClusterDevice& device, const ClusterWorkload& workload,
               std::shared_ptr<CoreCostCache> costs = nullptr);
  ~ClusterModel();

  /// Models one step. A step that does not fit in memory is modelled, too. Throws InfeasibleError
  /// listing all misfits (see find_misfits()), including those of heads and layers, and what cannot
  /// be offloaded. Not thread-safe.
  ClusterStep model(const ParallelStrategy& strategy);

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace monet
