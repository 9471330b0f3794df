// One training step on a cluster: its time, what each stage keeps in memory, and where both go.
#pragma once

#include "monet/cluster/cluster.hpp"
#include "monet/cluster/device.hpp"
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

/// What is trained.
struct ClusterWorkload {
  std::optional<TransformerShape> transformer; ///< its `batch` is the strategy's
  /// Else a network for so many samples: called with a micro-batch of all data ranks together.
  std::function<Graph(std::int64_t samples)> network;
  TrainingOptions training;
  /// The gradient of the logits overwrites log-probabilities, as in Megatron-LM; else that of the
  /// log-probabilities is there beside both, as in eager PyTorch.
  bool in_place_loss = true;
};

/// Of one device of a stage, at its worst moment.
struct StageMemory {
  std::array<std::int64_t, kMemoryOwners> bytes{}; ///< by owner, as in MemoryOwner
  std::int64_t in_flight = 0; ///< micro-batches of a chunk whose activations are kept at a time
  std::int64_t workspace = 0; ///< of the device's libraries
  /// In the host's memory for it: activations and states of the optimiser. `bytes` has the
  /// activations, too.
  std::int64_t host = 0;
  std::int64_t total() const; ///< on the device
  std::int64_t limit = 0;     ///< what the smallest device of the stage has; 0: not known
  bool fits() const { return limit == 0 || total() <= limit; }
};

/// Where a stage's step goes; they add up to the step's time.
struct StageShare {
  Nanoseconds compute = 0; ///< kernels, without what is computed again
  Nanoseconds recompute = 0;
  Nanoseconds host = 0;        ///< kernels wait for the host that launches them
  Nanoseconds collectives = 0; ///< of tensor, context and expert ranks, and gathers, not hidden
  Nanoseconds offload = 0;     ///< passes wait for copies from and to the host's memory
  Nanoseconds sends = 0;       ///< waiting for what another stage has sent
  Nanoseconds gradients = 0;   ///< exchange of gradients and updated parameters, not hidden
  Nanoseconds update = 0;      ///< with the copies of states that are in the host's memory
  Nanoseconds bubble = 0;
};

struct StageResult {
  StageMemory memory;
  StageShare share;
  std::int64_t first_block = 0, blocks = 0; ///< of chunk 0, and of all its chunks
  std::int64_t parameters = 0;              ///< elements that one of its devices keeps
};

/// A layer of a transformer, or what is before or after them; an operator group of another network.
struct BlockCost {
  std::string name;
  std::int64_t count = 1; ///< blocks like this in a row
  Nanoseconds forward = 0, backward_input = 0, backward_weight = 0, recompute = 0;
  Nanoseconds collectives = 0; ///< within the above: of all passes of a micro-batch, not hidden
  Nanoseconds host = 0;        ///< within the above: waiting for the host
  Nanoseconds offload = 0;     ///< within the above: waiting for copies from or to its memory
  Nanoseconds update = 0;
  std::int64_t kernels = 0;    ///< of all passes
  std::int64_t parameters = 0; ///< elements of one device
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0;
  std::int64_t stored_bytes = 0;    ///< kept of a micro-batch between its passes
  std::int64_t temporary_bytes = 0; ///< most that lives besides
  std::int64_t output_bytes = 0;    ///< handed to the next block, of one device
  /// Of one micro-batch on one device: without masked scores and recomputation; what masked scores
  /// would add; and what runs.
  double model_flops = 0, masked_flops = 0, hardware_flops = 0;
};

struct ClusterStep {
  ParallelStrategy strategy;
  Nanoseconds time = 0;
  double samples_per_second = 0;
  double tokens_per_second = 0; ///< 0 where samples are no sequences
  /// Share of the devices' peak: by the products that the network needs, by these and masked scores
  /// (12 layers sequence hidden a token; Chowdhery et al. 2022, "PaLM", appendix B), and by those
  /// that run. 0 where the device has no peak.
  double mfu = 0, mfu_with_masked = 0, hfu = 0;
  double energy_pj = 0; ///< of all devices, where a chip is modelled
  std::vector<BlockCost> blocks;
  std::vector<StageResult> stages;
  PipelineTimeline timeline;
  std::int64_t largest_memory = 0; ///< of the stages' totals
  std::int64_t largest_host = 0;   ///< of what one device has in the host's memory
  /// The stage that has least room left, or none; where limits are not known, the largest.
  const StageResult& fullest() const;
  bool fits() const { return fullest().memory.fits(); }
};

/// What strategies of one workload on one cluster share: costs of blocks by what decides them.
class ClusterModel {
public:
  /// All must outlive the model. `costs` of tiles on a chip's cores, which models may share; null:
  /// its own. InfeasibleError where a chip cannot run the network.
  ClusterModel(const Cluster& cluster, const ClusterDevice& device, const ClusterWorkload& workload,
               std::shared_ptr<CoreCostCache> costs = nullptr);
  ~ClusterModel();

  /// InfeasibleError listing what does not divide (see misfits()), heads and layers too, and what
  /// cannot be offloaded. A step that does not fit in memory is modelled all the same. Not for
  /// several threads at once.
  ClusterStep model(const ParallelStrategy& strategy);

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace monet
