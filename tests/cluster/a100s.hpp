// Transformers on A100s, as they are trained in mixed precision.
#pragma once

#include "monet/cluster/cluster_step.hpp"

namespace monet {

/// 16 bytes a parameter: fp16 weights and gradients, fp32 master weights and two moments.
inline TrainingOptions mixed_precision() {
  TrainingOptions options;
  options.update.optimizer = Adam{};
  options.precision.weights = ElementType::fp16;
  options.precision.activations = ElementType::fp16;
  options.precision.gradients = ElementType::fp16;
  options.precision.master_weights = ElementType::fp32;
  options.precision.optimizer_state = ElementType::fp32;
  options.storage.policy = StorePolicy::pytorch_eager;
  return options;
}

struct A100s {
  Cluster cluster;
  ClusterDevice device;
  ClusterWorkload workload;

  A100s(std::int64_t devices, const TransformerShape& shape)
      : cluster(
            with_devices(read_cluster(MONET_SOURCE_DIR "/data/cluster/dgx_a100.yaml"), devices)),
        device(read_cluster_device(cluster.device)), workload{.transformer = shape,
                                                              .training = mixed_precision()} {}

  ClusterStep model(const ParallelStrategy& strategy) const {
    return ClusterModel(cluster, device, workload).model(strategy);
  }
};

} // namespace monet
