// How a training step is divided over the devices of a cluster.
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

enum class RecomputeKind {
  none,
  selective, ///< what attention makes between its products (Korthikanti et al. 2022)
  full,      ///< of every layer only its input is stored, and all of it runs again
};
std::string_view name_of(RecomputeKind kind);

/// What waits in the host's memory while no device needs it.
enum class OffloadKind {
  none,
  states, ///< of the optimiser: they come for the update and go back (ZeRO-Infinity streams so)
  activations, ///< what is stored between passes: it leaves behind a block's forward pass, and
               ///< comes back for its backward pass
  both,
};
std::string_view name_of(OffloadKind kind);
std::span<const std::string_view> offload_kind_names(); ///< in the order of their kinds
bool offloads_states(OffloadKind kind);
bool offloads_activations(OffloadKind kind);

/// The `parallel:` part of an experiment. data * context * tensor * pipeline are the devices.
struct ParallelStrategy {
  std::int64_t data = 1;           ///< ranks that see different samples
  std::int64_t tensor = 1;         ///< ranks that share products with weights
  std::int64_t pipeline = 1;       ///< stages
  std::int64_t virtual_stages = 1; ///< parts of the model on each stage; key `virtual`
  bool sequence =
      false; ///< between products that tensor ranks share, each has a part of the tokens
  std::int64_t context = 1; ///< ranks that share the tokens of a sample
  std::int64_t expert = 1;  ///< of the data ranks, those that share experts; divides data
  int zero = 0;             ///< 1 optimiser states, 2 and gradients, 3 and parameters
  PipelineKind schedule = PipelineKind::one_f_one_b;
  std::int64_t micro_batch = 1;  ///< samples of one data rank at a time
  std::int64_t global_batch = 1; ///< samples of a step
  RecomputeKind recompute = RecomputeKind::none;
  OffloadKind offload = OffloadKind::none;
  /// Gradients are exchanged beside the last backward pass, shards of parameters gathered beside
  /// passes before the one that needs them, copies from and to the host move beside passes and
  /// updates; else all of them wait.
  bool overlap = true;
  /// Of each part of the model, in its order, pipeline * virtual numbers: a transformer's layers.
  /// Embedding and logits belong to the first and the last part, which may have none. Empty: as
  /// many each.
  std::vector<std::int64_t> layers;

  std::int64_t devices() const { return data * context * tensor * pipeline; }
  std::int64_t micro_batches() const { return global_batch / (data * micro_batch); }
  friend bool operator==(const ParallelStrategy&, const ParallelStrategy&) = default;
};

/// The strategies that are compared: every combination of these values that fits together. An empty
/// list is all values that divide what they must; of schedules, recomputation and offload all
/// kinds.
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

/// Keys as the fields, and `virtual`; what is left out is 1, none, or for global_batch what one
/// micro-batch a data rank and pipeline stage comes to. Unknown keys and values are problems.
ParallelStrategy read_strategy(const YamlNode& node, ProblemList& problems);
/// `parallel:` of an experiment where a key may be one value or a list; what is left out is free.
/// `global_batch` must be there, one number; `overlap` is one value. Unknown keys and values are
/// problems, as are values given twice.
StrategySpace read_strategy_space(const YamlNode& node, ProblemList& problems);
/// "d16 t8 p8 v3 seq zero1 interleaved mb1 selective": what differs from the defaults.
std::string to_string(const ParallelStrategy& strategy);
/// What does not fit together, each in a sentence with its numbers: degrees and the cluster's
/// devices, micro-batches, experts. Empty where all fits. Heads and layers are the network's.
std::vector<std::string> find_misfits(const ParallelStrategy& strategy,
                                      std::int64_t cluster_devices);
/// The mesh of one stage: data, expert, context, tensor; the last varies fastest.
std::vector<MeshAxis> mesh_of(const ParallelStrategy& strategy);

} // namespace monet
