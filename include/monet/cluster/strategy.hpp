// Parallel strategies: the partition of a training step over the devices of a cluster.
// Example:
//   bool is_possible(std::int64_t devices) {
//     ParallelStrategy strategy;
//     strategy.tensor = 8;
//     strategy.data = devices / 8;
//     strategy.global_batch = 4 * strategy.data;
//     return find_misfits(strategy, devices).empty();
//   }
#pragma once

#include "monet/base/errors.hpp"
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

/// A parallel strategy: the `parallel:` part of an experiment. The number of devices is data *
/// context * tensor * pipeline.
struct ParallelStrategy {
  std::int64_t data = 1;           ///< ranks with different samples
  std::int64_t tensor = 1;         ///< ranks that share products with weights
  std::int64_t pipeline = 1;       ///< stages
  std::int64_t virtual_stages = 1; ///< parts of the model per stage; key `virtual`
  bool sequence = false;           ///< shard tokens over tensor ranks between their shared products
  std::int64_t context = 1;        ///< ranks that share the tokens of a sample
  std::int64_t expert = 1;         ///< data ranks that share experts; divides `data`
  int zero = 0;                    ///< 1 optimiser states, 2 and gradients, 3 and parameters
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

  std::int64_t devices() const { return data * context * tensor * pipeline; }
  std::int64_t micro_batches() const { return global_batch / (data * micro_batch); }
  friend bool operator==(const ParallelStrategy&, const ParallelStrategy&) = default;
};

/// The strategies to compare: all consistent combinations of these values. An empty list stands for
/// all values that divide the respective size, or for all kinds of schedule, recomputation and
/// offload.
struct StrategySpace {
  std::vector<std::int64_t> data, tensor, pipeline, virtual_stages, context, expert, micro_batch;
  std::vector<std::int64_t> zero;
  std::vector<bool> sequence;
  std::vector<PipelineKind> schedule;
  std::vector<RecomputeKind> recompute;
  std::vector<OffloadKind> offload;
  std::int64_t global_batch = 1;
  bool overlap = true;
};

/// Reads a strategy. Keys are the fields' names, and `virtual`. A missing key defaults to 1 or
/// none; `global_batch` defaults to one micro-batch per data rank and pipeline stage. Unknown keys
/// and invalid values are added to `problems`.
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
/// Mesh of one stage: data, expert, context, tensor; the last varies fastest.
std::vector<MeshAxis> mesh_of(const ParallelStrategy& strategy);

} // namespace monet
