// Partition of a training step over a mesh of devices: the computation of one rank and its
// exchanges with the others. Both follow from the access maps of the step's operators.
//
// An axis of the mesh partitions loops. A loop of a result shards the result, a reduction loop
// leaves partial sums, and an operand without the loop is replicated. If an operator needs an
// operand in another form, a collective converts it. Partial sums to a replicated tensor:
// AllReduce; partial sums to shards: ReduceScatter. Shards to a replicated tensor: AllGather;
// shards of one axis to shards of another: AllToAll. (Xu et al. 2021, "GSPMD", has the same rules
// for XLA.)
// Example:
//   RankStep shard_samples(const TrainingGraph& step, std::int64_t ranks) {
//     std::vector<MeshAxis> mesh(1);
//     mesh[0].name = "data";
//     mesh[0].size = ranks;
//     mesh[0].inputs = 0; // axis of the samples
//     mesh[0].zero = 1;   // optimiser states are sharded, too
//     return partition_step(step, mesh);
//   }
#pragma once

#include "monet/training_graph/training.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// A mesh axis and its rules for partitioning a step. Forms not set here follow from an operator's
/// operands.
struct MeshAxis {
  std::string name;      ///< "data", "tensor": part of the collectives' names
  std::int64_t size = 1; ///< number of ranks
  /// Axis of the network's inputs that is partitioned, such as samples or tokens; nullopt: every
  /// rank has the whole inputs.
  std::optional<std::size_t> inputs;
  /// Whether products with weights are partitioned along a loop of the weight: columns, or rows if
  /// the other operand is already sharded. A weight is replicated if every reader needs all its
  /// columns, as a router's softmax does.
  bool weights = false;
  /// Whether results between such products are shards along `inputs` instead of replicated
  /// ("sequence parallel", Korthikanti et al. 2022).
  bool between = false;
  /// Whether weights are partitioned along a loop shared with their data and result (experts).
  bool experts = false;
  /// ZeRO stage, which shards tensors that would otherwise be replicated (Rajbhandari et al. 2020):
  /// 1 optimiser states, 2 gradients as well, 3 parameters as well.
  int zero = 0;
};

/// A partition of one axis of a tensor. With the axis viewed as [outer][parts][rest], rank r of the
/// mesh axis has part r of each outer block.
struct ShardCut {
  std::size_t mesh_axis = 0;
  std::size_t dim = 0;
  std::int64_t outer = 1;

  friend bool operator==(const ShardCut&, const ShardCut&) = default;
};

/// Origin of a tensor of one rank: the tensor of the whole step and its cuts.
struct TensorOrigin {
  TensorId whole;             ///< tensor of the step that was partitioned
  std::vector<ShardCut> cuts; ///< cuts in order; each applies to the result of the previous one
};

/// Training step of one rank. All ranks run the same operators on tensors of the same shapes.
struct RankStep {
  TrainingGraph step;
  std::vector<MeshAxis> mesh;
  /// Origins of all tensors that are inputs, outputs or state: those without a producer, updated
  /// ones and outputs.
  std::map<TensorId, TensorOrigin> origins;
  /// Scalars that hold the rank's number, mapped to the index of its axis.
  std::map<TensorId, std::size_t> rank_numbers;
};

/// Number of ranks: the product of the axes' sizes.
std::int64_t ranks_of(std::span<const MeshAxis> mesh);

/// Partitions a step, axis by axis; its views must be folded. Throws InfeasibleError with the
/// remainder if a size is not divisible: the inputs' axis, heads or columns of a weight.
RankStep partition_step(const TrainingGraph& step, std::span<const MeshAxis> mesh);

/// Whether an operator of domain ai.monet is AllReduce, ReduceScatter, AllGather, AllToAll or
/// TakeShard (no communication). Attributes: `mesh_axis` (name), `parts`, and `dim`, `outer` of a
/// cut (`to_dim`, `to_outer` of an AllToAll's result); `reduce`: "sum" or "max".
bool is_collective(const Operator& op);
/// Bytes of a rank's operand or result, whichever is larger: n in the closed forms of collectives.
std::int64_t collective_bytes(const Graph& graph, const Operator& op);

} // namespace monet
