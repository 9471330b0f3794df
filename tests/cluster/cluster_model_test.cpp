// Steps of whole clusters.
#include "monet/base/errors.hpp"
#include "monet/cluster/cluster_step.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace monet {

namespace {

TrainingOptions mixed_precision() {
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

} // namespace

TEST(ClusterModel, Shows) {
  const Cluster cluster =
      with_devices(read_cluster(MONET_SOURCE_DIR "/data/cluster/dgx_a100.yaml"), 8);
  const ClusterDevice device = read_cluster_device(cluster.device);
  ClusterWorkload workload;
  workload.transformer = TransformerShape{.layers = 48, .hidden = 6144, .heads = 64, .sequence = 2048,
                                          .vocabulary = 51200, .dropout = 0.1};
  workload.training = mixed_precision();
  ClusterModel model(cluster, device, workload);
  for (const auto recompute : {RecomputeKind::full, RecomputeKind::selective, RecomputeKind::none}) {
    Strategy strategy{.tensor = 8, .sequence = recompute == RecomputeKind::selective, .micro_batch = 4, .global_batch = 4, .recompute = recompute};
    const ClusterStep step = model.model(strategy);
    fmt::print("{} {:.3f} s mfu {:.3f}\n", name_of(recompute), double(step.time) * 1e-9, step.mfu);
    for (const BlockCost& block : step.blocks)
      fmt::print("  {} x{} F {:.3f} B {:.3f} W {:.3f} R {:.3f} coll {:.3f} host {:.3f} upd {:.3f} kernels {} params {} stored {} temp {} out {}\n", block.name, block.count,
                 double(block.forward) * 1e-6, double(block.backward_input) * 1e-6, double(block.backward_weight) * 1e-6,
                 double(block.recompute) * 1e-6, double(block.collectives) * 1e-6, double(block.host) * 1e-6, double(block.update)*1e-6, block.kernels, block.parameters, block.stored_bytes, block.temporary_bytes, block.output_bytes);
    for (const StageResult& stage : step.stages)
      fmt::print("  stage mem {:.2f} GiB params {:.2f} grads {:.2f} states {:.2f} stored {:.2f} temp {:.2f}\n", double(stage.memory.total()) / (1 << 30), double(stage.memory.bytes[0]) / (1 << 30), double(stage.memory.bytes[1]) / (1 << 30), double(stage.memory.bytes[2]) / (1 << 30), double(stage.memory.bytes[3]) / (1 << 30), double(stage.memory.bytes[4]) / (1 << 30));
  }
}

} // namespace monet
