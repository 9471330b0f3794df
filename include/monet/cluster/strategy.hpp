// Parallel strategies: the partition of a training step over the devices of a cluster.
// Example:
//   bool is_possible(std::int64_t devices) {
//     ParallelStrategy strategy;
//     strategy.axes = {{AxisRole::tensor, 8}, {AxisRole::data, devices / 8}};
//     strategy.global_batch = devices / 2;
//     return find_misfits(strategy, devices).empty();
//   }
#pragma once

#include "monet/base/errors.hpp"
#include "monet/cluster/axis_roles.hpp"
#include "monet/cluster/partition.hpp"
#include "monet/cluster/pipeline.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

struct YamlNode;

/// Activations that are recomputed in the backward pass.
enum class RecomputeKind {
  none,
  selective, ///< attention's results between its products (Korthikanti et al. 2022)
  full,      ///< every layer; only its input is stored
};
std::string_view name_of(RecomputeKind kind);

/// Data that are kept in the host's memory while no device needs them.
enum class OffloadKind {
  none,
  states,      ///< optimiser states, fetched for the update and written back (as in ZeRO-Infinity)
  activations, ///< stored activations, written after a block's forward pass and fetched for its
               ///< backward pass
  both,
};
std::string_view name_of(OffloadKind kind);
std::span<const std::string_view> offload_kind_names(); ///< names in the order of the enumeration
bool offloads_states(OffloadKind kind);
bool offloads_activations(OffloadKind kind);

/// A parallel strategy: the `parallel:` part of an experiment.
struct ParallelStrategy {
  ParallelAxes axes;
  PipelineKind schedule = PipelineKind::one_f_one_b;
  std::int64_t micro_batch = 1;  ///< samples per data rank and micro-batch
  std::int64_t global_batch = 1; ///< samples per step
  RecomputeKind recompute = RecomputeKind::none;
  OffloadKind offload = OffloadKind::none;
  /// Whether communication overlaps with computation. Gradients are exchanged during the last
  /// backward pass, shards of parameters are gathered during earlier passes, and host copies run
  /// during passes and updates. Otherwise computation waits for each of them.
  bool overlap = true;
  /// Number of a transformer's layers in each part of the model, pipeline * virtual numbers in
  /// order. The first and last part also hold embedding and logits and may have no layers. Empty:
  /// equal numbers.
  std::vector<std::int64_t> layers;

  std::int64_t stages() const { return axes[AxisRole::pipeline]; }
  std::int64_t parts_per_stage() const { return axes[AxisRole::virtual_stages]; }
  std::int64_t parts() const { return stages() * parts_per_stage(); }
  int zero() const { return static_cast<int>(axes[AxisRole::zero]); } ///< ZeRO's stage
  std::int64_t devices() const; ///< the product of the degrees of kDeviceRoles
  std::int64_t ranks_of_stage() const { return devices() / stages(); }
  /// Number of parts into which the axes divide something; 1 for states, whose parts depend on the
  /// tensor (ranks_with_copies()).
  std::int64_t parts_of(Divided what) const;
  /// Ranks of a stage that hold copies of a weight, or of an expert's weight.
  std::int64_t ranks_with_copies(bool of_experts) const;
  /// Samples of all ranks in a micro-batch.
  std::int64_t samples_at_once() const { return micro_batch * parts_of(Divided::samples); }
  std::int64_t micro_batches() const { return global_batch / samples_at_once(); }
  friend bool operator==(const ParallelStrategy&, const ParallelStrategy&) = default;
};

/// The strategies to compare: all consistent combinations of these values. An empty list stands for
/// all values that divide the respective size, or for all kinds of schedule, recomputation and
/// offload.
struct StrategySpace {
  AxisChoices axes;
  std::vector<std::int64_t> micro_batch;
  std::vector<PipelineKind> schedule;
  std::vector<RecomputeKind> recompute;
  std::vector<OffloadKind> offload;
  std::int64_t global_batch = 1;
  bool overlap = true;
};

/// Reads a strategy. Keys are those of the roles and the fields' names. A missing key defaults to 1
/// or none; `global_batch` defaults to one micro-batch per data rank and pipeline stage. Unknown
/// keys and invalid values are added to `problems`.
ParallelStrategy read_strategy(const YamlNode& node, ProblemList& problems);
/// Reads a strategy space from the `parallel:` part of an experiment; a key may hold one value or a
/// list, and a missing key is free. `global_batch` is a required number; `overlap` is one value.
/// Unknown keys, invalid values and duplicates are added to `problems`.
StrategySpace read_strategy_space(const YamlNode& node, ProblemList& problems);
/// Short form with the settings that differ from the defaults: "d16 t8 p8 v3 seq zero1 interleaved
/// mb1 selective".
std::string to_string(const ParallelStrategy& strategy);
/// Inconsistencies of a strategy, one sentence with numbers each: degrees versus the cluster's
/// devices, micro-batches, experts. Empty if it is consistent. Heads and layers are not checked
/// here.
std::vector<std::string> find_misfits(const ParallelStrategy& strategy,
                                      std::int64_t cluster_devices);
/// Number of ranks along an axis of a stage's mesh.
std::int64_t mesh_size(const ParallelStrategy& strategy, AxisRole role);
/// Mesh of one stage, in the order of kMeshRoles.
std::vector<MeshAxis> mesh_of(const ParallelStrategy& strategy);
/// The roles of the mesh's axes along which all ranks have the whole activations of a stage.
std::vector<AxisRole> roles_with_whole_inputs(const ParallelStrategy& strategy);

} // namespace monet
